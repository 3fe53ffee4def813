// The best path through the lattice of tokens (Kudo 2018), in one pass over the piece. Each token starts where one
// ended, so the work is the piece's length times the longest token's, which is limited.
#include "runtime/tokenizer/UnigramModel.h"
#include "runtime/tokenizer/ByteTrie.h"
#include "runtime/tokenizer/Unicode.h"
#include <algorithm>

namespace llmc {
namespace {

constexpr size_t maxTokenBytes = 1024;
constexpr size_t maxTotalBytes = 16u << 20;
// An unknown character scores this much below the worst token.
constexpr double unknownPenalty = 10.0;

class UnigramModel : public TokenModel {
public:
  UnigramModel(std::shared_ptr<const Vocabulary> vocabulary, UnigramOptions options)
      : vocabulary_(std::move(vocabulary)), options_(std::move(options)) {}

  Status build() {
    size_t total = 0;
    double worst = 0;
    for (size_t id = 0; id < options_.scores.size(); ++id) {
      std::optional<std::string_view> token = vocabulary_->token(static_cast<int64_t>(id));
      if (!token || token->empty() || isSkipped(id))
        continue;
      total += token->size();
      if (token->size() > maxTokenBytes || total > maxTotalBytes)
        return Status::error("token " + std::to_string(id) + " has " + std::to_string(token->size()) +
                             " bytes, limit " + std::to_string(maxTokenBytes) + ", all tokens " +
                             std::to_string(maxTotalBytes));
      trie_.insert(*token, static_cast<int32_t>(id));
    }
    for (size_t id = 0; id < options_.scores.size(); ++id)
      worst = id == 0 ? options_.scores[0] : std::min(worst, options_.scores[id]);
    unknownScore_ = add(options_.worstScore.value_or(worst), -unknownPenalty);
    return {};
  }

  Status encodePiece(std::string_view piece, Workspace &, std::vector<int32_t> &out) const override {
    std::vector<Node> best(piece.size() + 1);
    findBest(piece, best);
    // Collected from the end: (begin, end, id), a run of unknown characters as one.
    std::vector<Node> path;
    for (size_t end = piece.size(); end > 0;) {
      Node node = best[end];
      size_t begin = static_cast<size_t>(node.begin);
      node.end = end;
      if (!path.empty() && path.back().id == unknownMark && node.id == unknownMark)
        path.back().begin = node.begin;
      else
        path.push_back(node);
      end = begin;
    }
    std::reverse(path.begin(), path.end());
    for (const Node &node : path)
      LLMC_RETURN_IF_ERROR(emit(
          piece.substr(static_cast<size_t>(node.begin), node.end - static_cast<size_t>(node.begin)), node.id, out));
    return {};
  }

private:
  static constexpr int32_t unknownMark = -1;
  struct Node {
    double score = 0;
    int64_t begin = -1; // -1: not reached
    size_t end = 0;
    int32_t id = unknownMark;
  };

  bool isSkipped(size_t id) const { return id < options_.skipped.size() && options_.skipped[id]; }

  double add(double a, double b) const {
    return options_.sentencePiece ? static_cast<double>(static_cast<float>(a) + static_cast<float>(b)) : a + b;
  }

  void findBest(std::string_view piece, std::vector<Node> &best) const {
    auto improve = [&](size_t begin, size_t end, double score, int32_t id) {
      Node &node = best[end];
      double sum = add(score, best[begin].score);
      if (node.begin < 0 || sum > node.score)
        node = {sum, static_cast<int64_t>(begin), 0, id};
    };
    for (size_t begin = 0; begin < piece.size();) {
      size_t next = begin + unicode::decode(piece, begin).size;
      bool single = false;
      trie_.forEachAt(piece, begin, [&](size_t end, int32_t id) {
        // The unknown token found by its own name counts as unknown, as in the reference.
        improve(begin, end, options_.scores[static_cast<size_t>(id)], id == options_.unknown ? unknownMark : id);
        single = single || end == next;
      });
      if (!single)
        improve(begin, next, unknownScore_, unknownMark);
      begin = next;
    }
  }

  Status emit(std::string_view text, int32_t id, std::vector<int32_t> &out) const {
    if (id == unknownMark && !options_.sentencePiece)
      if (std::optional<int32_t> whole = vocabulary_->id(text))
        id = *whole;
    if (id != unknownMark) {
      out.push_back(id);
      return {};
    }
    bool allBytes = options_.byteFallback && std::all_of(text.begin(), text.end(), [&](char c) {
                      return options_.byteIds[static_cast<uint8_t>(c)] >= 0;
                    });
    if (allBytes) {
      for (char byte : text)
        out.push_back(options_.byteIds[static_cast<uint8_t>(byte)]);
      return {};
    }
    if (!options_.unknown)
      return Status::error("'" + std::string(text.substr(0, 32)) +
                           "' has no token, and the tokenizer has no unknown token (/model/unk_id)");
    out.push_back(*options_.unknown);
    return {};
  }

  std::shared_ptr<const Vocabulary> vocabulary_;
  UnigramOptions options_;
  ByteTrie trie_;
  double unknownScore_ = 0;
};

} // namespace

StatusOr<std::unique_ptr<TokenModel>> makeUnigramModel(std::shared_ptr<const Vocabulary> vocabulary,
                                                       UnigramOptions options) {
  auto model = std::make_unique<UnigramModel>(std::move(vocabulary), std::move(options));
  LLMC_RETURN_IF_ERROR(model->build());
  return std::unique_ptr<TokenModel>(std::move(model));
}

} // namespace llmc
