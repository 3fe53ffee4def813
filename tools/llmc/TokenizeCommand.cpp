// Text to ids and back, with any tokenizer that a model ships.
#include "runtime/engine/ArtifactText.h"
#include "runtime/support/Limits.h"
#include "tools/llmc/Commands.h"
#include "tools/llmc/ModelText.h"
#include <cstdio>
#include <iostream>
#include <iterator>

namespace llmc {
namespace {

StatusOr<Tokenizer> openTokenizer(const TokenizeCommand &command) {
  if (!command.tokenizer.empty())
    return tokenizerFromFile(command.tokenizer, command.pattern);
  const std::string &path = command.model;
  if (fileExists(path + "/" + manifestFile)) {
    LLMC_ASSIGN_OR_RETURN(LoadedArtifact artifact, LoadedArtifact::openForInspection(path, WeightsCheck::ByCaller));
    LLMC_ASSIGN_OR_RETURN(ArtifactText text, ArtifactText::load(artifact));
    return text.tokenizer();
  }
  // A config.json stands for its folder.
  if (isFolder(path) || !path.ends_with("config.json"))
    return tokenizerFromFile(path, command.pattern);
  size_t slash = path.find_last_of('/');
  return tokenizerFromFile(slash == std::string::npos ? "." : path.substr(0, slash), command.pattern);
}

StatusOr<std::string> givenText(const TokenizeCommand &command) {
  if (command.text)
    return *command.text;
  std::string text;
  std::vector<char> buffer(1 << 16);
  while (size_t read = std::fread(buffer.data(), 1, buffer.size(), stdin)) {
    text.append(buffer.data(), read);
    if (text.size() > limits::idsFileBytes)
      return Status::error("standard input holds more than " + std::to_string(limits::idsFileBytes) +
                           " bytes; cut it into parts");
  }
  return text;
}

StatusOr<std::vector<int32_t>> idsOf(const Json &list, const std::string &where) {
  if (!list.is_array())
    return Status::error(where + " is " + brief(list) + ", expected a list of token ids");
  std::vector<int32_t> ids;
  for (size_t i = 0; i < list.size(); ++i) {
    LLMC_ASSIGN_OR_RETURN(int64_t id, asInteger(list[i], where + "/" + std::to_string(i), 0, INT32_MAX));
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

// A JSON list, or numbers with blanks or commas between them.
StatusOr<std::vector<int32_t>> parseIds(const std::string &text) {
  size_t start = text.find_first_not_of(" \t\r\n");
  std::string list = text;
  if (start == std::string::npos || text[start] != '[') {
    list = "[";
    for (size_t at = 0; (at = text.find_first_not_of(" ,\t\r\n", at)) != std::string::npos;) {
      size_t end = std::min(text.find_first_of(" ,\t\r\n", at), text.size());
      list += (list.size() > 1 ? "," : "") + text.substr(at, end - at);
      at = end;
    }
    list += "]";
  }
  LLMC_ASSIGN_OR_RETURN(Json json, parseJson(list, "the ids", JsonRoot::Any));
  return idsOf(json, "the ids: ");
}

std::string jsonText(const Json &json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

class Tokenize {
public:
  Tokenize(const TokenizeCommand &command, const Tokenizer &tokenizer) : command_(command), tokenizer_(tokenizer) {
    options_.addSpecial = command.addSpecial;
    options_.specialText = command.noAdded     ? SpecialText::AllAsText
                           : command.noSpecial ? SpecialText::SpecialAsText
                                               : SpecialText::Recognise;
  }

  // What goes to standard output.
  StatusOr<std::string> answer() const { return command_.texts.empty() ? answerOne() : answerList(); }

private:
  StatusOr<std::string> answerOne() const {
    LLMC_ASSIGN_OR_RETURN(std::string text, givenText(command_));
    if (command_.decode) {
      LLMC_ASSIGN_OR_RETURN(std::vector<int32_t> ids, parseIds(text));
      LLMC_ASSIGN_OR_RETURN(std::string decoded, tokenizer_.decode(ids, command_.skipSpecial));
      return command_.json ? jsonText({{"text", decoded}}) : decoded;
    }
    LLMC_ASSIGN_OR_RETURN(Json ids, encode(text));
    return jsonText(command_.json ? Json{{"ids", ids}} : ids);
  }

  StatusOr<std::string> answerList() const {
    LLMC_ASSIGN_OR_RETURN(Json list, readJsonFile(command_.texts, limits::idsFileBytes, JsonRoot::Any));
    if (!list.is_array())
      return Status::error(command_.texts + ": is " + brief(list) + ", expected a list of " +
                           (command_.decode ? "lists of token ids" : "strings"));
    Json answers = Json::array();
    for (size_t i = 0; i < list.size(); ++i) {
      std::string where = command_.texts + ": /" + std::to_string(i);
      StatusOr<Json> one = command_.decode ? decode(list[i], where) : encodeJson(list[i], where);
      if (!one.ok())
        return one.status();
      answers.push_back(std::move(*one));
    }
    return jsonText(answers);
  }

  StatusOr<Json> encode(const std::string &text) const {
    LLMC_ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer_.encode(text, options_));
    return Json(ids);
  }
  StatusOr<Json> encodeJson(const Json &value, const std::string &where) const {
    LLMC_ASSIGN_OR_RETURN(std::string text, asString(value, where));
    return encode(text);
  }
  StatusOr<Json> decode(const Json &value, const std::string &where) const {
    LLMC_ASSIGN_OR_RETURN(std::vector<int32_t> ids, idsOf(value, where));
    LLMC_ASSIGN_OR_RETURN(std::string text, tokenizer_.decode(ids, command_.skipSpecial));
    return Json(text);
  }

  const TokenizeCommand &command_;
  const Tokenizer &tokenizer_;
  EncodeOptions options_;
};

} // namespace

int runTokenize(const TokenizeCommand &command) {
  if (command.model.empty() == command.tokenizer.empty()) {
    std::fprintf(stderr, "error: %s of MODEL and --tokenizer are given, expected one\n",
                 command.model.empty() ? "none" : "both");
    return exitUsage;
  }
  StatusOr<Tokenizer> tokenizer = openTokenizer(command);
  if (!tokenizer.ok())
    return reportFault(tokenizer.status());
  if (command.verbose)
    std::fprintf(stderr, "note: the tokenizer has %d ids\n", tokenizer->vocabSize());
  StatusOr<std::string> answer = Tokenize(command, *tokenizer).answer();
  if (!answer.ok())
    return reportFault(answer.status());
  return writeAnswer(*answer);
}

} // namespace llmc
