// RunCommand: what `llmc-run` and `llmc run` do with an artifact, without the parsing of flags (RunFlags.h).
#pragma once
#include "runtime/artifact/Manifest.h"
#include "runtime/collective/SimulatedRanks.h"
#include "runtime/engine/Sampler.h"
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace llmc {

struct RunOptions {
  std::string artifact;
  // Exactly one of these.
  std::optional<std::string> prompt;
  std::optional<std::string> promptsFile; // a prompt on each line
  std::optional<std::string> idsFile;     // {"sequences": [[1, 2], [3]]}

  int32_t maxNewTokens = 256;
  // Where not given: what the model's authors recommend for text, greedy for ids.
  std::optional<double> temperature;
  std::optional<int32_t> topK;
  std::optional<double> topP;
  std::optional<double> minP;
  std::optional<double> repetitionPenalty;
  uint64_t seed = 0;
  std::vector<std::string> stop;
  bool raw = false;       // no chat template
  bool ignoreEos = false; // go on after the end of sequence
  bool json = false;
  int32_t threads = 0;
  int32_t chunkTokens = 0;
  SimulatedLink link = {};
  std::string traceFile;     // "" or where the first steps go, for Perfetto
  double compileSeconds = 0; // for the report of a driver that compiled first
};

// How to draw: what was given, else what the model's authors recommend, except for ids.
SamplingParams samplingOf(const RunOptions &options, const GenerationDefaults &defaults);

// Writes the answers to `out` and one line per failure to `err`; the result is the exit code: 0, or 1 when the input or
// the environment is at fault.
int runArtifact(const RunOptions &options, std::ostream &out, std::ostream &err);

} // namespace llmc
