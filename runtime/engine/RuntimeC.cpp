// The C functions of llmc_rt.h over Engine, ArtifactText and TextGeneration.
#include "runtime/engine/ArtifactText.h"
#include "runtime/engine/TextGeneration.h"
#include "runtime/llmc_rt.h"
#include <cstring>
#include <exception>
#include <memory>
#include <string>

using namespace llmc;

struct llmc_rt_engine {
  std::unique_ptr<Engine> engine;
  std::optional<ArtifactText> text;
  std::optional<TextGeneration> generation;
  std::vector<TextEvent> textEvents; // hold the texts that `events` point to
  std::vector<llmc_rt_event> events;
  std::vector<int32_t> ids;
};

namespace {

static_assert(static_cast<int>(Finish::None) == LLMC_RT_RUNNING && static_cast<int>(Finish::Length) == LLMC_RT_LENGTH &&
              static_cast<int>(Finish::Stop) == LLMC_RT_STOP && static_cast<int>(Finish::End) == LLMC_RT_END &&
              static_cast<int>(Finish::Failed) == LLMC_RT_FAILED);

thread_local std::string lastError;

// Runs `body`, which returns a Status; 1 on success. The standard library may still throw for lack of memory.
template <typename Body> int guarded(Body body) {
  try {
    Status status = body();
    lastError = status.ok() ? "" : status.message();
    return status.ok();
  } catch (const std::exception &error) {
    lastError = error.what();
  }
  return 0;
}

// The caller's struct, cut or filled up to the size this library knows.
template <typename T> Status copyStruct(const T *given, const char *name, T &out) {
  if (given->struct_bytes < sizeof(uint32_t) || given->struct_bytes > 4096)
    return Status::error(std::string(name) + " has struct_bytes " + std::to_string(given->struct_bytes) +
                         "; call the init function first");
  std::memcpy(&out, given, std::min<size_t>(given->struct_bytes, sizeof(T)));
  return {};
}

TextRequest textRequest(const llmc_rt_request &request, const int32_t *ids, size_t numIds) {
  TextRequest out;
  out.generation.ids.assign(ids, ids + numIds);
  out.generation.maxNewTokens = request.max_new_tokens;
  out.generation.ignoreEos = request.ignore_eos != 0;
  out.generation.sampling = {request.temperature,        request.top_k, request.top_p, request.min_p,
                             request.repetition_penalty, request.seed};
  for (size_t i = 0; i < request.num_stop; ++i)
    out.stopStrings.emplace_back(request.stop[i]);
  return out;
}

} // namespace

const char *llmc_rt_error(void) { return lastError.c_str(); }

void llmc_rt_init_options(llmc_rt_options *options) {
  *options = {};
  options->struct_bytes = sizeof *options;
}

void llmc_rt_init_request(llmc_rt_request *request) {
  *request = {};
  request->struct_bytes = sizeof *request;
  request->max_new_tokens = 256;
  request->top_p = 1;
  request->repetition_penalty = 1;
}

llmc_rt_engine *llmc_rt_load(const char *artifact, const llmc_rt_options *options) {
  auto handle = std::make_unique<llmc_rt_engine>();
  int loaded = guarded([&]() -> Status {
    llmc_rt_options known;
    llmc_rt_init_options(&known);
    if (options)
      LLMC_RETURN_IF_ERROR(copyStruct(options, "llmc_rt_options", known));
    EngineOptions engineOptions;
    engineOptions.threads = known.threads;
    engineOptions.maxSequences = known.max_sequences;
    engineOptions.chunkTokens = known.chunk_tokens;
    LLMC_ASSIGN_OR_RETURN(handle->engine, Engine::load(artifact, engineOptions));
    LLMC_ASSIGN_OR_RETURN(ArtifactText text, ArtifactText::load(handle->engine->artifact()));
    std::optional<Tokenizer> tokenizer;
    if (text.hasTokenizer()) {
      LLMC_ASSIGN_OR_RETURN(Tokenizer found, text.tokenizer());
      tokenizer = std::move(found);
    }
    handle->text = std::move(text);
    handle->generation.emplace(*handle->engine, std::move(tokenizer));
    return {};
  });
  return loaded ? handle.release() : nullptr;
}

void llmc_rt_free(llmc_rt_engine *engine) { delete engine; }

int32_t llmc_rt_vocabulary(const llmc_rt_engine *engine) { return engine->engine->manifest().vocabulary; }
int32_t llmc_rt_context(const llmc_rt_engine *engine) { return engine->engine->manifest().context; }

int llmc_rt_tokenize(llmc_rt_engine *engine, const char *text, size_t text_bytes, int chat, const int32_t **ids,
                     size_t *num_ids) {
  return guarded([&]() -> Status {
    std::string content(text, text_bytes);
    StatusOr<std::vector<int32_t>> found =
        chat ? engine->text->idsOfChat(ArtifactText::question(content)) : engine->text->idsOfText(content);
    LLMC_ASSIGN_OR_RETURN(engine->ids, std::move(found));
    *ids = engine->ids.data();
    *num_ids = engine->ids.size();
    return {};
  });
}

int llmc_rt_add(llmc_rt_engine *engine, const int32_t *ids, size_t num_ids, const llmc_rt_request *request,
                int64_t *sequence) {
  return guarded([&]() -> Status {
    llmc_rt_request known;
    llmc_rt_init_request(&known);
    LLMC_RETURN_IF_ERROR(copyStruct(request, "llmc_rt_request", known));
    LLMC_ASSIGN_OR_RETURN(*sequence, engine->generation->add(textRequest(known, ids, num_ids)));
    return {};
  });
}

int llmc_rt_cancel(llmc_rt_engine *engine, int64_t sequence) { return engine->generation->cancel(sequence); }

int llmc_rt_idle(const llmc_rt_engine *engine) { return engine->generation->idle(); }

int llmc_rt_step(llmc_rt_engine *engine, const llmc_rt_event **events, size_t *num_events) {
  return guarded([&]() -> Status {
    engine->textEvents = engine->generation->step();
    engine->events.clear();
    for (const TextEvent &event : engine->textEvents) {
      const std::string &text = event.finish == Finish::Failed ? event.failure : event.text;
      engine->events.push_back(
          {event.sequence, event.token, static_cast<int32_t>(event.finish), text.c_str(), text.size()});
    }
    *events = engine->events.data();
    *num_events = engine->events.size();
    return {};
  });
}
