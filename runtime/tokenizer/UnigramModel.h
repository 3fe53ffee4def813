// Unigram: of all ways to cut a piece into tokens, the one whose scores add up highest.
#pragma once
#include "runtime/tokenizer/TokenModel.h"
#include <array>
#include <optional>

namespace llmc {

struct UnigramOptions {
  std::vector<double> scores; // by id
  std::vector<bool> skipped;  // by id: never found in a text (empty: none)
  // The lowest score that counts for unknown characters; the lowest of all when not given.
  std::optional<double> worstScore;
  std::optional<int32_t> unknown;
  bool byteFallback = false;
  std::array<int32_t, 256> byteIds{};
  // Sums in single precision and no second look at a run of unknown characters, as sentencepiece does; otherwise as
  // tokenizer.json's reference does.
  bool sentencePiece = false;
};

StatusOr<std::unique_ptr<TokenModel>> makeUnigramModel(std::shared_ptr<const Vocabulary> vocabulary,
                                                       UnigramOptions options);

} // namespace llmc
