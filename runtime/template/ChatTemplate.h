// From a conversation to the text of a prompt: what transformers does around the rendering of a chat template.
#pragma once
#include "runtime/template/Template.h"

namespace llmc {

struct ChatRequest {
  // An array of objects. Null members are dropped before the template sees them, and reasoning_content, thinking and
  // reasoning stand in for each other.
  Json messages = Json::array();
  // Null when there are none, which templates see as none.
  Json tools = nullptr;
  Json documents = nullptr;
  bool addGenerationPrompt = false;
  // The prompt ends inside the last message, for the model to go on with it.
  bool continueFinalMessage = false;
  // bos_token and the like: only those the tokenizer has.
  Json specialTokens = Json::object();
  // Any other variables of the template; they win over special tokens.
  Json variables = Json::object();
  RenderOptions render;
};

StatusOr<std::string> renderChat(const Template &chatTemplate, const ChatRequest &request);

// A prompt in the parts that a tokenizer takes one by one.
struct ChatPart {
  std::string text;
  bool plain = false; // no special token counts in it
};
// As renderChat, cut at the borders of plain texts; without any, one part.
StatusOr<std::vector<ChatPart>> renderChatParts(const Template &chatTemplate, const ChatRequest &request);

} // namespace llmc
