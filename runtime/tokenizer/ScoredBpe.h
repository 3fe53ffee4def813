// Byte-pair encoding by scores: the part that sentencepiece files and GGUF share.
#pragma once
#include "runtime/tokenizer/BpeModel.h"
#include <span>

namespace llmc {

// The numbers that both formats use.
enum class PieceType : int32_t { Normal = 1, Unknown = 2, Control = 3, UserDefined = 4, Unused = 5, Byte = 6 };

// Merges normal pieces, highest score first. `scores` and `types` are by id; byte pieces are read off the vocabulary.
StatusOr<BpeOptions> scoredBpeOptions(const Vocabulary &vocabulary, std::span<const float> scores,
                                      std::span<const PieceType> types, const std::string &pointer);

} // namespace llmc
