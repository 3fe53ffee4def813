// From token texts back to text.
#pragma once
#include "runtime/support/Json.h"
#include "runtime/tokenizer/Normalizers.h"
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

class DecoderStep {
public:
  virtual ~DecoderStep() = default;
  // Rewrites the list of token texts; the texts joined are the result after the last step.
  virtual Status apply(std::vector<std::string> &tokens) const = 0;
};

// What becomes of the blank that encoding put before a text: sentencepiece drops it once, or with every blank at the
// beginning.
enum class FirstBlank { Keep, Drop, DropAll };

struct Decoder {
  FirstBlank firstBlank = FirstBlank::Keep; // before the first step
  std::vector<std::unique_ptr<DecoderStep>> steps;
  bool joinByBlanks = false; // tokenizer.json without a decoder
  // Reads a "decoder" of tokenizer.json.
  static StatusOr<Decoder> read(const Json &value, const std::string &pointer);
  // The text, valid UTF-8 whatever the tokens hold. `atStart`: no text was decoded before it.
  StatusOr<std::string> decode(std::vector<std::string> tokens, bool atStart) const;
};

// Token texts are bytes already: joined, each maximal bad part becomes one U+FFFD.
Decoder makeBytesDecoder();
// Byte letters back to bytes; other texts as they are.
Decoder makeByteLetterDecoder();
// Byte pieces <0xNN> to characters, keeping the good ones of a damaged run, and U+2581 to blanks: sentencepiece's own.
Decoder makeSentencePieceDecoder(FirstBlank firstBlank);

} // namespace llmc
