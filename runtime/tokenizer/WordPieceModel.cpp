// The greedy match of WordPiece. Quadratic in a word, whose length is limited.
#include "runtime/tokenizer/WordPieceModel.h"
#include "runtime/tokenizer/Unicode.h"

namespace llmc {
namespace {

class WordPieceModel : public TokenModel {
public:
  WordPieceModel(std::shared_ptr<const Vocabulary> vocabulary, WordPieceOptions options)
      : vocabulary_(std::move(vocabulary)), options_(std::move(options)) {}

  Status encodePiece(std::string_view piece, Workspace &, std::vector<int32_t> &out) const override {
    if (piece.empty())
      return {};
    size_t before = out.size();
    bool known = unicode::countCharacters(piece) <= static_cast<size_t>(options_.maxCharacters);
    std::string key;
    for (size_t start = 0; known && start < piece.size();) {
      size_t end = piece.size();
      for (; end > start; end = previousCharacter(piece, end)) {
        key = start > 0 ? options_.prefix : std::string();
        key += piece.substr(start, end - start);
        if (std::optional<int32_t> id = vocabulary_->id(key)) {
          out.push_back(*id);
          break;
        }
      }
      known = end > start;
      start = end;
    }
    if (!known) {
      out.resize(before);
      out.push_back(options_.unknown);
    }
    return {};
  }

private:
  static size_t previousCharacter(std::string_view text, size_t end) {
    --end;
    while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80)
      --end;
    return end;
  }

  std::shared_ptr<const Vocabulary> vocabulary_;
  WordPieceOptions options_;
};

} // namespace

std::unique_ptr<TokenModel> makeWordPieceModel(std::shared_ptr<const Vocabulary> vocabulary, WordPieceOptions options) {
  return std::make_unique<WordPieceModel>(std::move(vocabulary), std::move(options));
}

} // namespace llmc
