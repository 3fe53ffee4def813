/* The ABI between a compiled step program and the runtime: plain C, the only header that both sides read.
 *
 * A step program is a shared object that exports
 *
 *     void llmc_step(const llmc_step_context *context);
 *
 * Every worker thread calls it once per step with a context that differs in `worker` and `scratch` alone; the program
 * splits its work over the workers and calls `barrier` between dependent tasks. It allocates nothing, and nothing but
 * `collective_wait` can fail.
 * All sizes are in bytes, all counts in the unit their name says. The code generator reads the field offsets from here
 * (offsetof), so a change of a struct needs nothing but a new LLMC_ABI_VERSION. */
#ifndef LLMC_ABI_H
#define LLMC_ABI_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LLMC_ABI_VERSION 5

/* A ragged batch: the rows (tokens) of sequence s are query_start[s] .. query_start[s + 1] - 1, consecutive positions
 * of that sequence that end at length[s] - 1; where those are all its positions (length[s] rows), it starts in this
 * step. T = num_tokens, S = num_sequences, R = num_logit_rows. */
typedef struct llmc_batch {
  int32_t num_tokens;
  int32_t num_sequences;
  int32_t num_logit_rows;
  int32_t page_table_stride;     /* entries of page_table per sequence */
  const int32_t *tokens;         /* [T] token ids, each within the vocabulary */
  const int32_t *positions;      /* [T] position in its sequence, from 0 */
  const int32_t *token_sequence; /* [T] 0 .. S-1 */
  const int32_t *query_start;    /* [S + 1] */
  const int32_t *length;         /* [S] tokens of the sequence after this step: cached ones and this step's rows */
  const int32_t *page_table;     /* [S][page_table_stride] page p of a sequence holds positions p*P .. p*P + P-1 */
  /* [S] where the sequence keeps its recurrent state, a number of its own below max_sequences (memory plan). Nobody
   * clears a slot: the program takes the state of a sequence that starts as zero, whatever lies there. */
  const int32_t *state_slots;
  const int32_t *logit_rows; /* [R] rows (0 .. T-1) whose logits are wanted, ascending */
} llmc_batch;

enum {
  LLMC_ALL_REDUCE, /* result = sum of the inputs of all ranks of the group, in ascending order of ranks */
  LLMC_ALL_GATHER, /* result = the parts that the ranks of the group hold, each where its ranges say */
  LLMC_SEND,       /* input goes to the rank at the same place of stage `stage` */
  LLMC_RECEIVE     /* result comes from there: the n-th receive gets the n-th send */
};

/* What ranks exchange at one place of a program: a constant. */
typedef struct llmc_collective {
  int64_t kind;
  int64_t logit_rows; /* 0: T rows are exchanged, 1: R */
  int64_t ranks;      /* of a group */
  int64_t stage;      /* of a send or receive */
  /* Elements of a row, and from one row to the next; 0 where there is no such operand. */
  int64_t input_columns, input_stride;
  int64_t result_columns, result_stride;
  int64_t num_segments; /* of an all_gather: as many times `ranks` pairs (begin, end) of int64_t follow this struct */
  int64_t number;       /* of the place, from 0 */
} llmc_collective;

typedef struct llmc_step_context {
  const llmc_batch *batch;
  const uint8_t *weights; /* the artifact's weights section, 64-byte aligned */
  uint8_t *arena;         /* activations between tasks, 64-byte aligned, shared by the workers */
  uint8_t *kv;            /* page p starts at kv + p * page_bytes (memory plan), 64-byte aligned */
  uint8_t *state;         /* slot i starts at state + i * state_bytes (memory plan), 64-byte aligned */
  uint8_t *scratch;       /* private to this worker, 64-byte aligned */
  float *logits;          /* [R][vocabulary] */
  /* Null, or where the residual stream of every row is recorded: record i (0 after the embedding, i after layer i,
   * layers + 1 after the final norm) of row t at record + (i * record_rows + t) * record_channels. A narrower record
   * fills the beginning. */
  float *record;
  int64_t record_rows;
  int64_t record_channels;
  int32_t worker; /* 0 .. num_workers - 1 */
  int32_t num_workers;
  /* Returns when all workers of this step have called it; everything they wrote before is visible after. */
  void (*barrier)(void *barrier_state, int32_t worker);
  void *barrier_state;
  /* Null, or called by every worker before each task it runs, with the task's number: its place in the dispatch
   * manifest. `barrier` is called after each task (and inside of some), so that both together see all of a step. */
  void (*trace)(void *trace_state, int32_t worker, int32_t task);
  void *trace_state;
  /* Called by worker 0 alone, behind a barrier, in programs of several ranks; null in others. `collective_start` returns
   * at once: what was started runs beside the step, one after the other, for the rows of `batch`; until `collective_wait`
   * has returned for it nobody else touches its operands. What that returns is stored in *collective_failed for all
   * workers: anything but 0 ends the step. A step waits for all that it starts. */
  void (*collective_start)(void *collective_state, const llmc_collective *what, const llmc_batch *batch,
                           const float *input, float *result);
  int32_t (*collective_wait)(void *collective_state, const llmc_collective *what);
  void *collective_state;
  int32_t *collective_failed;
  /* Where a program computes blocks of rows apart, so that one is exchanged while another is computed: a context of each,
   * which differs from this one in `batch` (those rows and their sequences, as if a step computed no others),
   * `first_row`, `record` and `trace_state` alone. The blocks are all rows in their order; the last ones may be empty. */
  const struct llmc_step_context *blocks;
  int64_t first_row; /* rows of the step before those of `batch` */
} llmc_step_context;

/* What `trace` is told where a worker waits for an exchange, instead of the number of a task. */
#define LLMC_TRACE_WAIT (-1)

typedef void (*llmc_step_function)(const llmc_step_context *context);

#ifdef __cplusplus
}
#endif
#endif
