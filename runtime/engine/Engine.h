// Engine: an artifact made ready to run. Loading maps or copies the weights and allocates the whole memory plan once;
// step() then allocates nothing. All calls on one engine come from one thread at a time; the workers are the engine's
// own.
//
// Two ways to use it: add sequences and call step() until idle(), or forward() for the logits of given tokens.
#pragma once
#include "runtime/artifact/Loader.h"
#include "runtime/collective/CollectiveQueue.h"
#include "runtime/collective/SimulatedRanks.h"
#include "runtime/engine/MemoryRegion.h"
#include "runtime/engine/RowBlocks.h"
#include "runtime/engine/Sampler.h"
#include "runtime/engine/Scheduler.h"
#include "runtime/engine/StepTrace.h"
#include "runtime/engine/ThreadPool.h"
#include "runtime/engine/WeightMemory.h"
#include <functional>
#include <memory>
#include <optional>
#include <span>

namespace llmc {

struct EngineOptions {
  int32_t threads = 0;      // 0 = one per usable core
  int32_t maxSequences = 0; // at once; 0 = what the artifact was compiled for, which is also the most
  int32_t chunkTokens = 0;  // most prompt tokens of a sequence per step; 0 = as many as a step holds
  int32_t maxWaiting = 1024;
  WeightPlacement weights = WeightPlacement::Choose;
  bool recordHidden = false; // allocate room for the residual stream, which forward() then hands out
  // By which the engine, as one of the ranks that share the artifact, reaches the others; all of them must be asked for
  // the same. It must outlive the engine. RankEngines.h makes one.
  Transport *transport = nullptr;
  // Of ranks that are threads of one process (withEngines).
  SimulatedLink link = {};
};

struct GenerationRequest {
  std::vector<int32_t> ids;
  int32_t maxNewTokens = 0;
  SamplingParams sampling = {};
  std::vector<int32_t> stopIds = {}; // in addition to the model's end of sequence
  bool ignoreEos = false;
};

enum class Finish {
  None,
  Length, // all tokens asked for, or the context is full
  Stop,   // a stop id of the request; it is the event's token
  End,    // the model's end of sequence; it is the event's token
  Failed  // logits that are no numbers, or ranks that do not answer; there is no token
};

// One new token of one sequence. After an event that finishes the sequence is forgotten.
struct Event {
  SequenceId sequence;
  int32_t token;
  int32_t position; // of the last token before it
  Finish finish;
};

struct ForwardOptions {
  int32_t chunkTokens = 0; // 0 = as many as a step holds
  bool together = true;    // all sequences in one batch, or one after another
};

// Consecutive positions of one sequence, valid during the call.
struct ForwardRows {
  size_t sequence;
  int32_t firstPosition;
  int32_t count;
  std::span<const float> logits; // [count][vocabulary]
  // Null without recordHidden. Record i of row r starts at record + (i * recordRows + r) * recordChannels of the
  // manifest: i = 0 after the embedding, i after layer i, layers + 1 after the final norm, which has `hidden` channels.
  const float *record;
  int64_t recordRows;
  // The sequence's recurrent state after these rows; memory.json says what lies where.
  std::span<const uint8_t> state;
};

class Engine {
public:
  static StatusOr<std::unique_ptr<Engine>> load(const std::string &artifact, const EngineOptions &options = {});
  ~Engine();

  const LoadedArtifact &artifact() const { return artifact_; }
  const Manifest &manifest() const { return artifact_.manifest(); }
  int32_t threads() const { return pool_->workers(); }
  const SchedulerLimits &limits() const { return scheduler_.limits(); }
  // Whether this is the rank that speaks for all of them.
  bool isFirstRank() const { return exchanges_.empty() || exchanges_.front()->transport().number() == 0; }
  // Everything but the weights.
  uint64_t allocatedBytes() const;

  // A prompt beyond the context, an id outside the vocabulary or a bad parameter is an error that says both numbers.
  StatusOr<SequenceId> add(GenerationRequest request);
  // No event of this sequence comes after. False when it is unknown or has finished.
  bool cancel(SequenceId sequence) { return scheduler_.cancel(sequence); }
  bool idle() const { return scheduler_.idle(); }
  // False: add() would be refused because too many sequences wait.
  bool accepts() const { return !scheduler_.full(); }
  // One step over all sequences. The events are in the order of the batch and valid until the next call.
  std::span<const Event> step();
  // Rows of the last step, and how many of them were prompt.
  int32_t stepTokens() const { return stepTokens_; }
  int32_t stepPromptTokens() const { return stepPromptTokens_; }
  // From the next step on `trace` records what every worker does, until it is full; null ends it. It was made for this
  // engine's threads and must live until then.
  void trace(StepTrace *trace);
  // The sentence for an event that Failed.
  std::string failure(const Event &event) const;

  // Logits of every position of every sequence, handed out as they are computed (positions of a sequence ascend). The
  // engine must be idle. The results do not depend on the options, bit for bit: the step program promises that.
  using ForwardSink = std::function<Status(const ForwardRows &)>;
  Status forward(std::span<const std::vector<int32_t>> sequences, const ForwardOptions &options,
                 const ForwardSink &sink);

private:
  struct Generation {
    SamplingParams sampling;
    std::vector<int32_t> stopIds;
    bool ignoreEos = false;
  };

  Engine(LoadedArtifact artifact, const SchedulerLimits &limits);
  Status allocate(const EngineOptions &options);
  // Plans and runs; false when there was nothing to do.
  bool compute();
  // The program's, with the exchanges that it leaves behind.
  void runStep();
  void useBatch(const llmc_batch &batch);
  void useHooks(StepTrace *trace);
  llmc_step_context &blockContext(int32_t worker, size_t block) {
    return blockContexts_[static_cast<size_t>(worker) * blocks_->batches().size() + block];
  }
  void sampleRow(size_t row, const PlannedRow &planned);
  Finish finishOf(const Generation &generation, int32_t token) const;
  Status deliver(SequenceId firstId, const ForwardSink &sink) const;
  Status meetRanks(const EngineOptions &options);
  void failAll();
  static void stepOnWorker(void *engine, int32_t worker);
  Status openQueues(Transport &transport, const RankFacts &facts);
  // Room beside the operands of an exchange of such rows.
  std::span<float> exchangeScratch(const llmc_batch &batch, size_t block) const;
  static void startCollective(void *engine, const llmc_collective *what, const llmc_batch *batch, const float *input,
                              float *result);
  static int32_t waitForCollective(void *engine, const llmc_collective *what);
  std::span<const float> logitsOf(size_t firstRow, size_t rows) const;

  LoadedArtifact artifact_;
  Scheduler scheduler_;
  std::unique_ptr<ThreadPool> pool_;
  WeightMemory weights_;
  MemoryRegion arena_, kv_, state_, logits_, record_, exchanged_;
  std::vector<MemoryRegion> scratch_; // per worker: no worker can reach another's
  std::vector<llmc_step_context> contexts_;
  // Of one of several ranks.
  std::optional<RowBlocks> blocks_;
  std::vector<llmc_step_context> blockContexts_;            // by worker and block
  std::vector<std::unique_ptr<Transport>> channels_;        // of all blocks but the first
  std::vector<std::unique_ptr<CollectiveQueue>> exchanges_; // of each block
  int32_t collectiveFailed_ = 0;                            // of the step, for all workers
  Status rankFailure_;                                      // once ranks have lost each other there are no more steps
  StepTrace *trace_ = nullptr;                              // not ours
  Sampler sampler_;
  std::vector<Generation> generations_; // by entry of the scheduler
  std::vector<Event> events_;
  int32_t stepTokens_ = 0;
  int32_t stepPromptTokens_ = 0;
};

} // namespace llmc
