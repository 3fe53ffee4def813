// What a tokenizer consists of, whatever file it came from. Readers fill it; Tokenizer.cpp runs it.
#pragma once
#include "runtime/tokenizer/AddedTokens.h"
#include "runtime/tokenizer/Decoders.h"
#include "runtime/tokenizer/Normalizers.h"
#include "runtime/tokenizer/PreTokenizers.h"
#include "runtime/tokenizer/TokenModel.h"
#include "runtime/tokenizer/Tokenizer.h"
#include "runtime/tokenizer/Vocabulary.h"
#include <mutex>

namespace llmc {

struct Tokenizer::Parts {
  // Cuts a text before anything else looks at it; empty when the format has no such rule.
  std::function<std::vector<std::string_view>(std::string_view)> cut;
  AddedTokens added;
  bool allAddedAreSpecial = false;        // in a text, whatever is said of them for decoding
  std::unique_ptr<Normalizer> normalizer; // may be null
  PreTokenizer preTokenizer;
  std::shared_ptr<const Vocabulary> vocabulary; // gives added tokens their text, but does not find them by it
  std::unique_ptr<TokenModel> model;
  // Instead of `model` when no added token may be found; null where the model never finds one.
  std::unique_ptr<TokenModel> untrustedModel;
  Decoder decoder;
  // A token whose text differs in decoding from its name: control pieces, unknown.
  std::unordered_map<int32_t, std::string> decodedAs;
  std::vector<int32_t> prefix, suffix; // what addSpecial puts around the text
  std::optional<int32_t> bos, eos;

  // Workspaces not in use. The lock is held for the hand-over only.
  mutable std::mutex workspacesLock;
  mutable std::vector<std::unique_ptr<Workspace>> workspaces;

  Status normalize(std::string &text, RegexBudget &budget) const;
};

} // namespace llmc
