// Prefill and decode apart, after warm-up, and what they make of the machine's limits, measured in the same run.
#include "runtime/engine/Engine.h"
#include "tools/llmc/Commands.h"
#include "tools/llmc/Compile.h"
#include "tools/llmc/MachineLimits.h"
#include "tools/llmc/WeightReport.h"
#include <algorithm>
#include <chrono>
#include <cstdio>

namespace llmc {
namespace {

using Clock = std::chrono::steady_clock;
double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Spread {
  double min = 0, median = 0, max = 0;
};

Spread spreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t half = values.size() / 2;
  double median = values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {values.front(), median, values.back()};
}

Json jsonOf(const Spread &spread) { return {{"min", spread.min}, {"median", spread.median}, {"max", spread.max}}; }

struct Limits {
  double readBytesPerSecond = 0, operationsPerSecond = 0;
  std::string instruction;
};

class Bench {
public:
  Bench(const BenchCommand &command, Engine &engine) : command_(command), engine_(engine) {}
  Status check() const;
  // Tokens per second of one run.
  StatusOr<double> prefill();
  StatusOr<double> decode();
  template <typename Run> StatusOr<Spread> repeated(Run run) {
    std::vector<double> rates;
    for (int32_t i = -1; i < command_.repeat; ++i) { // the first one warms up
      LLMC_ASSIGN_OR_RETURN(double rate, run());
      if (i >= 0)
        rates.push_back(rate);
    }
    return spreadOf(std::move(rates));
  }

private:
  int64_t promptOfDecode() const { return std::max(1, command_.depth); }
  // Sequences whose prompts end early go on while others are still at theirs; their answers must not end before.
  int64_t answerOfDecode() const {
    return command_.decode + 2 + command_.streams * (promptOfDecode() / engine_.limits().maxTokens + 1);
  }
  std::vector<int32_t> randomIds(int64_t count);
  StatusOr<SequenceId> add(int64_t promptTokens, int64_t newTokens);
  // Steps until every stream has given a token.
  Status fillStreams(const std::vector<SequenceId> &streams);

  const BenchCommand &command_;
  Engine &engine_;
  uint64_t state_ = 1;
};

Status Bench::check() const {
  const SchedulerLimits &limits = engine_.limits();
  auto fits = [&](const char *what, int64_t needed) -> Status {
    if (needed <= limits.context)
      return {};
    return Status::error(std::string(what) + " needs " + std::to_string(needed) +
                         " positions, but the artifact was compiled for " + std::to_string(limits.context) +
                         "; ask for fewer tokens or compile with --context");
  };
  LLMC_RETURN_IF_ERROR(fits("-p", int64_t(command_.prefill) + 1));
  LLMC_RETURN_IF_ERROR(fits("-n with --depth", promptOfDecode() + answerOfDecode()));
  if (command_.streams > limits.maxSequences)
    return Status::error("--streams is " + std::to_string(command_.streams) + ", but the artifact was compiled for " +
                         std::to_string(limits.maxSequences) + " sequences at once; compile with --max-sequences");
  int64_t pages = (promptOfDecode() + answerOfDecode() + limits.pageTokens - 1) / limits.pageTokens * command_.streams;
  if (pages > limits.numPages)
    return Status::error("--streams with --depth need " + std::to_string(pages) + " KV pages, but the artifact has " +
                         std::to_string(limits.numPages) + "; ask for fewer, or compile with a larger --context");
  return {};
}

// The same ids in every run and on every machine.
std::vector<int32_t> Bench::randomIds(int64_t count) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u; // Knuth, MMIX
    ids.push_back(static_cast<int32_t>((state_ >> 33) % static_cast<uint64_t>(engine_.manifest().vocabulary)));
  }
  return ids;
}

StatusOr<SequenceId> Bench::add(int64_t promptTokens, int64_t newTokens) {
  GenerationRequest request;
  request.ids = randomIds(promptTokens);
  request.maxNewTokens = static_cast<int32_t>(newTokens);
  request.ignoreEos = true;
  return engine_.add(std::move(request));
}

StatusOr<double> Bench::prefill() {
  Clock::time_point start = Clock::now();
  LLMC_ASSIGN_OR_RETURN(SequenceId id, add(command_.prefill, 1));
  while (!engine_.idle())
    for (const Event &event : engine_.step())
      if (event.sequence == id && event.finish == Finish::Failed)
        return Status::error(Engine::failure(event));
  return command_.prefill / secondsSince(start);
}

Status Bench::fillStreams(const std::vector<SequenceId> &streams) {
  std::vector<SequenceId> started;
  while (started.size() < streams.size()) {
    for (const Event &event : engine_.step()) {
      if (event.finish == Finish::Failed)
        return Status::error(Engine::failure(event));
      if (std::find(started.begin(), started.end(), event.sequence) == started.end())
        started.push_back(event.sequence);
    }
    if (engine_.idle() && started.size() < streams.size())
      return Status::error("only " + std::to_string(started.size()) + " of " + std::to_string(streams.size()) +
                           " streams ran");
  }
  return {};
}

StatusOr<double> Bench::decode() {
  std::vector<SequenceId> streams;
  for (int32_t i = 0; i < command_.streams; ++i) {
    LLMC_ASSIGN_OR_RETURN(SequenceId id, add(promptOfDecode(), answerOfDecode()));
    streams.push_back(id);
  }
  LLMC_RETURN_IF_ERROR(fillStreams(streams));
  Clock::time_point start = Clock::now();
  size_t tokens = 0;
  for (int32_t i = 0; i < command_.decode; ++i)
    tokens += engine_.step().size();
  double seconds = secondsSince(start);
  for (SequenceId id : streams)
    engine_.cancel(id);
  if (size_t expected = static_cast<size_t>(command_.decode) * streams.size(); tokens != expected)
    return Status::error("decode gave " + std::to_string(tokens) + " tokens, expected " + std::to_string(expected) +
                         ": not all streams ran in every step; compile with more --max-tokens");
  return static_cast<double>(tokens) / seconds;
}

struct Measured {
  std::string target;
  WeightReport weights;
  int32_t threads = 0;
  Spread prefill, decode;
  Limits limits;
  double decodeFraction = 0, prefillFraction = 0;
};

Limits measureLimits(const WeightReport &weights, int threads) {
  Limits limits;
  limits.readBytesPerSecond = measureReadBandwidth(threads);
  limits.instruction = weights.instruction;
  std::optional<double> peak = measurePeak(weights.instruction, weights.vectorBits, threads);
  if (!peak)
    std::fprintf(stderr, "note: this machine has no measurable '%s', so the fraction of its peak is not known\n",
                 weights.instruction.c_str());
  limits.operationsPerSecond = peak.value_or(0);
  return limits;
}

StatusOr<Measured> measure(const BenchCommand &command) {
  LLMC_ASSIGN_OR_RETURN(std::string artifact, artifactFor(command.model, command.compile));
  EngineOptions options;
  options.threads = command.threads;
  LLMC_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::load(artifact, options));
  Measured result;
  result.target = engine->manifest().target;
  result.threads = engine->threads();
  LLMC_ASSIGN_OR_RETURN(result.weights, reportWeights(engine->artifact()));
  Bench bench(command, *engine);
  LLMC_RETURN_IF_ERROR(bench.check());
  LLMC_ASSIGN_OR_RETURN(result.prefill, bench.repeated([&] { return bench.prefill(); }));
  LLMC_ASSIGN_OR_RETURN(result.decode, bench.repeated([&] { return bench.decode(); }));
  engine.reset(); // its threads and memory would stand in the way of the limits
  result.limits = measureLimits(result.weights, result.threads);
  double stepsPerSecond = result.decode.median / command.streams;
  if (result.limits.readBytesPerSecond > 0)
    result.decodeFraction =
        static_cast<double>(result.weights.bytesPerStep) * stepsPerSecond / result.limits.readBytesPerSecond;
  double operationsPerToken = static_cast<double>(result.weights.operationsPerToken) +
                              static_cast<double>(result.weights.operationsPerLogitRow) / command.prefill;
  if (result.limits.operationsPerSecond > 0)
    result.prefillFraction = operationsPerToken * result.prefill.median / result.limits.operationsPerSecond;
  return result;
}

void reportJson(const BenchCommand &command, const Measured &m) {
  Json root = {{"target", m.target},
               {"weights", m.weights.form},
               {"threads", m.threads},
               {"prefill", {{"tokens", command.prefill}, {"tokens_per_second", jsonOf(m.prefill)}}},
               {"decode",
                {{"tokens", command.decode},
                 {"streams", command.streams},
                 {"depth", command.depth},
                 {"tokens_per_second", jsonOf(m.decode)}}},
               {"limits",
                {{"read_gb_per_second", m.limits.readBytesPerSecond / 1e9},
                 {"flops_per_second", m.limits.operationsPerSecond},
                 {"instruction", m.limits.instruction},
                 {"weight_bytes_per_step", m.weights.bytesPerStep},
                 {"decode_fraction_of_read", m.decodeFraction},
                 {"prefill_fraction_of_peak", m.prefillFraction}}}};
  std::printf("%s\n", root.dump().c_str());
}

void report(const BenchCommand &command, const Measured &m) {
  std::printf("target %s, weights %s, %d threads\n", m.target.c_str(), m.weights.form.c_str(), m.threads);
  std::printf("prefill  %6d tokens             %9.1f tokens/s (%.1f to %.1f)   %.0f%% of peak\n", command.prefill,
              m.prefill.median, m.prefill.min, m.prefill.max, 100 * m.prefillFraction);
  std::printf("decode   %6d tokens %4d streams %9.1f tokens/s (%.1f to %.1f)   %.0f%% of read bandwidth\n",
              command.decode, command.streams, m.decode.median, m.decode.min, m.decode.max, 100 * m.decodeFraction);
  std::printf("limits   read %.1f GB/s, %s %.1f Gop/s\n", m.limits.readBytesPerSecond / 1e9,
              m.limits.instruction.c_str(), m.limits.operationsPerSecond / 1e9);
}

} // namespace

int runBench(const BenchCommand &command) {
  StatusOr<Measured> measured = measure(command);
  if (!measured.ok())
    return reportFault(measured.status());
  command.json ? reportJson(command, *measured) : report(command, *measured);
  return exitDone;
}

} // namespace llmc
