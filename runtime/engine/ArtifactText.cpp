#include "runtime/engine/ArtifactText.h"
#include "runtime/support/Limits.h"
#include "runtime/tokenizer/GgufVocabulary.h"

namespace llmc {
namespace {

StatusOr<TiktokenOptions> readTiktokenOptions(const std::string &text, const std::string &file) {
  LLMC_ASSIGN_OR_RETURN(Json root, parseJson(text, file));
  TiktokenOptions options;
  const Json *pattern = find(root, "pattern");
  if (!pattern)
    return Status::error(file + ": /pattern is missing");
  LLMC_ASSIGN_OR_RETURN(options.pattern, asString(*pattern, file + ": /pattern"));
  const Json none = Json::array();
  const Json *specials = find(root, "specials");
  for (const Json &entry : specials && specials->is_array() ? *specials : none) {
    TiktokenOptions::Special special;
    const Json *content = find(entry, "content"), *id = find(entry, "id"), *isSpecial = find(entry, "special");
    if (!content || !id)
      return Status::error(file + ": an entry of /specials has no content or no id");
    LLMC_ASSIGN_OR_RETURN(special.content, asString(*content, file + ": /specials/content"));
    LLMC_ASSIGN_OR_RETURN(int64_t number, asInteger(*id, file + ": /specials/id", 0, INT32_MAX));
    special.id = static_cast<int32_t>(number);
    if (isSpecial) {
      LLMC_ASSIGN_OR_RETURN(special.special, asBool(*isSpecial, file + ": /specials/special"));
    }
    options.specials.push_back(std::move(special));
  }
  return options;
}

StatusOr<Tokenizer> loadTokenizer(const LoadedArtifact &artifact) {
  const TokenizerFacts &facts = artifact.manifest().tokenizer;
  const std::string where = artifact.folder() + "/" + facts.files.front();
  LLMC_ASSIGN_OR_RETURN(std::string text, artifact.readSection(facts.files.front()));
  if (facts.kind == tokenizerJsonKind)
    return Tokenizer::fromTokenizerJson(text, where);
  if (facts.kind == sentencePieceKind)
    return Tokenizer::fromSentencePiece(text, where);
  if (facts.kind == ggufKind) {
    LLMC_ASSIGN_OR_RETURN(GgufVocabulary vocabulary, ggufVocabularyFromJson(text, where));
    return Tokenizer::fromGguf(vocabulary, where);
  }
  LLMC_ASSIGN_OR_RETURN(std::string optionsText, artifact.readSection(facts.files[1]));
  LLMC_ASSIGN_OR_RETURN(TiktokenOptions options,
                        readTiktokenOptions(optionsText, artifact.folder() + "/" + facts.files[1]));
  const SpecialIds &ids = artifact.manifest().specialIds;
  options.bosId = ids.bos;
  if (!ids.eos.empty())
    options.eosId = ids.eos.front();
  options.addBos = facts.addBos;
  return Tokenizer::fromTiktoken(text, std::move(options), where);
}

} // namespace

StatusOr<ArtifactText> ArtifactText::load(const LoadedArtifact &artifact) {
  ArtifactText out;
  out.folder_ = artifact.folder();
  out.specialIds_ = artifact.manifest().specialIds;
  out.addBos_ = artifact.manifest().tokenizer.addBos;
  if (artifact.manifest().tokenizer.kind != noTokenizerKind) {
    LLMC_ASSIGN_OR_RETURN(Tokenizer tokenizer, loadTokenizer(artifact));
    out.tokenizer_ = std::move(tokenizer);
  }
  if (artifact.manifest().findSection(chatTemplateFile)) {
    LLMC_ASSIGN_OR_RETURN(std::string source, artifact.readSection(chatTemplateFile));
    LLMC_ASSIGN_OR_RETURN(Template parsed, Template::parse(source, "chat_template"));
    out.template_ = std::move(parsed);
  }
  return out;
}

StatusOr<Tokenizer> ArtifactText::tokenizer() const {
  if (!tokenizer_)
    return Status::error(folder_ + ": has no tokenizer; give token ids with --ids");
  return *tokenizer_;
}

StatusOr<std::vector<int32_t>> ArtifactText::idsOfText(const std::string &text) const {
  LLMC_ASSIGN_OR_RETURN(Tokenizer tokenizer, this->tokenizer());
  EncodeOptions options;
  options.addSpecial = true;
  LLMC_ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer.encode(text, options));
  if (addBos_ && specialIds_.bos && (ids.empty() || ids.front() != *specialIds_.bos))
    ids.insert(ids.begin(), *specialIds_.bos);
  return ids;
}

StatusOr<std::string> ArtifactText::renderChat(ChatRequest request) const {
  if (!template_)
    return Status::error(folder_ + ": has no chat template; use --raw");
  LLMC_ASSIGN_OR_RETURN(Tokenizer tokenizer, this->tokenizer());
  auto special = [&](const char *name, std::optional<int32_t> id) {
    if (std::optional<std::string> token = id ? tokenizer.idToToken(*id) : std::nullopt)
      request.specialTokens[name] = *token;
  };
  special("bos_token", specialIds_.bos);
  special("eos_token", specialIds_.eos.empty() ? std::nullopt : std::optional(specialIds_.eos.front()));
  special("pad_token", specialIds_.pad);
  return llmc::renderChat(*template_, request);
}

// The template writes BOS itself where the model wants one.
StatusOr<std::vector<int32_t>> ArtifactText::idsOfChat(ChatRequest request) const {
  LLMC_ASSIGN_OR_RETURN(std::string text, renderChat(std::move(request)));
  LLMC_ASSIGN_OR_RETURN(Tokenizer tokenizer, this->tokenizer());
  return tokenizer.encode(text);
}

ChatRequest ArtifactText::question(const std::string &text) {
  ChatRequest request;
  request.messages.push_back({{"role", "user"}, {"content", text}});
  request.addGenerationPrompt = true;
  return request;
}

} // namespace llmc
