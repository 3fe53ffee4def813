#include "tools/llmc-run/RunCommand.h"
#include "runtime/engine/ArtifactText.h"
#include "runtime/engine/ChromeTrace.h"
#include "runtime/engine/RankEngines.h"
#include "runtime/engine/TextGeneration.h"
#include "runtime/support/AtomicOutput.h"
#include "runtime/support/Limits.h"
#include "runtime/support/Progress.h"
#include "tools/llmc-run/IdsFile.h"
#include <algorithm>
#include <chrono>
#include <map>
#include <ostream>
#include <streambuf>

namespace llmc {
namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Answer {
  std::vector<int32_t> promptIds, ids;
  std::string text;
  Finish finish = Finish::None;
};

constexpr size_t tracedSteps = 64;

// What is recorded, and the names of what is in it.
struct Tracing {
  DispatchManifest manifest;
  StepTrace trace;
};

struct Seconds {
  double compile = 0, load = 0, prefill = 0, decode = 0;
};

StatusOr<std::vector<std::string>> readPrompts(const RunOptions &options) {
  if (options.prompt)
    return std::vector<std::string>{*options.prompt};
  LLMC_ASSIGN_OR_RETURN(std::string text, readFile(*options.promptsFile, limits::idsFileBytes));
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    if (!lines.back().empty() && lines.back().back() == '\r')
      lines.back().pop_back();
    at = end + 1;
  }
  if (lines.empty())
    return Status::error(*options.promptsFile + ": has no line, expected a prompt on each");
  return lines;
}

class Run {
public:
  Run(const RunOptions &options, Engine &engine, double loadSeconds, std::ostream &out, std::ostream &err)
      : options_(options), out_(out), err_(err), engine_(&engine) {
    seconds_.compile = options.compileSeconds;
    seconds_.load = loadSeconds;
  }
  Status run();

private:
  StatusOr<std::vector<std::vector<int32_t>>> promptIds() const;
  Status generate();
  Status addWaiting(TextGeneration &generation);
  Status take(const TextEvent &event);
  Status startTrace();
  Status writeTrace();
  void report() const;
  void reportJson() const;
  bool streams() const { return !options_.json && answers_.size() == 1 && !options_.idsFile; }

  const RunOptions &options_;
  std::ostream &out_, &err_;
  Engine *engine_;
  std::unique_ptr<Tracing> tracing_; // where asked for
  std::optional<ArtifactText> text_;
  std::vector<Answer> answers_;
  std::map<SequenceId, size_t> answerOf_;
  size_t added_ = 0;
  Seconds seconds_;
};

Status Run::run() {
  LLMC_ASSIGN_OR_RETURN(ArtifactText text, ArtifactText::load(engine_->artifact()));
  text_ = std::move(text);
  LLMC_ASSIGN_OR_RETURN(std::vector<std::vector<int32_t>> prompts, promptIds());
  for (std::vector<int32_t> &ids : prompts)
    answers_.emplace_back().promptIds = std::move(ids);
  LLMC_RETURN_IF_ERROR(startTrace());
  LLMC_RETURN_IF_ERROR(generate());
  LLMC_RETURN_IF_ERROR(writeTrace());
  options_.json ? reportJson() : report();
  out_.flush();
  return out_.good() ? Status() : Status::error("cannot write the answer to standard output");
}

StatusOr<std::vector<std::vector<int32_t>>> Run::promptIds() const {
  if (options_.idsFile)
    return readIdsFile(*options_.idsFile);
  LLMC_ASSIGN_OR_RETURN(std::vector<std::string> prompts, readPrompts(options_));
  bool chat = !options_.raw && text_->hasTemplate();
  if (!options_.raw && !chat)
    err_ << "note: " << options_.artifact << " has no chat template, the prompt is used as it is\n";
  std::vector<std::vector<int32_t>> out;
  for (const std::string &prompt : prompts) {
    StatusOr<std::vector<int32_t>> ids =
        chat ? text_->idsOfChat(ArtifactText::question(prompt)) : text_->idsOfText(prompt);
    if (!ids.ok())
      return ids.status();
    out.push_back(std::move(*ids));
  }
  return out;
}

Status Run::generate() {
  std::optional<Tokenizer> tokenizer;
  if (text_->hasTokenizer()) {
    LLMC_ASSIGN_OR_RETURN(Tokenizer found, text_->tokenizer());
    tokenizer = std::move(found);
  }
  TextGeneration generation(*engine_, std::move(tokenizer));
  uint64_t promptTokens = 0, done = 0;
  for (const Answer &answer : answers_)
    promptTokens += answer.promptIds.size();
  Progress progress("prefill", "tokens", promptTokens,
                    engine_->isFirstRank() ? Progress::When::OnTerminal : Progress::When::Never);
  LLMC_RETURN_IF_ERROR(addWaiting(generation));
  while (!generation.idle()) {
    Clock::time_point start = Clock::now();
    std::vector<TextEvent> events = generation.step();
    (engine_->stepPromptTokens() > 0 ? seconds_.prefill : seconds_.decode) += secondsSince(start);
    done += static_cast<uint64_t>(engine_->stepPromptTokens());
    done < promptTokens ? progress.update(done) : progress.finish();
    for (const TextEvent &event : events)
      LLMC_RETURN_IF_ERROR(take(event));
    LLMC_RETURN_IF_ERROR(addWaiting(generation));
  }
  return {};
}

Status Run::addWaiting(TextGeneration &generation) {
  for (; added_ < answers_.size() && engine_->accepts(); ++added_) {
    TextRequest request;
    request.generation.ids = answers_[added_].promptIds;
    request.generation.maxNewTokens = options_.maxNewTokens;
    request.generation.sampling = samplingOf(options_, engine_->manifest().generation);
    request.generation.ignoreEos = options_.ignoreEos;
    request.stopStrings = options_.stop;
    StatusOr<SequenceId> id = generation.add(std::move(request));
    if (!id.ok())
      return answers_.size() == 1 ? id.status() : id.status().inside("sequence " + std::to_string(added_));
    answerOf_[*id] = added_;
  }
  return {};
}

Status Run::take(const TextEvent &event) {
  Answer &answer = answers_[answerOf_[event.sequence]];
  if (event.finish == Finish::Failed)
    return Status::error(event.failure);
  answer.ids.push_back(event.token);
  answer.text += event.text;
  answer.finish = event.finish;
  if (streams())
    out_ << event.text << std::flush;
  return out_.good() ? Status() : Status::error("cannot write the answer to standard output");
}

Status Run::startTrace() {
  if (options_.traceFile.empty() || !engine_->isFirstRank())
    return {};
  LLMC_ASSIGN_OR_RETURN(DispatchManifest manifest, engine_->artifact().readDispatch());
  TraceRoom room = traceRoomFor(manifest, engine_->manifest());
  tracing_.reset(new Tracing{std::move(manifest), StepTrace(engine_->threads(), room, tracedSteps)});
  engine_->trace(&tracing_->trace);
  return {};
}

Status Run::writeTrace() {
  if (!tracing_)
    return {};
  engine_->trace(nullptr);
  LLMC_RETURN_IF_ERROR(writeFileAtomically(options_.traceFile, chromeTrace(tracing_->trace, tracing_->manifest)));
  err_ << "note: " << tracing_->trace.steps().size() << " steps are in " << options_.traceFile
       << "; open it at https://ui.perfetto.dev\n";
  return {};
}

void Run::report() const {
  if (streams()) {
    out_ << "\n";
    return;
  }
  for (size_t s = 0; s < answers_.size(); ++s) {
    const Answer &answer = answers_[s];
    if (options_.idsFile) {
      for (size_t i = 0; i < answer.ids.size(); ++i)
        out_ << (i ? " " : "") << answer.ids[i];
      out_ << "\n";
      continue;
    }
    out_ << "[" << s + 1 << "] " << answer.text << "\n";
  }
}

void Run::reportJson() const {
  Json sequences = Json::array();
  for (const Answer &answer : answers_)
    sequences.push_back({{"prompt_ids", answer.promptIds},
                         {"ids", answer.ids},
                         {"text", answer.text},
                         {"finish", finishName(answer.finish)}});
  Json root = {{"sequences", std::move(sequences)},
               {"seconds",
                {{"compile", seconds_.compile},
                 {"load", seconds_.load},
                 {"prefill", seconds_.prefill},
                 {"decode", seconds_.decode}}}};
  out_ << root.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) << "\n";
}

// What ranks other than the first have to say.
class NoBuffer : public std::streambuf {
  int overflow(int character) override { return character; }
};

Status runOnRanks(const RunOptions &options, std::ostream &out, std::ostream &err) {
  int sources = options.prompt.has_value() + options.promptsFile.has_value() + options.idsFile.has_value();
  if (sources != 1)
    return Status::error(std::to_string(sources) + " of --prompt, --prompts and --ids are given, expected 1");
  Clock::time_point start = Clock::now();
  EngineOptions engineOptions;
  engineOptions.threads = options.threads;
  engineOptions.chunkTokens = options.chunkTokens;
  engineOptions.link = options.link;
  return withEngines(options.artifact, engineOptions, [&](Engine &engine) {
    NoBuffer noBuffer;
    std::ostream nothing(&noBuffer);
    bool speaks = engine.isFirstRank();
    return Run(options, engine, secondsSince(start), speaks ? out : nothing, speaks ? err : nothing).run();
  });
}

} // namespace

SamplingParams samplingOf(const RunOptions &options, const GenerationDefaults &defaults) {
  // Ids are for comparing and measuring: nothing there depends on what somebody recommends for text.
  GenerationDefaults base = options.idsFile ? GenerationDefaults() : defaults;
  SamplingParams params;
  params.temperature = options.temperature.value_or(base.temperature.value_or(0));
  params.topK = options.topK.value_or(static_cast<int32_t>(base.topK.value_or(0)));
  params.topP = options.topP.value_or(base.topP.value_or(1));
  params.minP = options.minP.value_or(base.minP.value_or(0));
  params.repetitionPenalty = options.repetitionPenalty.value_or(base.repetitionPenalty.value_or(1));
  params.seed = options.seed;
  return params;
}

int runArtifact(const RunOptions &options, std::ostream &out, std::ostream &err) {
  Status status = runOnRanks(options, out, err);
  if (status.ok())
    return 0;
  err << "error: " << status.message() << "\n";
  return 1;
}

} // namespace llmc
