// RunFlags: the flags of `run`, for every program that offers it. CLI11 is a large header: include this in one file
// only.
#pragma once
#include "tools/llmc-run/RunCommand.h"
#include <CLI/CLI.hpp>

namespace llmc {

// How answers are drawn, and with how many workers.
inline void addAnswerFlags(CLI::App &app, RunOptions &options) {
  app.add_option("-n,--max-new-tokens", options.maxNewTokens, "most tokens of each answer")->capture_default_str();
  app.add_option("--temperature", options.temperature, "0 = greedy (default: the model's for text, 0 for --ids)");
  app.add_option("--top-k", options.topK, "sample from the k most probable tokens (0 = all)");
  app.add_option("--top-p", options.topP, "sample from the fewest tokens whose probabilities reach p");
  app.add_option("--min-p", options.minP, "leave out tokens below p times the largest probability");
  app.add_option("--repetition-penalty", options.repetitionPenalty, "more than 1 makes tokens that occurred rarer");
  app.add_option("--seed", options.seed, "of the random draws")->capture_default_str();
  app.add_option("--stop", options.stop, "end the answer before this text; may be repeated")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--threads", options.threads, "workers (0 = one per usable core)")->capture_default_str();
}

// All but the artifact itself, which each program names and finds in its own way.
inline void addRunFlags(CLI::App &app, RunOptions &options) {
  CLI::Option_group *source = app.add_option_group("prompt", "what to continue");
  source->add_option("--prompt", options.prompt, "a text");
  source->add_option("--prompts", options.promptsFile, "a file with a prompt on each line, run as one batch");
  source->add_option("--ids", options.idsFile, "a file {\"sequences\": [[1, 2, 3], [4, 5]]} of token ids");
  source->require_option(1);
  addAnswerFlags(app, options);
  app.add_flag("--raw", options.raw, "no chat template: continue the text as it is");
  app.add_flag("--ignore-eos", options.ignoreEos, "go on after the model's end of sequence");
  app.add_option("--chunk", options.chunkTokens, "prompt tokens per step (0 = as many as a step holds)");
  app.add_option("--trace", options.traceFile,
                 "file for what each worker does in the first 64 steps; ui.perfetto.dev shows it");
  app.add_option_function<double>(
         "--link-latency",
         [&options](double microseconds) {
           options.link.latency = std::chrono::nanoseconds(static_cast<int64_t>(microseconds * 1e3));
         },
         "microseconds that a message between simulated ranks is under way, as between machines")
      ->check(CLI::Range(0.0, 1e9));
  app.add_option_function<double>(
         "--link-bandwidth", [&options](double gigabytes) { options.link.bytesPerSecond = gigabytes * 1e9; },
         "GB/s from one simulated rank to another")
      ->check(CLI::Range(1e-6, 1e6));
  app.add_flag("--json", options.json, "one JSON object on standard output");
}

} // namespace llmc
