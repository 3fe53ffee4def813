// ArtifactText: the tokenizer and the chat template of an artifact, as prompts need them. Immutable; any thread may use
// it.
#pragma once
#include "runtime/artifact/Loader.h"
#include "runtime/template/ChatTemplate.h"
#include "runtime/tokenizer/Tokenizer.h"
#include <optional>
#include <string>
#include <vector>

namespace llmc {

// The ids of a rendered prompt, part by part: in plain parts no special token is found.
StatusOr<std::vector<int32_t>> encodeChat(const Tokenizer &tokenizer, const std::vector<ChatPart> &parts);

class ArtifactText {
public:
  // Without a tokenizer in the artifact everything that needs one is an error that says so.
  static StatusOr<ArtifactText> load(const LoadedArtifact &artifact);

  bool hasTokenizer() const { return tokenizer_.has_value(); }
  bool hasTemplate() const { return template_.has_value(); }
  StatusOr<Tokenizer> tokenizer() const;

  // The text as it is, with BOS where the tokenizer or the artifact wants one.
  StatusOr<std::vector<int32_t>> idsOfText(const std::string &text) const;
  // The conversation through the artifact's chat template; the special tokens of `request` are filled in here.
  StatusOr<std::string> renderChat(ChatRequest request) const;
  StatusOr<std::vector<int32_t>> idsOfChat(ChatRequest request) const;
  // One message of the user, and the start of the answer to it.
  static ChatRequest question(const std::string &text);

private:
  ArtifactText() = default;
  Status noTemplate() const;
  void fillSpecialTokens(const Tokenizer &tokenizer, ChatRequest &request) const;
  std::string folder_;
  SpecialIds specialIds_;
  bool addBos_ = false;
  std::optional<Tokenizer> tokenizer_;
  std::optional<Template> template_;
  std::optional<Json> specialTokens_; // what the makers call them, which need not be the texts of specialIds_
};

} // namespace llmc
