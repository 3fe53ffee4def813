// The command line, as docs/command-line.md has it. The only file that sees CLI11.
#include "runtime/support/Limits.h"
#include "tools/llmc-run/RunFlags.h"
#include "lib/target/Machine.h"
#include "tools/llmc/Commands.h"
#include "tools/llmc/Interrupt.h"
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>

using namespace llmc;

namespace {

const char *eitherHelp = "a model, or an artifact that `llmc compile` wrote";
const char *jsonHelp = "one JSON object on stdout";
const char *threadsHelp = "workers (0 = one per usable core)";
const char *verboseHelp = "say more";
const char *modelHelp = "a model: Hugging Face folder, .gguf file or config.json";

// One value each time: more would swallow the words that follow.
void repeatable(CLI::Option *option) {
  option->expected(1)->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void addCompileOptions(CLI::App &app, CompileOptions &options) {
  app.add_option("--target", options.target, "CPU level to compile for; `llmc doctor` lists them")
      ->capture_default_str();
  app.add_option("--weights", options.weights, "form of the weights")
      ->check(CLI::IsMember({"stored", "f32", "bf16", "int8", "int4"}))
      ->capture_default_str();
  app.add_option("--activations", options.activations, "what multiplies quantised weights: codes of 16 or of 8 bits")
      ->check(CLI::IsMember({"int16", "int8"}))
      ->capture_default_str();
  app.add_option("--kv", options.kv, "element type of the KV cache (default: f32 with --weights f32, else bf16)")
      ->check(CLI::IsMember({"f32", "bf16", "f16", "int8"}));
  auto ranks = [&](const char *flag, int64_t &count, const char *what) {
    app.add_option(flag, count, what)->check(CLI::Range(1, 65536))->capture_default_str();
  };
  ranks("--tensor", options.grid.group.tensor, "ranks that share every matrix");
  ranks("--experts", options.grid.group.experts, "ranks that hold different experts; each is --tensor ranks");
  ranks("--pipeline", options.grid.stages, "stages of layers, one after the other; each is --experts x --tensor ranks");
  app.add_option("--max-tokens", options.maxTokens, "rows per step")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--max-sequences", options.maxSequences, "sequences at once")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--context", options.context, "positions per sequence (default: the model's, at most 8192)")
      ->check(CLI::Range(1, 1 << 24));
  app.add_flag("--emulate", options.emulate, "lower special instructions to portable code with the same rounding");
  repeatable(app.add_option("--without", options.without,
                            "switch an optimization off by the name of its phase; may be repeated"));
  app.add_option("--models", options.models, "folder of model descriptions that overlay the built-in ones");
  app.add_option("-j,--jobs", options.jobs, "threads of the compiler (default: usable cores)")
      ->check(CLI::Range(1, 1024));
  app.add_flag("!--no-kernel-cache", options.kernelCache, "compile every kernel, and keep none for the next time");
  app.add_flag("-v,--verbose", options.verbose, verboseHelp);
}

struct CommandLine {
  CLI::App app{"llmc: compile a published language model and run it"};
  int result = exitUsage;

  CompileCommand compile;
  RunCommand run;
  InspectCommand inspect;
  CoverageCommand coverage;
  PlanCommand plan;
  CheckModelCommand checkModel;
  LogitsCommand logits;
  PerplexityCommand perplexity;
  BenchCommand bench;
  SynthCommand synth;
  TokenizeCommand tokenize;
  TemplateCommand render;
  ChatCommand chat;
  DoctorCommand doctor;

  CommandLine() {
    app.require_subcommand(1);
    chat.options.maxNewTokens = 1024;
    app.set_version_flag("--version", llmcVersion);
    app.footer(
        "Exit codes: 0 done, 1 the input or the environment is at fault, 2 wrong usage, 3 a check failed, 70 a bug "
        "of ours.\n`llmc COMMAND --help` explains a command.");
    addCompile();
    addRun();
    addChat();
    addInspect();
    addCoverage();
    addPlan();
    addCheckModel();
    addLogits();
    addPerplexity();
    addTokenize();
    addTemplate();
    addBench();
    addSynth();
    addDoctor();
  }

  template <typename Command>
  CLI::App &add(const char *name, const char *help, Command &command, int (*run)(const Command &)) {
    CLI::App &sub = *app.add_subcommand(name, help);
    sub.callback([this, &command, run] { result = run(command); });
    return sub;
  }

  void addCompile() {
    CLI::App &sub = add("compile", "write a deployable artifact", compile, runCompile);
    sub.add_option("MODEL", compile.model, modelHelp)->required();
    sub.add_option("-o,--output", compile.output, "folder of the artifact");
    addCompileOptions(sub, compile.options);
    sub.add_option("--dump-phases", compile.options.dumpPhases,
                   "folder for the IR after each phase, as llmc-opt reads it");
    sub.add_option("--stop-after", compile.options.stopAfter, "last phase to run, emit being code generation; nothing is written but dumps");
    sub.add_option("--measure-perplexity", compile.perplexityText,
                   "a text file: what the form of the weights costs there, against f32 weights");
  }

  void addLogits() {
    CLI::App &sub = add("logits", "logits of every position, as a safetensors file", logits, runLogits);
    sub.add_option("MODEL", logits.model, eitherHelp)->required();
    sub.add_option("--ids", logits.ids, "file {\"sequences\": [[1, 2, 3], [4, 5]]}")->required();
    sub.add_option("-o,--output", logits.output,
                   "safetensors file: logits.S, with --hidden also hidden.S.i and normed.S, with --record record.S.NAME, "
                   "with --state state.S.NAME")
        ->required();
    sub.add_option("--executor", logits.executor,
                   "compiled program, or an interpreter of the llm module or the tile tasks")
        ->transform(CLI::CheckedTransformer(std::map<std::string, Executor>{
            {"compiled", Executor::Compiled}, {"reference", Executor::Reference}, {"tile", Executor::Tile}}));
    sub.add_flag("--hidden", logits.hidden, "also the residual stream after each layer");
    sub.add_option("--record", logits.record, "also the value that the wiring calls LAYER.BLOCK.VARIABLE; by an interpreter");
    sub.add_flag("--state", logits.state, "also the recurrent state of each sequence after its last token");
    sub.add_option("--chunk", logits.chunk, "prefill in chunks of N tokens (default: whole)")
        ->check(CLI::Range(1, 1 << 20));
    sub.add_option("--batch", logits.together, "sequences in one batch, or one after another")
        ->transform(CLI::CheckedTransformer(std::map<std::string, bool>{{"together", true}, {"separate", false}}));
    sub.add_option("--threads", logits.threads, "workers (default: one per usable core)")->check(CLI::Range(1, 64));
    addCompileOptions(sub, logits.compile);
  }

  void addRun() {
    CLI::App &sub = add("run", "continue a prompt, or answer it", run, runRun);
    sub.add_option("MODEL", run.model, eitherHelp)->required();
    addRunFlags(sub, run.options);
    addCompileOptions(sub, run.compile);
  }

  void addChat() {
    CLI::App &sub = add("chat", "a conversation in the terminal", chat, runChat);
    sub.add_option("MODEL", chat.model, eitherHelp)->required();
    sub.add_option("--system", chat.system, "what the model is told first");
    addAnswerFlags(sub, chat.options);
    addCompileOptions(sub, chat.compile);
  }

  void addInspect() {
    CLI::App &sub = add("inspect", "what a model is made of, or where an artifact keeps what", inspect, runInspect);
    sub.add_option("MODEL", inspect.model, eitherHelp)->required();
    sub.add_option("--models", inspect.models, "folder of model descriptions that overlay the built-in ones");
    sub.add_flag("--json", inspect.json, jsonHelp);
    sub.add_flag("-v,--verbose", inspect.verbose, verboseHelp);
  }

  void addCoverage() {
    CLI::App &sub =
        add("coverage", "which operators of a model have kernels, and what they cost", coverage, runCoverage);
    sub.add_option("MODEL", coverage.model, modelHelp)->required();
    auto count = [&](const char *name, int64_t &value, const char *help) {
      return sub.add_option(name, value, help)->check(CLI::Range(1, 1 << 24));
    };
    count("--rows", coverage.rows, "rows of a step of decode")->capture_default_str();
    count("--prefill", coverage.prefill, "rows of a step of prefill")->capture_default_str();
    count("--depth", coverage.depth, "positions that a row of decode sees (default: 4096, or the context if less)");
    sub.add_flag("--json", coverage.json, jsonHelp);
    addCompileOptions(sub, coverage.compile);
  }

  void addPlan() {
    CLI::App &sub = add("plan", "the memory that a model takes, and whether it fits", plan, runPlan);
    sub.add_option("MODEL", plan.model, modelHelp)->required();
    sub.add_option("--ranks", plan.ranks, "ranks that share the model (default: 1; the devices of a node with --machine)")
        ->check(CLI::Range(1, 4096));
    sub.add_option("--machine", plan.machine, "whose devices the ranks are: " + machineNames());
    sub.add_option("--batch", plan.batch, "sequences that fill their context and decode together, on ranks")
        ->check(CLI::Range(1, 1 << 20))
        ->capture_default_str();
    sub.add_flag("--explain", plan.explain, "every way to share the model, and why it is not the choice");
    sub.add_option("--html", plan.page, "file for a page that shows the ranks' memory and a step over time");
    sub.add_option("--memory", plan.memory, "GiB that there are (default: what this machine has)")
        ->check(CLI::Range(0.001, 1e9));
    sub.add_option("--threads", plan.threads, threadsHelp)->check(CLI::Range(0, 1024))->capture_default_str();
    sub.add_flag("--json", plan.json, jsonHelp);
    addCompileOptions(sub, plan.compile);
  }

  void addCheckModel() {
    CLI::App &sub = add("check-model", "everything that is wrong with a model description", checkModel, runCheckModel);
    sub.add_option("FILE", checkModel.description, "a file like those of models/")->required();
    sub.add_option("--config", checkModel.config, "a config.json that the description shall read");
    sub.add_option("--index", checkModel.index, "model.safetensors.index.json, whose names it shall expect")
        ->needs("--config");
  }

  void addPerplexity() {
    CLI::App &sub = add("perplexity", "how well a model predicts a text", perplexity, runPerplexity);
    sub.add_option("MODEL", perplexity.model, eitherHelp)->required();
    CLI::Option_group *source = sub.add_option_group("input", "what to predict");
    source->add_option("--text", perplexity.text, "a text file");
    source->add_option("--ids", perplexity.ids, "a file {\"sequences\": [[1, 2, 3], [4, 5]]} of token ids");
    source->require_option(1);
    sub.add_option("--window", perplexity.window,
                   "tokens that are predicted from each other (default: 512, or the context if less)")
        ->check(CLI::Range(2, 1 << 24));
    sub.add_option("--threads", perplexity.threads, threadsHelp)->check(CLI::Range(0, 1024))->capture_default_str();
    sub.add_flag("--json", perplexity.json, jsonHelp);
    addCompileOptions(sub, perplexity.compile);
  }

  void addBench() {
    CLI::App &sub = add("bench", "speed of prefill and decode, beside the machine's limits", bench, runBench);
    sub.add_option("MODEL", bench.model, eitherHelp)->required();
    auto count = [&](const char *name, int32_t &value, int least, const char *help) {
      sub.add_option(name, value, help)->check(CLI::Range(least, 1 << 24))->capture_default_str();
    };
    count("-p,--prefill", bench.prefill, 1, "tokens of the prompt");
    count("-n,--decode", bench.decode, 1, "tokens to decode, per stream");
    count("--streams", bench.streams, 1, "sequences that decode in one batch");
    count("--depth", bench.depth, 0, "tokens of context before decode");
    count("--repeat", bench.repeat, 1, "measurements, after one that warms up");
    sub.add_option("--threads", bench.threads, threadsHelp)->check(CLI::Range(0, 1024))->capture_default_str();
    sub.add_flag("--kernels", bench.kernels, "each kernel of a step against its own limits");
    sub.add_option("--trace", bench.traceFile,
                   "file for what each worker does in a step of prefill and four of decode; ui.perfetto.dev shows it");
    sub.add_flag("--json", bench.json, jsonHelp);
    addCompileOptions(sub, bench.compile);
  }

  void addSynth() {
    CLI::App &sub = add("synth", "a checkpoint of random weights for any config", synth, runSynth);
    sub.add_option("MODEL", synth.model, "a config.json or its folder")->required();
    sub.add_option("-o,--output", synth.output, "folder of the checkpoint")->required();
    sub.add_option("--layers", synth.layers, "keep the first so many layers (default: all)")
        ->check(CLI::Range(uint64_t{1}, limits::layers));
    sub.add_option("--seed", synth.seed, "of the weights: the same seed gives the same bytes")->capture_default_str();
    sub.add_option("--weights", synth.weights, "type of the weights; stored: as the config says")
        ->check(CLI::IsMember({"stored", "f32", "bf16", "f16"}))
        ->capture_default_str();
    sub.add_option("--models", synth.models, "folder of model descriptions that overlay the built-in ones");
    sub.add_option("-j,--jobs", synth.jobs, "threads (default: usable cores)")->check(CLI::Range(1, 1024));
    sub.add_flag("--json", synth.json, jsonHelp);
    sub.add_flag("-v,--verbose", synth.verbose, verboseHelp);
  }

  void addDoctor() {
    CLI::App &sub = add("doctor", "what the compiler has on this machine", doctor, runDoctor);
    sub.add_flag("--limits", doctor.limits, "measure arithmetic, memory and threads, in about five seconds");
    sub.add_flag("--json", doctor.json, jsonHelp);
    sub.add_flag("-v,--verbose", doctor.verbose, verboseHelp);
  }

  void addTokenize() {
    CLI::App &sub = add("tokenize", "text to token ids, and back", tokenize, runTokenize);
    sub.add_option("MODEL", tokenize.model, eitherHelp);
    sub.add_option("--tokenizer", tokenize.tokenizer,
                   "tokenizer.json, tokenizer.model, .gguf or file of ranks (tiktoken.model)");
    sub.add_option("--pattern", tokenize.pattern, "regular expression that cuts text, for a tiktoken file");
    auto *text = sub.add_option("--text", tokenize.text, "what to convert (default: standard input)");
    sub.add_option("--texts", tokenize.texts, "a file with a JSON list; the answer is a JSON list")->excludes(text);
    sub.add_flag("--decode", tokenize.decode, "ids to text: the input is token ids");
    sub.add_flag("--no-special", tokenize.noSpecial, "text of special tokens is plain text");
    sub.add_flag("--no-added", tokenize.noAdded, "text of any added token is plain text");
    sub.add_flag("--add-special", tokenize.addSpecial, "add BOS and EOS as the tokenizer says");
    sub.add_flag("--skip-special", tokenize.skipSpecial, "with --decode: leave special tokens out");
    sub.add_flag("--json", tokenize.json, jsonHelp);
    sub.add_flag("-v,--verbose", tokenize.verbose, verboseHelp);
  }

  void addTemplate() {
    CLI::App &sub = add("template", "render a chat template", render, runTemplate);
    sub.add_option("MODEL", render.model, eitherHelp);
    sub.add_option("--template", render.templateFile, "a file with a template");
    sub.add_option("--messages", render.messages, "a JSON file with the list of messages")->required();
    sub.add_option("--tools", render.tools, "a JSON file with the list of tools");
    sub.add_option("--documents", render.documents, "a JSON file with the list of documents");
    auto *bare = sub.add_flag("--no-generation-prompt", render.noGenerationPrompt, "end after the last message");
    sub.add_flag("--continue-final-message", render.continueFinalMessage, "end inside the last message")
        ->excludes(bare);
    repeatable(sub.add_option("--set", render.set, "NAME=JSON: a variable of the template; may be repeated"));
    sub.add_flag("--ids", render.ids, "print the token ids of the prompt instead of its text");
    sub.add_option("--now", render.now, "the time that the template sees, like '2026-03-05 07:08:09' (default: now)");
    sub.add_flag("-v,--verbose", render.verbose, verboseHelp);
  }
};

} // namespace

int main(int argc, char **argv) {
  reportCrashes();
  // A file beyond the shell's limit (ulimit -f) is an error of a write, as on a full disk, here and in the linker.
  std::signal(SIGXFSZ, SIG_IGN);
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
