// Cutting a piece of text into the pieces that the model never merges across.
#pragma once
#include "runtime/support/Json.h"
#include "runtime/tokenizer/Normalizers.h"
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

struct Piece {
  uint32_t begin, end;
};

// A text and its pieces, in order and without overlap. Steps may rewrite the text.
struct PreTokenized {
  std::string_view text;
  std::string owned; // what `text` views once a step has rewritten it
  std::vector<Piece> pieces;
  bool atStart = false; // the text begins where the whole input begins
  std::string_view view(Piece piece) const { return text.substr(piece.begin, piece.end - piece.begin); }
};

class PreTokenizerStep {
public:
  virtual ~PreTokenizerStep() = default;
  virtual Status apply(PreTokenized &text, RegexBudget &budget) const = 0;
};

// The steps of a "pre_tokenizer" of tokenizer.json, sequences flattened.
struct PreTokenizer {
  std::vector<std::unique_ptr<PreTokenizerStep>> steps;
  // The last step writes bytes as byte letters. It is left out of `steps`: a model that holds all byte letters works on
  // the bytes themselves, any other needs addLetterStep.
  bool endsInByteLetters = false;
  void addLetterStep();

  static StatusOr<PreTokenizer> read(const Json &value, const std::string &pointer);
  Status apply(PreTokenized &text, RegexBudget &budget) const;
};

enum class SplitBehavior { Isolated, Removed, Contiguous, MergedWithPrevious, MergedWithNext };

} // namespace llmc
