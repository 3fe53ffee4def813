// The command line, as docs/command-line.md has it. The only file that sees CLI11.
#include "tools/llmc/Commands.h"
#include <CLI/CLI.hpp>
#include <cstdio>

namespace llmc {

int reportFault(const Status &status) {
  std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return exitFault;
}

} // namespace llmc

using namespace llmc;

namespace {

const char *eitherHelp = "a model, or an artifact that `llmc compile` wrote";
const char *modelHelp = "a model: Hugging Face folder, .gguf file or config.json";

void addCompileOptions(CLI::App &app, CompileOptions &options) {
  app.add_option("--target", options.target, "CPU level to compile for; `llmc doctor` lists them")->capture_default_str();
  app.add_option("--weights", options.weights, "form of the weights")
      ->check(CLI::IsMember({"stored", "f32", "bf16", "int8", "int4"}))
      ->capture_default_str();
  app.add_option("--kv", options.kv, "element type of the KV cache (default: f32 with --weights f32, else bf16)")
      ->check(CLI::IsMember({"f32", "bf16"}));
  app.add_option("--max-tokens", options.maxTokens, "rows per step")->check(CLI::Range(1, 65536))->capture_default_str();
  app.add_option("--max-sequences", options.maxSequences, "sequences at once")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--context", options.context, "positions per sequence (default: the model's, at most 8192)")
      ->check(CLI::Range(1, 1 << 24));
  app.add_flag("--emulate", options.emulate, "lower special instructions to portable code with the same rounding");
  app.add_option("--without", options.without, "switch an optimization off by the name of its phase");
  app.add_option("--models", options.models, "folder of model descriptions that overlay the built-in ones");
  app.add_option("-j,--jobs", options.jobs, "threads of the compiler (default: usable cores)")->check(CLI::Range(1, 1024));
  app.add_flag("-v,--verbose", options.verbose, "say more");
}

struct CommandLine {
  CLI::App app{"llmc: compile a published language model and run it"};
  int result = exitUsage;

  CompileCommand compile;
  InspectCommand inspect;
  LogitsCommand logits;
  PerplexityCommand perplexity;
  BenchCommand bench;
  TokenizeCommand tokenize;
  TemplateCommand render;
  ChatCommand chat;
  DoctorCommand doctor;

  CommandLine() {
    app.require_subcommand(1);
    app.set_version_flag("--version", "llmc 0.1.0");
    addCompile();
    addInspect();
    addLogits();
  }

  template <typename Command> CLI::App &add(const char *name, const char *help, Command &command, int (*run)(const Command &)) {
    CLI::App &sub = *app.add_subcommand(name, help);
    sub.callback([this, &command, run] { result = run(command); });
    return sub;
  }

  void addCompile() {
    CLI::App &sub = add("compile", "write a deployable artifact", compile, runCompile);
    sub.add_option("MODEL", compile.model, modelHelp)->required();
    sub.add_option("-o,--output", compile.output, "folder of the artifact");
    addCompileOptions(sub, compile.options);
    sub.add_option("--dump-phases", compile.options.dumpPhases, "folder for the IR after each phase, as llmc-opt reads it");
    sub.add_option("--stop-after", compile.options.stopAfter, "last phase to run; nothing is written but dumps");
  }

  void addLogits() {
    CLI::App &sub = add("logits", "logits of every position, as a safetensors file", logits, runLogits);
    sub.add_option("MODEL", logits.model, eitherHelp)->required();
    sub.add_option("--ids", logits.ids, "file {\"sequences\": [[1, 2, 3], [4, 5]]}")->required();
    sub.add_option("-o,--output", logits.output, "safetensors file: logits.S, with --hidden also hidden.S.i and normed.S")
        ->required();
    sub.add_option("--executor", logits.executor, "compiled program, or an interpreter of the llm module or the tile tasks")
        ->transform(CLI::CheckedTransformer(std::map<std::string, Executor>{
            {"compiled", Executor::Compiled}, {"reference", Executor::Reference}, {"tile", Executor::Tile}}));
    sub.add_flag("--hidden", logits.hidden, "also the residual stream after each layer");
    sub.add_option("--chunk", logits.chunk, "prefill in chunks of N tokens (default: whole)")->check(CLI::Range(1, 1 << 20));
    sub.add_option("--batch", logits.together, "sequences in one batch, or one after another")
        ->transform(CLI::CheckedTransformer(std::map<std::string, bool>{{"together", true}, {"separate", false}}));
    sub.add_option("--threads", logits.threads, "workers (default: one per usable core)")->check(CLI::Range(1, 64));
    addCompileOptions(sub, logits.compile);
  }

  void addInspect() {
    CLI::App &sub = add("inspect", "what a model is made of, from config and headers", inspect, runInspect);
    sub.add_option("MODEL", inspect.model, modelHelp)->required();
    sub.add_option("--models", inspect.models, "folder of model descriptions that overlay the built-in ones");
    sub.add_flag("--json", inspect.json, "one JSON object on stdout");
  }
};

} // namespace

int main(int argc, char **argv) {
  CommandLine commandLine;
  try {
    commandLine.app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return commandLine.app.exit(error) == 0 ? exitDone : exitUsage;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: internal: %s; please report the command and this line\n", error.what());
    return exitBug;
  }
  return commandLine.result;
}
