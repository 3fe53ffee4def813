/* The runtime for programs that embed it: load an artifact, add sequences, step, read tokens and text. Plain C.
 *
 * Threads: all calls on one engine come from one thread at a time; different engines are independent. The engine's own
 * workers never call back.
 * Failure: functions that can fail return 0 or null, and llmc_rt_error() says why in one sentence. No call aborts or
 * throws, whatever the artifact or the request holds.
 * Ownership: what a call returns belongs to the engine and lives as long as that call's comment says; strings that go
 * in are copied. Text is UTF-8, lengths are in bytes. */
#ifndef LLMC_RT_H
#define LLMC_RT_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#define LLMC_RT_EXPORT __attribute__((visibility("default")))

typedef struct llmc_rt_engine llmc_rt_engine;

typedef struct llmc_rt_options {
  uint32_t struct_bytes; /* set by llmc_rt_init_options: later versions append fields */
  int32_t threads;       /* workers; 0 = one per usable core */
  int32_t max_sequences; /* at once; 0 = as many as the artifact was compiled for */
  int32_t chunk_tokens;  /* most prompt tokens of a sequence per step; 0 = as many as a step holds */
} llmc_rt_options;

typedef struct llmc_rt_request {
  uint32_t struct_bytes;  /* set by llmc_rt_init_request */
  int32_t max_new_tokens; /* at least 1; cut to what the context leaves */
  double temperature;     /* 0 = greedy */
  int32_t top_k;          /* 0 = all */
  double top_p;           /* 1 = all */
  double min_p;           /* 0 = all */
  double repetition_penalty;
  uint64_t seed;
  const char *const *stop; /* texts that end the answer; needs a tokenizer in the artifact */
  size_t num_stop;
  int32_t ignore_eos; /* not 0: go on after the model's end of sequence */
} llmc_rt_request;

enum {
  LLMC_RT_RUNNING = 0,
  LLMC_RT_LENGTH = 1, /* all tokens asked for, or the context is full */
  LLMC_RT_STOP = 2,   /* a stop text */
  LLMC_RT_END = 3,    /* the model's end of sequence */
  LLMC_RT_FAILED = 4  /* text holds the sentence */
};

/* One new token of one sequence. After an event whose finish is not LLMC_RT_RUNNING the sequence is forgotten. */
typedef struct llmc_rt_event {
  int64_t sequence;
  int32_t token;    /* -1 after LLMC_RT_FAILED */
  int32_t finish;   /* LLMC_RT_... */
  const char *text; /* whole characters, zero terminated; empty without a tokenizer */
  size_t text_bytes;
} llmc_rt_event;

/* Why the last failed call of this thread failed. Valid until the thread's next call; never null. */
LLMC_RT_EXPORT const char *llmc_rt_error(void);

/* Defaults; call them before setting fields. */
LLMC_RT_EXPORT void llmc_rt_init_options(llmc_rt_options *options);
LLMC_RT_EXPORT void llmc_rt_init_request(llmc_rt_request *request);

/* Checks the artifact folder, maps its weights and allocates its whole memory plan. Null on failure; options may be
 * null. Free the result with llmc_rt_free, which takes null too. */
LLMC_RT_EXPORT llmc_rt_engine *llmc_rt_load(const char *artifact, const llmc_rt_options *options);
LLMC_RT_EXPORT void llmc_rt_free(llmc_rt_engine *engine);

/* Ids in the vocabulary, and positions a sequence may have. */
LLMC_RT_EXPORT int32_t llmc_rt_vocabulary(const llmc_rt_engine *engine);
LLMC_RT_EXPORT int32_t llmc_rt_context(const llmc_rt_engine *engine);

/* Token ids of a text, or (chat not 0) of the conversation that consists of this text from the user, through the chat
 * template. The ids live until the next call on this engine. 0 on failure. */
LLMC_RT_EXPORT int llmc_rt_tokenize(llmc_rt_engine *engine, const char *text, size_t text_bytes, int chat,
                                    const int32_t **ids, size_t *num_ids);

/* Queues a sequence; its number goes to *sequence. A prompt that does not fit the context, an id outside the vocabulary
 * or a parameter out of range is a failure: 0. */
LLMC_RT_EXPORT int llmc_rt_add(llmc_rt_engine *engine, const int32_t *ids, size_t num_ids,
                               const llmc_rt_request *request, int64_t *sequence);
/* No event of this sequence comes after. 0 when it is unknown or has finished. */
LLMC_RT_EXPORT int llmc_rt_cancel(llmc_rt_engine *engine, int64_t sequence);
/* Not 0 when no sequence is left. */
LLMC_RT_EXPORT int llmc_rt_idle(const llmc_rt_engine *engine);
/* One step over all sequences. The *num_events events at *events live until the next call on this engine. 0 on failure.
 */
LLMC_RT_EXPORT int llmc_rt_step(llmc_rt_engine *engine, const llmc_rt_event **events, size_t *num_events);

#ifdef __cplusplus
}
#endif
#endif
