#include "runtime/engine/ArtifactText.h"
#include "runtime/tokenizer/GgufVocabulary.h"
#include "runtime/tokenizer/TiktokenOptions.h"
#include <algorithm>

namespace llmc {
namespace {

// What the text names but the model has no row for is no token: some tokenizer classes number their additional tokens
// past the end of the embedding.
void dropIdsBeyond(TiktokenOptions &options, int32_t vocabulary) {
  std::erase_if(options.specials, [&](const TiktokenOptions::Special &special) { return special.id >= vocabulary; });
}

StatusOr<Tokenizer> loadTokenizer(const LoadedArtifact &artifact) {
  const TokenizerFacts &facts = artifact.manifest().tokenizer;
  const std::string where = artifact.folder() + "/" + facts.files.front();
  LLMC_ASSIGN_OR_RETURN(std::string text, artifact.readSection(facts.files.front()));
  if (facts.kind == tokenizerJsonKind)
    return Tokenizer::fromTokenizerJson(text, where);
  if (facts.kind == sentencePieceKind)
    return Tokenizer::fromSentencePiece(text, where, {facts.addBos, facts.addEos});
  if (facts.kind == ggufKind) {
    LLMC_ASSIGN_OR_RETURN(GgufVocabulary vocabulary, ggufVocabularyFromJson(text, where));
    return Tokenizer::fromGguf(vocabulary, where);
  }
  LLMC_ASSIGN_OR_RETURN(std::string optionsText, artifact.readSection(facts.files[1]));
  LLMC_ASSIGN_OR_RETURN(TiktokenOptions options,
                        tiktokenOptionsFromJson(optionsText, artifact.folder() + "/" + facts.files[1]));
  dropIdsBeyond(options, artifact.manifest().vocabulary);
  const SpecialIds &ids = artifact.manifest().specialIds;
  options.bosId = ids.bos;
  if (!ids.eos.empty())
    options.eosId = ids.eos.front();
  options.addBos = facts.addBos;
  return Tokenizer::fromTiktoken(text, std::move(options), where);
}

} // namespace

// The template writes BOS itself where the model wants one.
StatusOr<std::vector<int32_t>> encodeChat(const Tokenizer &tokenizer, const std::vector<ChatPart> &parts) {
  std::vector<int32_t> ids;
  EncodeOptions options;
  for (const ChatPart &part : parts) {
    options.specialText = part.plain ? SpecialText::AllAsText : SpecialText::Recognise;
    LLMC_ASSIGN_OR_RETURN(std::vector<int32_t> encoded, tokenizer.encode(part.text, options));
    ids.insert(ids.end(), encoded.begin(), encoded.end());
    options.atStart = false;
  }
  return ids;
}

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
  if (artifact.manifest().findSection(specialTokensFile)) {
    LLMC_ASSIGN_OR_RETURN(std::string source, artifact.readSection(specialTokensFile));
    LLMC_ASSIGN_OR_RETURN(out.specialTokens_, parseJson(source, artifact.folder() + "/" + specialTokensFile));
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

Status ArtifactText::noTemplate() const { return Status::error(folder_ + ": has no chat template; use --raw"); }

void ArtifactText::fillSpecialTokens(const Tokenizer &tokenizer, ChatRequest &request) const {
  if (specialTokens_) {
    request.specialTokens = *specialTokens_;
    return;
  }
  auto special = [&](const char *name, std::optional<int32_t> id) {
    if (std::optional<std::string> token = id ? tokenizer.idToToken(*id) : std::nullopt)
      request.specialTokens[name] = *token;
  };
  special("bos_token", specialIds_.bos);
  special("eos_token", specialIds_.eos.empty() ? std::nullopt : std::optional(specialIds_.eos.front()));
  special("pad_token", specialIds_.pad);
}

StatusOr<std::string> ArtifactText::renderChat(ChatRequest request) const {
  if (!template_)
    return noTemplate();
  LLMC_ASSIGN_OR_RETURN(Tokenizer tokenizer, this->tokenizer());
  fillSpecialTokens(tokenizer, request);
  return llmc::renderChat(*template_, request);
}

StatusOr<std::vector<int32_t>> ArtifactText::idsOfChat(ChatRequest request) const {
  if (!template_)
    return noTemplate();
  LLMC_ASSIGN_OR_RETURN(Tokenizer tokenizer, this->tokenizer());
  fillSpecialTokens(tokenizer, request);
  LLMC_ASSIGN_OR_RETURN(std::vector<ChatPart> parts, renderChatParts(*template_, request));
  return encodeChat(tokenizer, parts);
}

ChatRequest ArtifactText::question(const std::string &text) {
  ChatRequest request;
  request.messages.push_back({{"role", "user"}, {"content", text}});
  request.addGenerationPrompt = true;
  return request;
}

} // namespace llmc
