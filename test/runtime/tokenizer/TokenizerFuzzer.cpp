// Any bytes as a tokenizer of any kind, with a text to encode. Input: a byte that names the kind, the file, and after
// the last zero byte the text.
#include "runtime/tokenizer/GgufVocabulary.h"
#include "runtime/tokenizer/Tokenizer.h"
#include <cstdlib>
#include <string_view>

namespace {

using namespace llmc;

StatusOr<Tokenizer> make(uint8_t kind, std::string_view file) {
  switch (kind % 4) {
  case 0:
    return Tokenizer::fromTokenizerJson(file, "input");
  case 1:
    return Tokenizer::fromSentencePiece(file, "input");
  case 2: {
    TiktokenOptions options;
    options.pattern = R"(\p{L}+|\p{N}{1,3}|\s+(?!\S)|\s+|[^\s\p{L}\p{N}]+)";
    return Tokenizer::fromTiktoken(file, options, "input");
  }
  default:
    break;
  }
  StatusOr<GgufVocabulary> vocabulary = ggufVocabularyFromJson(file, "input");
  if (!vocabulary.ok())
    return vocabulary.status();
  return Tokenizer::fromGguf(*vocabulary, "input");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 1)
    return 0;
  std::string_view input(reinterpret_cast<const char *>(data) + 1, size - 1);
  size_t zero = input.rfind('\0');
  std::string_view text =
      zero == input.npos ? std::string_view("Hello  w\xC3\xB6rld 123 <s>\xFF") : input.substr(zero + 1);
  StatusOr<Tokenizer> tokenizer = make(data[0], input.substr(0, zero));
  if (!tokenizer.ok())
    return 0;
  for (SpecialText mode : {SpecialText::Recognise, SpecialText::SpecialAsText, SpecialText::AllAsText}) {
    StatusOr<std::vector<int32_t>> ids = tokenizer->encode(text, {.addSpecial = true, .specialText = mode});
    if (!ids.ok())
      continue;
    for (int32_t id : *ids)
      if (id < 0 || id >= tokenizer->vocabSize())
        std::abort();
    StatusOr<std::string> whole = tokenizer->decode(*ids, /*skipSpecial=*/false);
    StreamDecoder stream(*tokenizer, /*skipSpecial=*/false);
    for (int32_t id : *ids)
      if (!stream.push(id).ok())
        break;
    (void)stream.flush().ok();
    (void)whole.ok();
  }
  return 0;
}
