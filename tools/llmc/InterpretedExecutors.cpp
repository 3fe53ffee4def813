// Interpreters over a model's own weights. Sequences run one after another or together, in chunks, as the options say.
#include "lib/reference/LlmInterpreter.h"
#include "lib/reference/TileInterpreter.h"
#include "lib/weights/ModelTensors.h"
#include "lib/weights/Pack.h"
#include "lib/weights/WeightReader.h"
#include "runtime/collective/SimulatedRanks.h"
#include "runtime/engine/BatchArrays.h"
#include "tools/llmc/Diagnostics.h"
#include "tools/llmc/Executors.h"
#include <algorithm>
#include <map>
#include <numeric>

using namespace mlir;

namespace llmc {
namespace {

// Weights of a model as f32, each kept once read.
class ModelWeights : public reference::WeightProvider {
public:
  explicit ModelWeights(const TensorReader &tensors) : tensors_(tensors) {}
  FailureOr<std::shared_ptr<const reference::Matrix>> weight(llm::WeightOp op) override {
    std::shared_ptr<const reference::Matrix> &known = kept_[op.getSymName().str()];
    if (known)
      return known;
    StatusOr<WeightReader> reader = WeightReader::open(recipeOf(op), tensors_);
    if (!reader.ok())
      return op.emitOpError() << reader.status().message();
    bool isVector = cast<llm::WeightType>(op.getType()).getShape().size() == 1;
    reference::Matrix matrix =
        isVector ? reference::Matrix(1, reader->numRows()) : reference::Matrix(reader->numRows(), reader->rowLength());
    std::vector<int64_t> rows(static_cast<size_t>(reader->numRows()));
    std::iota(rows.begin(), rows.end(), 0);
    if (Status status = reader->readRows(rows, matrix.values.data()); !status.ok())
      return op.emitOpError() << status.message();
    known = std::make_shared<const reference::Matrix>(std::move(matrix));
    return known;
  }

private:
  const TensorReader &tensors_;
  std::map<std::string, std::shared_ptr<const reference::Matrix>> kept_;
};

// Weights of a model packed as their types say, each kept once packed.
class ModelPackedWeights : public reference::PackedWeightProvider {
public:
  explicit ModelPackedWeights(const TensorReader &tensors) : tensors_(tensors) {}
  FailureOr<std::span<const uint8_t>> bytes(llm::WeightOp op) override {
    std::vector<uint8_t> &packed = kept_[op.getSymName().str()];
    if (!packed.empty())
      return std::span<const uint8_t>(packed);
    StatusOr<PackedLayout> layout = layoutOf(cast<llm::WeightType>(op.getType()));
    if (!layout.ok())
      return op.emitOpError() << layout.status().message();
    auto append = [&](std::span<const uint8_t> bytes) {
      packed.insert(packed.end(), bytes.begin(), bytes.end());
      return Status();
    };
    if (Status status = packWeight(recipeOf(op), *layout, tensors_, append); !status.ok())
      return op.emitOpError() << status.message();
    return std::span<const uint8_t>(packed);
  }

private:
  const TensorReader &tensors_;
  std::map<std::string, std::vector<uint8_t>> kept_;
};

// The tokens of one step: for each sequence a range of its ids.
struct Round {
  std::vector<std::pair<int64_t, int64_t>> ranges; // begin, end
  int64_t rows() const {
    int64_t total = 0;
    for (auto [begin, end] : ranges)
      total += end - begin;
    return total;
  }
};

std::vector<Round> roundsOf(const Sequences &sequences, const ExecutorOptions &options, int64_t maxTokens) {
  std::vector<Round> rounds;
  int64_t chunk = options.chunk > 0 ? options.chunk : maxTokens;
  std::vector<int64_t> done(sequences.size(), 0);
  auto plan = [&](size_t first, size_t last) {
    while (true) {
      Round round;
      round.ranges.assign(sequences.size(), {0, 0});
      int64_t room = maxTokens;
      for (size_t s = first; s < last; ++s) {
        int64_t take = std::min({chunk, room, static_cast<int64_t>(sequences[s].size()) - done[s]});
        round.ranges[s] = {done[s], done[s] + take};
        done[s] += take;
        room -= take;
      }
      if (round.rows() == 0)
        return;
      rounds.push_back(std::move(round));
    }
  };
  if (options.together)
    plan(0, sequences.size());
  else
    for (size_t s = 0; s < sequences.size(); ++s)
      plan(s, s + 1);
  return rounds;
}

// The arrays behind an llmc_batch of one round in which every row's logits are wanted; sequence s owns slot s and
// the pages s * pagesPerSequence and following.
struct RoundBatch : BatchArrays {
  RoundBatch(const Round &round, const Sequences &sequences, int32_t pagesPerSequence) {
    queryStart = {0};
    for (size_t s = 0; s < sequences.size(); ++s) {
      auto [begin, end] = round.ranges[s];
      if (begin == end)
        continue;
      for (int64_t position = begin; position < end; ++position) {
        logitRows.push_back(static_cast<int32_t>(tokens.size()));
        tokens.push_back(sequences[s][static_cast<size_t>(position)]);
        positions.push_back(static_cast<int32_t>(position));
        tokenSequence.push_back(static_cast<int32_t>(length.size()));
      }
      queryStart.push_back(static_cast<int32_t>(tokens.size()));
      length.push_back(static_cast<int32_t>(end));
      stateSlots.push_back(static_cast<int32_t>(s));
      for (int32_t page = 0; page < pagesPerSequence; ++page)
        pageTable.push_back(static_cast<int32_t>(s) * pagesPerSequence + page);
    }
    pageTableStride = pagesPerSequence;
  }
};

// Nothing of what another stage records.
void appendRows(reference::Matrix &to, const reference::Matrix &from, int64_t first, int64_t count) {
  if (from.values.empty())
    return;
  to.columns = from.columns;
  to.rows += count;
  auto begin = from.values.begin() + first * from.columns;
  to.values.insert(to.values.end(), begin, begin + count * from.columns);
}

Status checkIds(const Model &model, const Sequences &sequences) {
  for (size_t s = 0; s < sequences.size(); ++s)
    for (int32_t id : sequences[s])
      if (id < 0 || id >= model.spec.vocabulary)
        return Status::error("sequence " + std::to_string(s) + " holds token " + std::to_string(id) +
                             ", but the vocabulary has " + std::to_string(model.spec.vocabulary));
  return {};
}

} // namespace

namespace {

// What the rank `compile.rank` computes; `transport` is null where it is the only one.
StatusOr<std::vector<SequenceLogits>> referenceLogitsOf(const Model &model, const CompileOptions &compile,
                                                        const Sequences &sequences, const ExecutorOptions &options,
                                                        Transport *transport) {
  LLMC_ASSIGN_OR_RETURN(CompiledModule lowered, buildAndLower(model, compile));
  DiagnosticCollector diagnostics(lowered.context.get(), compile.verbose);
  ModelTensors tensors(model.files);
  ModelWeights weights(tensors);
  auto interpreter = reference::LlmInterpreter::create(*lowered.module, weights, transport);
  if (failed(interpreter))
    return diagnostics.status("the reference interpreter refused the module");
  std::vector<SequenceLogits> results(sequences.size());
  for (const Round &round : roundsOf(sequences, options, compile.maxTokens)) {
    reference::StepInput input;
    input.records = options.records;
    for (size_t s = 0; s < sequences.size(); ++s)
      input.sequences.emplace_back(sequences[s].begin() + round.ranges[s].first,
                                   sequences[s].begin() + round.ranges[s].second);
    auto output = interpreter->step(input);
    if (failed(output))
      return diagnostics.status("the reference interpreter failed");
    for (size_t s = 0; s < sequences.size(); ++s) {
      int64_t count = round.ranges[s].second - round.ranges[s].first;
      if (count == 0)
        continue;
      appendRows(results[s].logits, output->logits[s], 0, count);
      if (!options.records)
        continue;
      results[s].records.resize(output->records[s].size());
      for (size_t index = 0; index < output->records[s].size(); ++index)
        appendRows(results[s].records[index], output->records[s][index], 0, count);
    }
  }
  for (size_t s = 0; options.states && s < sequences.size(); ++s)
    results[s].states = interpreter->stateOf(s);
  return results;
}

// Every stage records its own layers; of the last rank of each group, all have the same.
void takeRecords(std::vector<SequenceLogits> &into, const std::vector<SequenceLogits> &from) {
  for (size_t s = 0; s < into.size(); ++s) {
    into[s].records.resize(std::max(into[s].records.size(), from[s].records.size()));
    for (size_t index = 0; index < from[s].records.size(); ++index)
      if (!from[s].records[index].values.empty())
        into[s].records[index] = from[s].records[index];
  }
}

using LogitsOfRank = StatusOr<std::vector<SequenceLogits>>(const Model &, const CompileOptions &, const Sequences &,
                                                           const ExecutorOptions &, Transport *);

// All ranks on threads of this process; what they all have is told once.
StatusOr<std::vector<SequenceLogits>> onRanks(LogitsOfRank &logitsOf, const Model &model, const CompileOptions &compile,
                                              const Sequences &sequences, const ExecutorOptions &options) {
  LLMC_RETURN_IF_ERROR(checkIds(model, sequences));
  if (compile.grid.ranks() == 1)
    return logitsOf(model, compile, sequences, options, nullptr);
  if (options.states)
    return Status::error("--state is of one rank; states of several are parts of it");
  std::vector<std::vector<SequenceLogits>> results(static_cast<size_t>(compile.grid.ranks()));
  SimulatedRanks simulated(
      {static_cast<int32_t>(compile.grid.stages), static_cast<int32_t>(compile.grid.group.ranks())});
  LLMC_RETURN_IF_ERROR(simulated.run([&](Transport &transport) -> Status {
    CompileOptions own = compile;
    own.rank = transport.number();
    LLMC_ASSIGN_OR_RETURN(results[static_cast<size_t>(own.rank)], logitsOf(model, own, sequences, options, &transport));
    return {};
  }));
  for (size_t rank = 1; rank < results.size(); ++rank) {
    for (size_t s = 0; s < sequences.size(); ++s)
      if (results[rank][s].logits.values != results[0][s].logits.values)
        return Status::error("rank " + std::to_string(rank) + " computed other logits than rank 0");
    takeRecords(results[0], results[rank]);
  }
  return std::move(results[0]);
}

// The same by the tile tasks.
StatusOr<std::vector<SequenceLogits>> tileLogitsOf(const Model &model, const CompileOptions &compile,
                                                   const Sequences &sequences, const ExecutorOptions &options,
                                                   Transport *transport) {
  LLMC_ASSIGN_OR_RETURN(CompiledModule lowered, buildAndLower(model, compile));
  DiagnosticCollector diagnostics(lowered.context.get(), compile.verbose);
  ModelTensors tensors(model.files);
  ModelPackedWeights weights(tensors);
  int64_t longest = 1;
  for (const std::vector<int32_t> &ids : sequences)
    longest = std::max(longest, static_cast<int64_t>(ids.size()));
  // Absent where no layer keeps keys and values.
  auto positions = (*lowered.module)->getAttrOfType<IntegerAttr>("llmc.page_positions");
  auto pagesPerSequence = static_cast<int32_t>(positions ? (longest + positions.getInt() - 1) / positions.getInt() : 0);
  auto count = static_cast<int64_t>(sequences.size());
  auto interpreter =
      reference::TileInterpreter::create(*lowered.module, weights, pagesPerSequence * count, count, transport);
  if (failed(interpreter))
    return diagnostics.status("the tile interpreter refused the module");
  std::vector<SequenceLogits> results(sequences.size());
  for (const Round &round : roundsOf(sequences, options, compile.maxTokens)) {
    RoundBatch batch(round, sequences, pagesPerSequence);
    auto output = (*interpreter)->step(batch.view(), options.records);
    if (failed(output))
      return diagnostics.status("the tile interpreter failed");
    int64_t row = 0;
    for (size_t s = 0; s < sequences.size(); ++s) {
      int64_t count = round.ranges[s].second - round.ranges[s].first;
      if (count == 0)
        continue;
      appendRows(results[s].logits, output->logits, row, count);
      results[s].records.resize(output->records.size());
      for (size_t index = 0; index < output->records.size(); ++index)
        appendRows(results[s].records[index], output->records[index], row, count);
      row += count;
    }
  }
  for (size_t s = 0; options.states && s < sequences.size(); ++s)
    results[s].states = (*interpreter)->statesOf(static_cast<int64_t>(s));
  return results;
}

} // namespace

StatusOr<std::vector<SequenceLogits>> referenceLogits(const Model &model, const CompileOptions &compile,
                                                      const Sequences &sequences, const ExecutorOptions &options) {
  CompileOptions phases = compile;
  phases.stopAfter = "shard";
  return onRanks(referenceLogitsOf, model, phases, sequences, options);
}

StatusOr<std::vector<SequenceLogits>> tileLogits(const Model &model, const CompileOptions &compile,
                                                 const Sequences &sequences, const ExecutorOptions &options) {
  return onRanks(tileLogitsOf, model, compile, sequences, options);
}

} // namespace llmc
