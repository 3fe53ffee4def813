#include "tools/llmc/BenchRun.h"
#include <algorithm>
#include <chrono>

namespace llmc {
namespace {

using Clock = std::chrono::steady_clock;
double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

} // namespace

Spread spreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t half = values.size() / 2;
  double median = values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {values.front(), median, values.back()};
}

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
  if (limits.pageTokens == 0)
    return {};
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
        return Status::error(engine_.failure(event));
  return command_.prefill / secondsSince(start);
}

Status Bench::startStreams() {
  for (int32_t i = 0; i < command_.streams; ++i) {
    LLMC_ASSIGN_OR_RETURN(SequenceId id, add(promptOfDecode(), answerOfDecode()));
    streams_.push_back(id);
  }
  std::vector<SequenceId> started;
  while (started.size() < streams_.size()) {
    for (const Event &event : engine_.step()) {
      if (event.finish == Finish::Failed)
        return Status::error(engine_.failure(event));
      if (std::find(started.begin(), started.end(), event.sequence) == started.end())
        started.push_back(event.sequence);
    }
    if (engine_.idle() && started.size() < streams_.size())
      return Status::error("only " + std::to_string(started.size()) + " of " + std::to_string(streams_.size()) +
                           " streams ran");
  }
  return {};
}

void Bench::endStreams() {
  if (goesOn())
    return;
  for (SequenceId id : streams_)
    engine_.cancel(id);
  streams_.clear();
}

StatusOr<double> Bench::decode() {
  if (streams_.empty())
    LLMC_RETURN_IF_ERROR(startStreams());
  Clock::time_point start = Clock::now();
  size_t tokens = 0;
  for (int32_t i = 0; i < command_.decode; ++i)
    tokens += engine_.step().size();
  double seconds = secondsSince(start);
  if (size_t expected = static_cast<size_t>(command_.decode) * streams_.size(); tokens != expected)
    return Status::error("decode gave " + std::to_string(tokens) + " tokens, expected " + std::to_string(expected) +
                         ": not all streams ran in every step; compile with more --max-tokens");
  endStreams();
  return static_cast<double>(tokens) / seconds;
}

Status Bench::tracePrefill(StepTrace &trace, int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) {
    LLMC_ASSIGN_OR_RETURN(SequenceId id, add(tracedRows(), 1));
    engine_.trace(&trace);
    engine_.step();
    engine_.trace(nullptr);
    engine_.cancel(id); // where the prompt was longer than a step
  }
  return {};
}

Status Bench::traceDecode(StepTrace &trace, int64_t steps) {
  if (streams_.empty())
    LLMC_RETURN_IF_ERROR(startStreams());
  engine_.trace(&trace);
  for (int64_t i = 0; i < steps; ++i)
    engine_.step();
  engine_.trace(nullptr);
  endStreams();
  return {};
}

} // namespace llmc
