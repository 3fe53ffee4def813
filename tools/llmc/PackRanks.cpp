#include "tools/llmc/PackRanks.h"
#include "runtime/support/Progress.h"

namespace llmc {
namespace {

// Where each rank is in its list.
class Heads {
public:
  explicit Heads(std::span<const RankWeights> ranks) : ranks_(ranks), next_(ranks.size()) {}

  // The ranks whose next weight is that of the first rank that has one; empty at the end. They go one further.
  std::vector<std::pair<const RankWeights *, const PlacedWeight *>> takeNext() {
    std::vector<std::pair<const RankWeights *, const PlacedWeight *>> taken;
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      std::span<const PlacedWeight> left = ranks_[rank].weights.subspan(next_[rank]);
      if (left.empty() || (!taken.empty() && left.front().recipe.name != taken.front().second->recipe.name))
        continue;
      taken.emplace_back(&ranks_[rank], &left.front());
      ++next_[rank];
    }
    return taken;
  }

private:
  std::span<const RankWeights> ranks_;
  std::vector<size_t> next_;
};

void release(const WeightRecipe &recipe, const TensorReader &tensors) {
  for (const WeightSource &source : recipe.sources)
    for (int64_t i = 0; i < source.numTensors(); ++i)
      tensors.release(source.tensorAt(i));
}

} // namespace

Status packRanks(std::span<const RankWeights> ranks, const TensorReader &tensors, int threads) {
  uint64_t total = 0, done = 0;
  for (const RankWeights &rank : ranks) {
    total += rank.bytes;
    done += rank.sink.offset();
  }
  Progress progress("packing weights", "bytes", total, Progress::When::OnTerminal, done);
  Heads heads(ranks);
  for (auto taken = heads.takeNext(); !taken.empty(); taken = heads.takeNext()) {
    std::vector<WeightPart> parts;
    for (auto [rank, weight] : taken) {
      WeightSink &sink = rank->sink;
      if (weight->offset < sink.offset())
        continue;
      done += weight->offset - sink.offset();
      LLMC_RETURN_IF_ERROR(sink.padTo(weight->offset));
      parts.push_back({weight->recipe, weight->layout, [&](std::span<const uint8_t> bytes) {
                         progress.update(done += bytes.size());
                         return sink.append(bytes);
                       }});
    }
    LLMC_RETURN_IF_ERROR(packWeights(parts, tensors, threads));
    for (auto [rank, weight] : taken)
      release(weight->recipe, tensors);
  }
  for (const RankWeights &rank : ranks)
    LLMC_RETURN_IF_ERROR(rank.sink.padTo(rank.bytes));
  return {};
}

} // namespace llmc
