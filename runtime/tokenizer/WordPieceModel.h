// WordPiece: a word is cut into the longest tokens from its left.
#pragma once
#include "runtime/tokenizer/TokenModel.h"
#include <string>

namespace llmc {

struct WordPieceOptions {
  int32_t unknown = 0;
  std::string prefix;          // of a token that continues a word
  int64_t maxCharacters = 100; // a longer word is unknown
};

std::unique_ptr<TokenModel> makeWordPieceModel(std::shared_ptr<const Vocabulary> vocabulary, WordPieceOptions options);

} // namespace llmc
