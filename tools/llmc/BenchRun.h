// Prefill and decode of random tokens on a loaded engine, timed.
#pragma once
#include "runtime/engine/Engine.h"
#include "tools/llmc/Commands.h"
#include <algorithm>

namespace llmc {

struct Spread {
  double min = 0, median = 0, max = 0;
};
Spread spreadOf(std::vector<double> values);

class Bench {
public:
  Bench(const BenchCommand &command, Engine &engine) : command_(command), engine_(engine) {}
  // Whether the artifact holds what is asked for.
  Status check() const;
  // Tokens per second of one run.
  StatusOr<double> prefill();
  StatusOr<double> decode();
  // Records steps that are one whole prompt each, of at most a step's rows; before decode(), whose streams may go on.
  Status tracePrefill(StepTrace &trace, int64_t steps);
  // Records steps of decode, after decode().
  Status traceDecode(StepTrace &trace, int64_t steps);
  int64_t tracedRows() const { return std::min(command_.prefill, engine_.limits().maxTokens); }
  int64_t tracedDecodes() const { return std::min(command_.decode, mostTracedDecodes); }
  // In the cache of a stream, on average, before a step that traceDecode records.
  int64_t tracedLength() const {
    return promptOfDecode() + 1 + (goesOn() ? (command_.repeat + 1) * command_.decode : 0) + tracedDecodes() / 2;
  }
  // Of `run` repeated as the command says, after one that warms up.
  template <typename Run> StatusOr<Spread> repeated(Run run) {
    std::vector<double> rates;
    for (int32_t i = -1; i < command_.repeat; ++i) {
      LLMC_ASSIGN_OR_RETURN(double rate, run());
      if (i >= 0)
        rates.push_back(rate);
    }
    return spreadOf(std::move(rates));
  }
  // Tokens in the cache of a stream before the first and, on average, before a measured step of decode.
  int64_t promptOfDecode() const { return std::max(1, command_.depth); }
  int64_t lengthOfDecode() const {
    return promptOfDecode() + 1 +
           (goesOn() ? command_.decode + command_.repeat * command_.decode / 2 : command_.decode / 2);
  }

  static constexpr int32_t mostTracedDecodes = 128, decodesInFile = 4;

private:
  // Computing a deep context anew for each run takes longer than all else: the runs go on where the last one ended.
  bool goesOn() const { return command_.depth > 0; }
  // Sequences whose prompts end early go on while others are still at theirs; their answers must not end before.
  int64_t answerOfDecode() const {
    int64_t runs = goesOn() ? command_.repeat + 1 : 1;
    int64_t traced = (command_.kernels ? tracedDecodes() : 0) + (command_.traceFile.empty() ? 0 : decodesInFile);
    return runs * command_.decode + traced + 2 + command_.streams * (promptOfDecode() / engine_.limits().maxTokens + 1);
  }
  std::vector<int32_t> randomIds(int64_t count);
  StatusOr<SequenceId> add(int64_t promptTokens, int64_t newTokens);
  // Adds the streams and steps until each has given a token.
  Status startStreams();
  void endStreams(); // unless they go on

  const BenchCommand &command_;
  Engine &engine_;
  std::vector<SequenceId> streams_; // those that decode
  uint64_t state_ = 1;
};

} // namespace llmc
