/* A step program that is wrong whenever the runtime is: it keeps its state in KV pages (where it
 * has some) and once more in the slot of a sequence, its rows in the arena, and needs every barrier. Built with another
 * FAKE_ABI_VERSION it is one of another ABI. */
#include "runtime/llmc_abi.h"
#include "test/runtime/artifact/FakeModel.h"
#include <math.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#ifndef FAKE_ABI_VERSION
#define FAKE_ABI_VERSION LLMC_ABI_VERSION
#endif

EXPORT const int32_t llmc_abi_version = FAKE_ABI_VERSION;

static uint64_t *entry(const llmc_step_context *context, int32_t sequence, int32_t position) {
  const llmc_batch *batch = context->batch;
  int32_t page = batch->page_table[sequence * batch->page_table_stride + position / fakePageTokens];
  return (uint64_t *)(context->kv + (int64_t)page * fakePageBytes) + position % fakePageTokens;
}

static uint64_t *row(const llmc_step_context *context, int32_t t) {
  return (uint64_t *)(context->arena + (int64_t)t * fakeArenaBytesPerToken);
}

/* Carries the state of a sequence over its rows; the second word of a row is the state after it. */
static void recur(const llmc_step_context *context, uint64_t key, int32_t sequence) {
  const llmc_batch *batch = context->batch;
  int32_t first = batch->query_start[sequence], end = batch->query_start[sequence + 1];
  uint64_t *slot = (uint64_t *)(context->state + (int64_t)batch->state_slots[sequence] * fakeStateBytes);
  uint64_t state = end - first == batch->length[sequence] ? 0 : *slot;
  for (int32_t t = first; t < end; ++t)
    row(context, t)[1] = state = fakeMix(state, fakeEntry(key, batch->tokens[t], batch->positions[t]));
  *slot = state;
}

static void trace(const llmc_step_context *context, int32_t task) {
  if (context->trace)
    context->trace(context->trace_state, context->worker, task);
}

EXPORT void llmc_step(const llmc_step_context *context) {
  const llmc_batch *batch = context->batch;
  uint64_t key;
  memcpy(&key, context->weights + 64, sizeof key);
  memset(context->scratch, context->worker + 1, fakeScratchBytes);
  trace(context, 0);
  int32_t hasPages = batch->page_table_stride > 0;
  for (int32_t t = context->worker; hasPages && t < batch->num_tokens; t += context->num_workers)
    *entry(context, batch->token_sequence[t], batch->positions[t]) =
        fakeEntry(key, batch->tokens[t], batch->positions[t]);
  for (int32_t s = context->worker; s < batch->num_sequences; s += context->num_workers)
    recur(context, key, s);
  context->barrier(context->barrier_state, context->worker);

  trace(context, 1);
  for (int32_t t = context->worker; t < batch->num_tokens; t += context->num_workers) {
    uint64_t state = hasPages ? 0 : row(context, t)[1];
    for (int32_t p = 0; hasPages && p <= batch->positions[t]; ++p)
      state = fakeMix(state, *entry(context, batch->token_sequence[t], p));
    if (state != row(context, t)[1])
      __builtin_trap();
    *row(context, t) = state;
  }
  context->barrier(context->barrier_state, context->worker);

  trace(context, 2);
  /* The row of another worker is read here: a missing barrier shows. */
  for (int32_t r = context->worker; r < batch->num_logit_rows; r += context->num_workers) {
    int32_t t = batch->logit_rows[r];
    uint64_t state = *row(context, t);
    for (int32_t v = 0; v < fakeVocabulary; ++v)
      context->logits[(int64_t)r * fakeVocabulary + v] = fakeLogit(state, v);
    if (batch->tokens[t] == fakeNanToken)
      context->logits[(int64_t)r * fakeVocabulary + 5] = NAN;
  }
  if (context->record)
    for (int32_t t = context->worker; t < batch->num_tokens; t += context->num_workers)
      for (int32_t i = 0; i < fakeLayers + 2; ++i)
        for (int32_t c = 0; c < fakeHidden; ++c)
          context->record[(i * context->record_rows + t) * fakeHidden + c] = fakeRecord(*row(context, t), i, c);
  if (context->scratch[0] != context->worker + 1 || context->scratch[fakeScratchBytes - 1] != context->worker + 1)
    __builtin_trap();
}
