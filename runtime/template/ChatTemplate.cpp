// Preparing the variables of a chat template, and cutting the text where a last message goes on.
#include "runtime/template/ChatTemplate.h"
#include "runtime/template/Unicode.h"
#include <algorithm>

namespace llmc {
namespace {

// Ends the last message while rendering; its blank shows whether the template trims what it is given.
const std::string continueMark = "CONTINUE_FINAL_MESSAGE_TAG ";

Json withoutNulls(const Json &message) {
  Json out = Json::object();
  for (auto it = message.begin(); it != message.end(); ++it)
    if (!it.value().is_null())
      out.push_back({it.key(), it.value()});
  return out;
}

// A message with any reasoning has it under `thinking`, first, and under `reasoning_content`.
Json withReasoning(const Json &message) {
  const Json *reasoning = nullptr;
  for (const char *name : {"reasoning_content", "thinking", "reasoning"})
    if (!reasoning)
      reasoning = find(message, name);
  if (!reasoning)
    return message;
  const Json *thinking = find(message, "thinking");
  Json out = Json::object();
  out.push_back({"thinking", thinking ? *thinking : *reasoning});
  for (auto it = message.begin(); it != message.end(); ++it)
    if (it.key() != "thinking")
      out.push_back({it.key(), it.value()});
  if (!find(message, "reasoning_content"))
    out.push_back({"reasoning_content", *reasoning});
  return out;
}

Status markContent(Json &message) {
  Json *content = message.contains("content") ? &message["content"] : nullptr;
  if (content && content->is_array())
    for (auto part = content->rbegin(); part != content->rend(); ++part)
      if (part->is_object() && part->contains("text")) {
        content = &(*part)["text"];
        break;
      }
  if (!content || !content->is_string())
    return Status::error("continue_final_message is set, but the last message has no text to go on with");
  content->get_ref<std::string &>() += continueMark;
  return Status();
}

StatusOr<std::string> cutAtMark(std::string text) {
  std::string word = continueMark.substr(0, continueMark.size() - 1);
  size_t at = text.rfind(word);
  if (at == std::string::npos)
    return Status::error("continue_final_message is set, but the chat template leaves the last message out");
  bool trimmed = text.compare(at, continueMark.size(), continueMark) != 0;
  text.resize(at);
  return trimmed ? std::string(jinja::trimSpace(text, /*left=*/false, /*right=*/true)) : text;
}

Status checkRequest(const ChatRequest &request) {
  if (!request.messages.is_array() || request.messages.empty())
    return Status::error("messages is " + brief(request.messages) + ", expected at least one message");
  for (const Json &message : request.messages)
    if (!message.is_object())
      return Status::error("a message is " + brief(message) + ", expected an object");
  for (const Json *object : {&request.specialTokens, &request.variables})
    if (!object->is_object())
      return Status::error("template variables are " + brief(*object) + ", expected an object");
  for (const char *name : {"messages", "tools", "documents", "add_generation_prompt"})
    if (find(request.variables, name))
      return Status::error(std::string("the template variable '") + name + "' is part of the request itself");
  if (request.continueFinalMessage && request.addGenerationPrompt)
    return Status::error("continue_final_message and add_generation_prompt exclude each other; choose one");
  return Status();
}

} // namespace

StatusOr<std::string> renderChat(const Template &chatTemplate, const ChatRequest &request) {
  LLMC_RETURN_IF_ERROR(checkRequest(request));
  Json messages = Json::array();
  for (const Json &message : request.messages)
    messages.push_back(withReasoning(withoutNulls(message)));
  if (request.continueFinalMessage) {
    LLMC_RETURN_IF_ERROR(markContent(messages.back()));
  }
  Json variables = request.specialTokens;
  for (auto it = request.variables.begin(); it != request.variables.end(); ++it)
    variables[it.key()] = it.value();
  variables["messages"] = std::move(messages);
  variables["tools"] = request.tools;
  variables["documents"] = request.documents;
  variables["add_generation_prompt"] = request.addGenerationPrompt;
  LLMC_ASSIGN_OR_RETURN(std::string text, chatTemplate.render(variables, request.render));
  return request.continueFinalMessage ? cutAtMark(std::move(text)) : StatusOr<std::string>(std::move(text));
}

StatusOr<std::vector<ChatPart>> renderChatParts(const Template &chatTemplate, const ChatRequest &request) {
  std::vector<std::pair<size_t, size_t>> plain;
  ChatRequest traced = request;
  traced.render.plainSpans = &plain;
  LLMC_ASSIGN_OR_RETURN(std::string text, renderChat(chatTemplate, traced));
  std::vector<ChatPart> parts;
  auto add = [&](size_t begin, size_t end, bool isPlain) {
    if (begin < end)
      parts.push_back({text.substr(begin, end - begin), isPlain});
  };
  size_t done = 0;
  for (auto [begin, end] : plain) {
    // Where the last message goes on, the text was cut after the spans were found.
    begin = std::min(begin, text.size());
    end = std::min(end, text.size());
    add(done, begin, /*isPlain=*/false);
    add(begin, end, /*isPlain=*/true);
    done = end;
  }
  add(done, text.size(), /*isPlain=*/false);
  return parts;
}

} // namespace llmc
