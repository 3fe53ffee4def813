// Loading, stepping and sampling. What a step computes is decided in Scheduler.cpp, forward() is in Forward.cpp.
#include "runtime/engine/Engine.h"
#include "runtime/support/CheckedSize.h"
#include "runtime/support/Limits.h"
#include "runtime/support/UsableCores.h"
#include <algorithm>

namespace llmc {
namespace {

Status checkOptions(const EngineOptions &options, const Manifest &manifest) {
  auto check = [](const char *name, int64_t value, int64_t min, int64_t max) {
    return value >= min && value <= max
               ? Status()
               : Status::error(std::string(name) + " is " + std::to_string(value) + ", expected " +
                               std::to_string(min) + " to " + std::to_string(max));
  };
  LLMC_RETURN_IF_ERROR(check("threads", options.threads, 0, manifest.maxWorkers));
  if (options.maxSequences > manifest.maxSequences)
    return Status::error("max sequences is " + std::to_string(options.maxSequences) +
                         ", the artifact was compiled for " + std::to_string(manifest.maxSequences) +
                         "; compile with a larger --max-sequences");
  LLMC_RETURN_IF_ERROR(check("max sequences", options.maxSequences, 0, manifest.maxSequences));
  LLMC_RETURN_IF_ERROR(check("chunk tokens", options.chunkTokens, 0, limits::artifactContext));
  return check("max waiting", options.maxWaiting, 1, limits::waitingSequences);
}

SchedulerLimits limitsOf(const Manifest &manifest, const EngineOptions &options) {
  SchedulerLimits limits;
  limits.vocabulary = manifest.vocabulary;
  limits.context = manifest.context;
  limits.maxTokens = manifest.maxTokens;
  limits.maxSequences = options.maxSequences > 0 ? options.maxSequences : manifest.maxSequences;
  limits.maxLogitRows = manifest.maxLogitRows;
  limits.pageTokens = manifest.pageTokens;
  if (manifest.pageTokens > 0) {
    // Pages that no sequence could ever own are not allocated.
    int64_t pagesPerSequence = (static_cast<int64_t>(manifest.context) - 1) / manifest.pageTokens + 1;
    limits.numPages =
        static_cast<int32_t>(std::min<int64_t>(manifest.numPages, pagesPerSequence * limits.maxSequences));
  }
  limits.chunkTokens = options.chunkTokens;
  limits.maxWaiting = options.maxWaiting;
  return limits;
}

} // namespace

StatusOr<std::unique_ptr<Engine>> Engine::load(const std::string &artifact, const EngineOptions &options) {
  const int32_t rank = options.transport ? options.transport->number() : 0;
  LLMC_ASSIGN_OR_RETURN(LoadedArtifact loaded, LoadedArtifact::open(artifact, WeightsCheck::ByCaller, rank));
  LLMC_RETURN_IF_ERROR(checkOptions(options, loaded.manifest()));
  SchedulerLimits limits = limitsOf(loaded.manifest(), options);
  std::unique_ptr<Engine> engine(new Engine(std::move(loaded), limits));
  LLMC_RETURN_IF_ERROR(engine->allocate(options).inside(artifact));
  LLMC_RETURN_IF_ERROR(engine->meetRanks(options));
  return engine;
}

Engine::Engine(LoadedArtifact artifact, const SchedulerLimits &limits)
    : artifact_(std::move(artifact)), scheduler_(limits), sampler_(limits.vocabulary),
      generations_(static_cast<size_t>(scheduler_.numEntries())) {
  events_.reserve(static_cast<size_t>(limits.maxLogitRows));
}

Engine::~Engine() = default;

Status Engine::meetRanks(const EngineOptions &options) {
  const RankGrid grid = manifest().grid();
  if (!options.transport) {
    if (grid.size() == 1)
      return {};
    return Status::error(artifact_.folder() + ": is for " + std::to_string(grid.size()) +
                         " ranks, which only llmc-run, llmc run and llmc logits run; compile it for one");
  }
  if (options.transport->grid() != grid)
    return Status::error(artifact_.folder() + ": is for " + std::to_string(grid.size()) + " ranks, there are " +
                         std::to_string(options.transport->grid().size()));
  const RankFacts facts = manifest().rank.value_or(RankFacts());
  LLMC_ASSIGN_OR_RETURN(exchanged_, MemoryRegion::map(facts.collectiveBytes, "rows that ranks exchange"));
  blocks_.emplace(facts.rowBlocks, facts.rowsPerBlock, scheduler_.limits().maxTokens, scheduler_.limits().maxSequences);
  for (llmc_step_context &context : contexts_) {
    context.collective_start = startCollective;
    context.collective_wait = waitForCollective;
    context.collective_state = this;
    context.collective_failed = &collectiveFailed_;
    blockContexts_.insert(blockContexts_.end(), blocks_->batches().size(), context);
  }
  for (llmc_step_context &context : contexts_)
    context.blocks = &blockContext(context.worker, 0);
  // All ranks are there before channels are opened.
  LLMC_RETURN_IF_ERROR(checkSameIdentity(*options.transport, facts.identity));
  return openQueues(*options.transport, facts);
}

Status Engine::openQueues(Transport &transport, const RankFacts &facts) {
  for (int32_t block = 0; block < facts.rowBlocks; ++block) {
    if (block > 0) {
      LLMC_ASSIGN_OR_RETURN(std::unique_ptr<Transport> channel, transport.openChannel());
      channels_.push_back(std::move(channel));
    }
    LLMC_ASSIGN_OR_RETURN(std::unique_ptr<CollectiveQueue> queue,
                          CollectiveQueue::create(block > 0 ? *channels_.back() : transport, block,
                                                  static_cast<size_t>(facts.exchanges)));
    exchanges_.push_back(std::move(queue));
  }
  return {};
}

Status Engine::allocate(const EngineOptions &options) {
  const Manifest &m = manifest();
  int32_t threads = options.threads > 0 ? options.threads : std::min(usableCores(), m.maxWorkers);
  LLMC_ASSIGN_OR_RETURN(pool_, ThreadPool::create(threads));
  auto rows = static_cast<uint64_t>(m.maxLogitRows), vocabulary = static_cast<uint64_t>(m.vocabulary);
  // checkManifest has seen that none of these products overflows, but for the records, which are no part of the plan.
  LLMC_ASSIGN_OR_RETURN(arena_, MemoryRegion::map(m.arenaBytes, "activations"));
  LLMC_ASSIGN_OR_RETURN(
      kv_, MemoryRegion::map(static_cast<uint64_t>(scheduler_.limits().numPages) * m.pageBytes, "the KV cache"));
  LLMC_ASSIGN_OR_RETURN(
      state_, MemoryRegion::map(static_cast<uint64_t>(scheduler_.limits().maxSequences) * m.stateBytes, "the states"));
  LLMC_ASSIGN_OR_RETURN(logits_, MemoryRegion::map(rows * vocabulary * sizeof(float), "logits"));
  if (options.recordHidden) {
    CheckedSize bytes = (CheckedSize(static_cast<uint64_t>(m.numLayers)) + 2) * static_cast<uint64_t>(m.maxTokens) *
                        static_cast<uint64_t>(m.recordChannels) * sizeof(float);
    if (!bytes.ok())
      return Status::error("the recorded hidden states do not fit 64 bits");
    LLMC_ASSIGN_OR_RETURN(record_, MemoryRegion::map(*bytes.value(), "hidden states"));
  }
  for (int32_t worker = 0; worker < threads; ++worker) {
    LLMC_ASSIGN_OR_RETURN(MemoryRegion scratch, MemoryRegion::map(m.scratchBytesPerWorker, "scratch"));
    scratch_.push_back(std::move(scratch));
  }
  // None of the others is resident yet.
  LLMC_ASSIGN_OR_RETURN(weights_,
                        WeightMemory::place(artifact_, options.weights, allocatedBytes(), *pool_,
                                            isFirstRank() ? Progress::When::OnTerminal : Progress::When::Never));
  for (int32_t worker = 0; worker < threads; ++worker) {
    llmc_step_context context = {};
    context.weights = weights_.data();
    context.arena = arena_.data();
    context.kv = kv_.data();
    context.state = state_.data();
    context.scratch = scratch_[static_cast<size_t>(worker)].data();
    context.logits = reinterpret_cast<float *>(logits_.data());
    context.record_rows = m.maxTokens;
    context.record_channels = m.recordChannels;
    context.worker = worker;
    context.num_workers = threads;
    contexts_.push_back(context);
  }
  useHooks(nullptr);
  return {};
}

uint64_t Engine::allocatedBytes() const {
  uint64_t bytes =
      arena_.bytes() + kv_.bytes() + state_.bytes() + logits_.bytes() + record_.bytes() + exchanged_.bytes();
  for (const MemoryRegion &scratch : scratch_)
    bytes += scratch.bytes();
  return bytes;
}

StatusOr<SequenceId> Engine::add(GenerationRequest request) {
  LLMC_RETURN_IF_ERROR(checkSampling(request.sampling));
  if (request.maxNewTokens < 1)
    return Status::error("max new tokens is " + std::to_string(request.maxNewTokens) + ", expected at least 1");
  for (int32_t id : request.stopIds)
    if (id < 0 || id >= manifest().vocabulary)
      return Status::error("stop id " + std::to_string(id) + " is not in the vocabulary of " +
                           std::to_string(manifest().vocabulary) + " ids");
  LLMC_ASSIGN_OR_RETURN(SequenceId id, scheduler_.add({std::move(request.ids), request.maxNewTokens, LogitRows::Last}));
  generations_[static_cast<size_t>(scheduler_.entryOf(id))] = {request.sampling, std::move(request.stopIds),
                                                               request.ignoreEos};
  return id;
}

void Engine::stepOnWorker(void *engine, int32_t worker) {
  auto *self = static_cast<Engine *>(engine);
  self->artifact_.step()(&self->contexts_[static_cast<size_t>(worker)]);
}

// Blocks share the room by their rows; what is about all rows waits for the blocks, and has all of it.
std::span<float> Engine::exchangeScratch(const llmc_batch &batch, size_t block) const {
  std::span<float> all(reinterpret_cast<float *>(exchanged_.data()), exchanged_.bytes() / sizeof(float));
  if (&batch == contexts_[0].batch)
    return all;
  auto edge = [&](int64_t row) {
    return all.size() * static_cast<uint64_t>(row) / static_cast<uint64_t>(contexts_[0].batch->num_tokens);
  };
  const int64_t first = blocks_->firstRow(block);
  return all.subspan(edge(first), edge(first + batch.num_tokens) - edge(first));
}

void Engine::startCollective(void *engine, const llmc_collective *what, const llmc_batch *batch, const float *input,
                             float *result) {
  auto *self = static_cast<Engine *>(engine);
  const size_t block =
      batch == self->contexts_[0].batch ? 0 : static_cast<size_t>(batch - self->blocks_->batches().data());
  self->exchanges_[block]->start(*what, what->logit_rows ? batch->num_logit_rows : batch->num_tokens, input, result,
                                 self->exchangeScratch(*batch, block));
}

int32_t Engine::waitForCollective(void *engine, const llmc_collective *what) {
  bool ok = true;
  for (const std::unique_ptr<CollectiveQueue> &queue : static_cast<Engine *>(engine)->exchanges_)
    ok &= queue->wait(*what).ok();
  return ok ? 0 : 1;
}

void Engine::useHooks(StepTrace *trace) {
  auto use = [&](llmc_step_context &context, int32_t block) {
    context.barrier = trace ? StepTrace::barrierOfTrace : ThreadPool::barrierOfPool;
    context.barrier_state = trace ? static_cast<void *>(trace) : pool_.get();
    context.trace = trace ? StepTrace::launchOfTrace : nullptr;
    context.trace_state = trace ? trace->stateOfBlock(block) : nullptr;
  };
  for (llmc_step_context &context : contexts_)
    use(context, -1);
  for (size_t i = 0; i < blockContexts_.size(); ++i)
    use(blockContexts_[i], static_cast<int32_t>(i % blocks_->batches().size()));
}

void Engine::trace(StepTrace *trace) {
  trace_ = trace;
  useHooks(nullptr);
}

bool Engine::compute() {
  const llmc_batch *batch = scheduler_.plan();
  stepTokens_ = batch ? batch->num_tokens : 0;
  stepPromptTokens_ = 0;
  if (!batch)
    return false;
  for (const PlannedSpan &span : scheduler_.plannedSpans())
    if (span.firstPosition < scheduler_.sequence(span.entry).promptTokens)
      stepPromptTokens_ += span.tokens;
  useBatch(*batch);
  bool traced = trace_ && trace_->begin(*pool_, stepTokens_, stepPromptTokens_);
  if (trace_)
    useHooks(traced ? trace_ : nullptr);
  for (const std::unique_ptr<CollectiveQueue> &queue : exchanges_)
    queue->begin(/*beside=*/blocks_->used() > 1, traced ? trace_->exchangeRecord() : nullptr);
  if (rankFailure_.ok())
    runStep();
  if (trace_)
    trace_->end();
  scheduler_.advance();
  return true;
}

void Engine::useBatch(const llmc_batch &batch) {
  for (llmc_step_context &context : contexts_)
    context.batch = &batch;
  if (!blocks_)
    return;
  blocks_->cut(batch);
  for (const llmc_step_context &whole : contexts_)
    for (size_t block = 0; block < blocks_->batches().size(); ++block) {
      llmc_step_context &context = blockContext(whole.worker, block);
      context.batch = &blocks_->batches()[block];
      context.first_row = blocks_->firstRow(block);
      context.record = whole.record ? whole.record + context.first_row * whole.record_channels : nullptr;
    }
}

void Engine::runStep() {
  pool_->run(stepOnWorker, this);
  for (const std::unique_ptr<CollectiveQueue> &queue : exchanges_)
    if (Status status = queue->waitForAll(); rankFailure_.ok())
      rankFailure_ = status;
}

std::span<const Event> Engine::step() {
  events_.clear();
  if (!compute())
    return events_;
  if (rankFailure_.ok())
    for (size_t row = 0; row < scheduler_.plannedRows().size(); ++row)
      if (scheduler_.plannedRows()[row].samples)
        sampleRow(row, scheduler_.plannedRows()[row]);
  if (!rankFailure_.ok())
    failAll();
  return events_;
}

void Engine::failAll() {
  for (int32_t entry = 0; entry < scheduler_.numEntries(); ++entry) {
    const Sequence &sequence = scheduler_.sequence(entry);
    if (sequence.state == Sequence::State::Free)
      continue;
    events_.push_back({sequence.id, -1, sequence.computed - 1, Finish::Failed});
    scheduler_.drop(entry);
  }
}

void Engine::sampleRow(size_t row, const PlannedRow &planned) {
  const Generation &generation = generations_[static_cast<size_t>(planned.entry)];
  const Sequence &sequence = scheduler_.sequence(planned.entry);
  std::optional<int32_t> token =
      sampler_.sample(logitsOf(row, 1), generation.sampling, sequence.ids, static_cast<uint64_t>(sequence.newTokens()));
  if (!token) {
    scheduler_.drop(planned.entry);
    events_.push_back({planned.id, -1, planned.position, Finish::Failed});
    return;
  }
  Finish finish = finishOf(generation, *token);
  if (scheduler_.append(planned.entry, *token, finish != Finish::None) && finish == Finish::None)
    finish = Finish::Length;
  events_.push_back({planned.id, *token, planned.position, finish});
}

Finish Engine::finishOf(const Generation &generation, int32_t token) const {
  const std::vector<int32_t> &eos = manifest().specialIds.eos;
  if (!generation.ignoreEos && std::find(eos.begin(), eos.end(), token) != eos.end())
    return Finish::End;
  const std::vector<int32_t> &stop = generation.stopIds;
  return std::find(stop.begin(), stop.end(), token) != stop.end() ? Finish::Stop : Finish::None;
}

std::span<const float> Engine::logitsOf(size_t firstRow, size_t rows) const {
  auto vocabulary = static_cast<size_t>(manifest().vocabulary);
  return {reinterpret_cast<const float *>(logits_.data()) + firstRow * vocabulary, rows * vocabulary};
}

std::string Engine::failure(const Event &event) const {
  if (!rankFailure_.ok())
    return rankFailure_.message();
  return "sequence " + std::to_string(event.sequence) + ": the logits at position " + std::to_string(event.position) +
         " are not finite; check the weights with llmc verify";
}

} // namespace llmc
