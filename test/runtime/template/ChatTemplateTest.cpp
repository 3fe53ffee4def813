// What happens around the rendering: the request's own checks, and cutting the text of a last message that goes on.
#include "runtime/template/ChatTemplate.h"
#include <gtest/gtest.h>

using namespace llmc;

namespace {

std::string chat(const std::string &source, const ChatRequest &request) {
  StatusOr<Template> parsed = Template::parse(source, "chat_template");
  if (!parsed.ok())
    return parsed.status().message();
  StatusOr<std::string> text = renderChat(*parsed, request);
  return text.ok() ? *text : text.status().message();
}

ChatRequest one(Json message) {
  ChatRequest request;
  request.messages.push_back(std::move(message));
  return request;
}

TEST(ChatTemplateTest, RefusesWhatIsNoConversation) {
  ChatRequest request;
  EXPECT_EQ(chat("x", request), "messages is [], expected at least one message");
  request.messages = Json::array({"text"});
  EXPECT_EQ(chat("x", request), "a message is \"text\", expected an object");
  request = one({{"role", "user"}});
  request.variables["tools"] = 1;
  EXPECT_EQ(chat("x", request), "the template variable 'tools' is part of the request itself");
}

TEST(ChatTemplateTest, VariablesWinOverSpecialTokens) {
  ChatRequest request = one({{"role", "user"}});
  request.specialTokens = {{"bos_token", "<s>"}};
  EXPECT_EQ(chat("{{ bos_token }}{{ eos_token }}", request), "<s>");
  request.variables = {{"bos_token", "B"}};
  EXPECT_EQ(chat("{{ bos_token }}", request), "B");
}

TEST(ChatTemplateTest, ContinuesTheLastText) {
  ChatRequest request = one({{"role", "assistant"}, {"content", "The tide "}});
  request.continueFinalMessage = true;
  EXPECT_EQ(chat("<{{ messages[0].content }}>", request), "<The tide ");
  EXPECT_EQ(chat("<{{ messages[0].content | trim }}>", request), "<The tide");
  EXPECT_EQ(chat("nothing", request),
            "continue_final_message is set, but the chat template leaves the last message out");
  request = one({{"role", "assistant"}});
  request.continueFinalMessage = true;
  EXPECT_EQ(chat("x", request), "continue_final_message is set, but the last message has no text to go on with");
}

} // namespace
