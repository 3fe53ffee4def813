// Options and entry points of llmc's commands. Each returns the exit code: 0 done, 1 input or environment at fault,
// 2 wrong usage, 3 a check failed, 70 a bug of ours.
#pragma once
#include "lib/sharding/Grid.h"
#include "runtime/support/Status.h"
#include "tools/llmc-run/RunCommand.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llmc {

inline constexpr char llmcVersion[] = "llmc 0.1.0";

enum ExitCode { exitDone = 0, exitFault = 1, exitUsage = 2, exitCheckFailed = 3, exitBug = 70 };

// Prints "error: message" and gives exitFault.
int reportFault(const Status &status);
// Writes `answer` to standard output, byte for byte; a full disk or a closed pipe is a fault.
int writeAnswer(const std::string &answer);

struct CompileOptions {
  std::string target = "host";
  std::string weights = "stored";
  std::string activations = "int16";
  std::string kv; // f32, bf16, f16 or int8; empty: f32 with --weights f32, else bf16
  int64_t maxTokens = 512, maxSequences = 16;
  int64_t context = 0; // 0: the model's, at most 8192
  sharding::Grid grid = {};
  int64_t rank = 0; // whose program is made
  bool emulate = false;
  std::string dumpPhases, stopAfter;
  std::vector<std::string> without;
  std::string models; // overlay of model descriptions
  int jobs = 0;       // 0: usable cores
  bool kernelCache = true;
  bool verbose = false;
};

struct CompileCommand {
  std::string model, output;
  std::string perplexityText; // a file to measure on, or ""
  CompileOptions options;
};
int runCompile(const CompileCommand &command);

struct RunCommand {
  std::string model;
  RunOptions options; // its artifact and compileSeconds are filled in here
  CompileOptions compile;
};
int runRun(const RunCommand &command);

struct InspectCommand {
  std::string model, models;
  bool json = false, verbose = false;
};
int runInspect(const InspectCommand &command);

struct CoverageCommand {
  std::string model;
  int64_t rows = 1, prefill = 512, depth = 0; // depth 0: 4096 positions, or the context where that is less
  bool json = false;
  CompileOptions compile;
};
int runCoverage(const CoverageCommand &command);

struct PlanCommand {
  std::string model;
  int64_t ranks = 0;   // 0: 1, or the devices of a node of a machine
  std::string machine; // of lib/target/Machine.h; "": the target is one, or a CPU
  int64_t batch = 1;   // sequences
  std::string page;    // file for an HTML page, or ""
  bool explain = false;
  double memory = 0; // GiB; 0: what this machine has
  int64_t threads = 0;
  bool json = false;
  CompileOptions compile;
};
int runPlan(const PlanCommand &command);

struct CheckModelCommand {
  std::string description;
  std::string config, index; // "" or what it has to fit
};
// Says everything that is wrong with a file of models/, by itself and against a config and the names of its weights, a
// line each.
int runCheckModel(const CheckModelCommand &command);

enum class Executor { Compiled, Reference, Tile };
struct LogitsCommand {
  std::string model, ids, output;
  Executor executor = Executor::Compiled;
  bool hidden = false, state = false;
  std::vector<std::string> record; // values of the wiring, by name
  int32_t chunk = 0;
  bool together = true;
  int32_t threads = 0;
  CompileOptions compile;
};
int runLogits(const LogitsCommand &command);

struct PerplexityCommand {
  std::string model, text, ids;
  int32_t window = 0; // 0: 512, or the context where that is less
  int32_t threads = 0;
  bool json = false;
  CompileOptions compile;
};
int runPerplexity(const PerplexityCommand &command);

struct BenchCommand {
  std::string model;
  int32_t prefill = 512, decode = 128, threads = 0, streams = 1, repeat = 5, depth = 0;
  bool kernels = false;  // each kernel against its own limits
  std::string traceFile; // "" or where some steps go, for Perfetto
  bool json = false;
  CompileOptions compile;
};
int runBench(const BenchCommand &command);

struct SynthCommand {
  std::string model, output, models;
  std::string weights = "stored"; // stored, f32, bf16, f16
  int64_t layers = 0;             // 0: all
  uint64_t seed = 0;
  int jobs = 0; // 0: usable cores
  bool json = false, verbose = false;
};
int runSynth(const SynthCommand &command);

struct TokenizeCommand {
  std::string model, tokenizer; // exactly one of them
  std::string pattern;          // of a tiktoken file
  std::optional<std::string> text;
  std::string texts;
  bool decode = false, noSpecial = false, noAdded = false, addSpecial = false, skipSpecial = false, json = false;
  bool verbose = false;
};
int runTokenize(const TokenizeCommand &command);

struct TemplateCommand {
  std::string model, templateFile; // exactly one of them
  std::string messages, tools, documents, now;
  bool noGenerationPrompt = false, continueFinalMessage = false, ids = false;
  std::vector<std::string> set; // NAME=JSON
  bool verbose = false;
};
int runTemplate(const TemplateCommand &command);

struct ChatCommand {
  std::string model, system;
  RunOptions options; // of the answers
  CompileOptions compile;
};
int runChat(const ChatCommand &command);

struct DoctorCommand {
  bool limits = false; // measure what the machine can do
  bool json = false, verbose = false;
};
int runDoctor(const DoctorCommand &command);

} // namespace llmc
