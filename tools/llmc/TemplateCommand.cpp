// Renders the chat template of a model, an artifact or a file.
#include "lib/importer/ReadModel.h"
#include "runtime/artifact/Loader.h"
#include "runtime/engine/ArtifactText.h"
#include "runtime/support/Limits.h"
#include "runtime/template/ChatTemplate.h"
#include "tools/llmc/Commands.h"
#include "tools/llmc/ModelText.h"
#include <cstdio>
#include <ctime>

namespace llmc {
namespace {

// "2026-03-05 07:08:09", with T for the blank, or the date alone.
StatusOr<std::tm> parseTime(const std::string &text) {
  for (const char *format : {"%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d"}) {
    std::tm time = {};
    const char *end = ::strptime(text.c_str(), format, &time);
    if (!end || *end)
      continue;
    // Fills in the day of the week; a day that does not exist would become another.
    std::tm whole = time;
    ::timegm(&whole);
    if (whole.tm_mday == time.tm_mday)
      return whole;
  }
  return Status::error("--now is " + inQuotes(text) + ", expected a time like '2026-03-05 07:08:09'");
}

// NAME=JSON.
Status setVariable(Json &variables, const std::string &text) {
  size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return Status::error("--set is " + inQuotes(text) + ", expected NAME=JSON");
  std::string name = text.substr(0, equals);
  LLMC_ASSIGN_OR_RETURN(variables[name], parseJson(text.substr(equals + 1), "--set " + name, JsonRoot::Any));
  return {};
}

StatusOr<Json> readList(const std::string &file, const char *key) {
  LLMC_ASSIGN_OR_RETURN(Json json, readJsonFile(file, limits::configBytes, JsonRoot::Any));
  if (const Json *inside = json.is_object() ? find(json, key) : nullptr)
    return *inside;
  if (!json.is_array())
    return Status::error(file + ": is " + brief(json) + ", expected a list of " + key);
  return json;
}

StatusOr<ChatRequest> requestOf(const TemplateCommand &command) {
  ChatRequest request;
  LLMC_ASSIGN_OR_RETURN(request.messages, readList(command.messages, "messages"));
  if (!command.tools.empty()) {
    LLMC_ASSIGN_OR_RETURN(request.tools, readList(command.tools, "tools"));
  }
  if (!command.documents.empty()) {
    LLMC_ASSIGN_OR_RETURN(request.documents, readList(command.documents, "documents"));
  }
  request.continueFinalMessage = command.continueFinalMessage;
  request.addGenerationPrompt = !command.noGenerationPrompt && !command.continueFinalMessage;
  for (const std::string &text : command.set)
    LLMC_RETURN_IF_ERROR(setVariable(request.variables, text));
  if (!command.now.empty()) {
    LLMC_ASSIGN_OR_RETURN(request.render.now, parseTime(command.now));
  }
  return request;
}

StatusOr<std::string> renderFile(const TemplateCommand &command, ChatRequest request) {
  LLMC_ASSIGN_OR_RETURN(std::string source, readFile(command.templateFile, limits::templateSourceBytes));
  LLMC_ASSIGN_OR_RETURN(Template parsed, Template::parse(source, command.templateFile));
  request.specialTokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"pad_token", "<pad>"}, {"unk_token", "<unk>"}};
  return renderChat(parsed, request);
}

// A model may publish a second template for requests with tools; transformers takes it then.
const std::string &templateFor(const GenerationFacts &facts, const ChatRequest &request) {
  for (const auto &[name, source] : facts.otherTemplates)
    if (name == "tool_use" && !request.tools.is_null())
      return source;
  return facts.chatTemplate;
}

StatusOr<std::string> idsText(const StatusOr<std::vector<int32_t>> &ids) {
  return ids.ok() ? Json(*ids).dump() + "\n" : StatusOr<std::string>(ids.status());
}

StatusOr<std::string> renderArtifact(const TemplateCommand &command, ChatRequest request) {
  LLMC_ASSIGN_OR_RETURN(LoadedArtifact artifact,
                        LoadedArtifact::openForInspection(command.model, WeightsCheck::ByCaller));
  LLMC_ASSIGN_OR_RETURN(ArtifactText text, ArtifactText::load(artifact));
  return command.ids ? idsText(text.idsOfChat(std::move(request))) : text.renderChat(std::move(request));
}

StatusOr<std::string> renderModel(const TemplateCommand &command, ChatRequest request) {
  LLMC_ASSIGN_OR_RETURN(ModelFiles files, ModelFiles::open(command.model));
  LLMC_ASSIGN_OR_RETURN(GenerationFacts facts, readGenerationFacts(files));
  const std::string &source = templateFor(facts, request);
  if (source.empty())
    return Status::error(command.model + ": has no chat template; give one with --template");
  LLMC_ASSIGN_OR_RETURN(Template parsed, Template::parse(source, "chat_template"));
  for (const auto &[name, token] : facts.specialTokens)
    request.specialTokens[name] = token;
  if (!command.ids)
    return renderChat(parsed, request);
  LLMC_ASSIGN_OR_RETURN(TokenizerFiles tokenizerFiles, tokenizerFilesOf(files));
  LLMC_ASSIGN_OR_RETURN(Tokenizer tokenizer, tokenizerOf(tokenizerFiles, command.model));
  LLMC_ASSIGN_OR_RETURN(std::vector<ChatPart> parts, renderChatParts(parsed, request));
  return idsText(encodeChat(tokenizer, parts));
}

StatusOr<std::string> answer(const TemplateCommand &command, ChatRequest request) {
  if (command.model.empty())
    return renderFile(command, std::move(request));
  if (fileExists(command.model + "/" + manifestFile))
    return renderArtifact(command, std::move(request));
  return renderModel(command, std::move(request));
}

} // namespace

int runTemplate(const TemplateCommand &command) {
  if (command.model.empty() == command.templateFile.empty()) {
    std::fprintf(stderr, "error: %s of MODEL and --template are given, expected one\n",
                 command.model.empty() ? "none" : "both");
    return exitUsage;
  }
  if (command.ids && command.model.empty()) {
    std::fprintf(stderr, "error: --ids needs the tokenizer of a MODEL, --template has none\n");
    return exitUsage;
  }
  StatusOr<ChatRequest> request = requestOf(command);
  if (!request.ok())
    return reportFault(request.status());
  StatusOr<std::string> text = answer(command, std::move(*request));
  if (!text.ok())
    return reportFault(text.status());
  return writeAnswer(*text);
}

} // namespace llmc
