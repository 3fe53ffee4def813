#include "lib/reference/TileInterpreter.h"
#include "lib/reference/CallFunction.h"
#include "lib/reference/TileTask.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cstring>
#include <limits>
#include <variant>

using namespace mlir;
using namespace llmc;
using namespace llmc::reference;

namespace {
constexpr int64_t maxBufferElements = int64_t(1) << 31;
constexpr int64_t maxCacheBytes = int64_t(1) << 36;

struct Batch {};
using RuntimeValue = std::variant<std::shared_ptr<Rows>, llm::WeightOp, llm::StateOp, Batch>;
using Frame = llvm::DenseMap<Value, RuntimeValue>;
} // namespace

namespace llmc::reference {

/// One run of @step.
class TileStep {
public:
  TileStep(TileInterpreter &owner, const llmc_batch &batch, std::vector<Matrix> *records)
      : owner(owner), memory{&batch, owner.kv.data(), owner.pageBytes, owner.slots.data(), owner.slotBytes, records} {}
  LogicalResult run(func::FuncOp step);
  Matrix logits() const;

private:
  LogicalResult call(func::FuncOp function, ArrayRef<RuntimeValue> arguments, SmallVectorImpl<RuntimeValue> &results);
  LogicalResult execute(Operation &op, Frame &frame);
  LogicalResult evaluate(llm::UseWeightOp op, Frame &frame);
  LogicalResult evaluate(llm::UseStateOp op, Frame &frame);
  LogicalResult evaluate(func::CallOp op, Frame &frame);
  LogicalResult evaluate(tile::AllocOp op, Frame &frame);
  LogicalResult evaluate(tile::LogitsOp op, Frame &frame);
  LogicalResult evaluate(tile::LaunchOp op, Frame &frame);
  LogicalResult exchange(Operation *op, Frame &frame, Value input, Value result);
  FailureOr<std::shared_ptr<Rows>> makeRows(Operation *op, tile::RowsType type, int64_t count);

  TileInterpreter &owner;
  StepMemory memory;
  std::shared_ptr<Rows> logitRows;
  int64_t vocabulary = 0;
  int depth = 0;
};

} // namespace llmc::reference

//===-- the interpreter
//---------------------------------------------------------------------------------------------===//

FailureOr<std::span<const uint8_t>> MemoryPackedWeights::bytes(llm::WeightOp op) {
  auto found = weights.find(op.getSymName().str());
  if (found == weights.end())
    return op.emitError() << "weight @" << op.getSymName() << " has no data";
  return std::span<const uint8_t>(found->second);
}

TileInterpreter::TileInterpreter(ModuleOp module, PackedWeightProvider &weights) : module(module), weights(&weights) {}
TileInterpreter::~TileInterpreter() = default;

FailureOr<std::unique_ptr<TileInterpreter>> TileInterpreter::create(ModuleOp module, PackedWeightProvider &weights,
                                                                    int64_t numPages, int64_t numSlots,
                                                                    Transport *transport) {
  auto step = module.lookupSymbol<func::FuncOp>("step");
  if (!step || step.isExternal())
    return module.emitError() << "module has no function @step with a body";
  if (step.getNumArguments() != 1 || !isa<llm::BatchType>(step.getArgumentTypes()[0]))
    return step.emitError() << "@step is " << step.getFunctionType() << ", expected it to take !llm.batch alone";
  std::unique_ptr<TileInterpreter> interpreter(new TileInterpreter(module, weights));
  if (transport)
    interpreter->collectives.emplace(*transport);
  if (failed(interpreter->placeStates(numPages, numSlots)) || failed(interpreter->compileTasks()))
    return failure();
  return interpreter;
}

LogicalResult TileInterpreter::placeStates(int64_t pages, int64_t slotCount) {
  numPages = pages;
  numSlots = slotCount;
  for (auto state : module.getOps<llm::StateOp>()) {
    if (auto recurrent = dyn_cast<llm::RecurrentType>(state.getType())) {
      stateOffsets[state.getSymName().str()] = slotBytes;
      slotBytes += (recurrent.bytes() + 63) / 64 * 64; // of a type: at most 2^34
      if (slotBytes > maxCacheBytes)
        return state.emitOpError() << "makes slots of more than " << maxCacheBytes << " bytes";
      continue;
    }
    auto type = dyn_cast<llm::KvType>(state.getType());
    if (!type || !type.isPaged() || (positionsPerPage && positionsPerPage != type.getPage()))
      return state.emitOpError() << "is " << state.getType() << ", expected pages"
                                 << (positionsPerPage ? " of " + std::to_string(positionsPerPage) + " positions" : "");
    positionsPerPage = type.getPage();
    stateOffsets[state.getSymName().str()] = pageBytes;
    // Every layer's part starts at a multiple of 64, as in the memory plan.
    CheckedSize end = CheckedSize(static_cast<uint64_t>(pageBytes)) + static_cast<uint64_t>(type.getPage()) +
                      CheckedSize(2 * 4) *
                          static_cast<uint64_t>(type.getHeads() * (type.getHeadDim() + type.storedValueDim())) *
                          static_cast<uint64_t>(type.getPage());
    if (!end.fits(maxCacheBytes))
      return state.emitOpError() << "makes pages of more than " << maxCacheBytes << " bytes";
    pageBytes = (pageBytes + type.bytesPerPage() + 63) / 64 * 64;
  }
  if (pages < 0 || !(CheckedSize(static_cast<uint64_t>(pages)) * static_cast<uint64_t>(pageBytes)).fits(maxCacheBytes))
    return module.emitError() << "a cache of " << pages << " pages of " << pageBytes << " bytes is too large, at most "
                              << maxCacheBytes << " bytes";
  if (numSlots < 0 || (slotBytes > 0 && numSlots > maxCacheBytes / slotBytes))
    return module.emitError() << numSlots << " slots of " << slotBytes << " bytes are too large, at most "
                              << maxCacheBytes << " bytes";
  kv.resize(static_cast<size_t>(pages * pageBytes));
  slots.resize(static_cast<size_t>(numSlots * slotBytes));
  return success();
}

LogicalResult TileInterpreter::compileTasks() {
  for (auto op : module.getOps<tile::TaskOp>()) {
    FailureOr<std::unique_ptr<TileTask>> task = TileTask::compile(op);
    if (failed(task))
      return failure();
    tasks[op.getSymName().str()] = std::move(*task);
  }
  return success();
}

LogicalResult TileInterpreter::checkBatch(const llmc_batch &batch) {
  auto refuse = [&](const std::string &what) { return module.emitError() << "batch " << what; };
  if (batch.num_tokens < 0 || batch.num_sequences < 0 || batch.num_logit_rows < 0 || batch.page_table_stride < 0)
    return refuse("has a negative count");
  for (int32_t s = 0; s < batch.num_sequences; ++s) {
    const int64_t length = batch.length[s];
    const int64_t used = positionsPerPage ? (length + positionsPerPage - 1) / positionsPerPage : 0;
    if (length < 0 || used > batch.page_table_stride)
      return refuse("gives sequence " + std::to_string(s) + " " + std::to_string(length) + " positions, but " +
                    std::to_string(batch.page_table_stride) + " pages");
    if (slotBytes > 0 && (batch.state_slots[s] < 0 || batch.state_slots[s] >= numSlots))
      return refuse("gives sequence " + std::to_string(s) + " slot " + std::to_string(batch.state_slots[s]) + " of " +
                    std::to_string(numSlots));
    for (int64_t p = 0; p < used; ++p) {
      const int64_t page = batch.page_table[static_cast<int64_t>(s) * batch.page_table_stride + p];
      if (page < 0 || page >= numPages)
        return refuse("gives sequence " + std::to_string(s) + " page " + std::to_string(page) + " of " +
                      std::to_string(numPages));
    }
  }
  for (int32_t t = 0; t < batch.num_tokens; ++t) {
    const int64_t s = batch.token_sequence[t], position = batch.positions[t];
    if (s < 0 || s >= batch.num_sequences || position < 0 || position >= batch.length[s])
      return refuse("puts row " + std::to_string(t) + " at position " + std::to_string(position) + " of sequence " +
                    std::to_string(s) + ", which is not there");
  }
  for (int32_t r = 0; r < batch.num_logit_rows; ++r)
    if (batch.logit_rows[r] < 0 || batch.logit_rows[r] >= batch.num_tokens)
      return refuse("wants logits of row " + std::to_string(batch.logit_rows[r]) + " of " +
                    std::to_string(batch.num_tokens));
  return success();
}

Matrix llmc::reference::plainState(llm::RecurrentType type, const uint8_t *part) {
  Matrix plain(1, type.elements());
  size_t at = 0;
  for (int64_t head = 0; head < type.getHeads(); ++head)
    for (int64_t key = 0; key < type.getKeys(); ++key)
      for (int64_t value = 0; value < type.getValues(); ++value)
        std::memcpy(&plain.values[at++], part + 4 * type.placeOf(head, key, value), 4);
  return plain;
}

std::map<std::string, Matrix> TileInterpreter::statesOf(int64_t slot) const {
  std::map<std::string, Matrix> states;
  for (auto state : ModuleOp(module).getOps<llm::StateOp>())
    if (auto type = dyn_cast<llm::RecurrentType>(state.getType())) {
      std::string name = state.getSymName().str();
      states[name] = plainState(type, slots.data() + slot * slotBytes + stateOffsets.at(name));
    }
  return states;
}

FailureOr<TileOutput> TileInterpreter::step(const llmc_batch &batch, bool records) {
  TileOutput output;
  TileStep step(*this, batch, records ? &output.records : nullptr);
  if (failed(checkBatch(batch)) || failed(step.run(module.lookupSymbol<func::FuncOp>("step"))))
    return failure();
  output.logits = step.logits();
  return output;
}

//===-- one step
//----------------------------------------------------------------------------------------------------===//

LogicalResult TileStep::run(func::FuncOp step) {
  SmallVector<RuntimeValue> results;
  return call(step, {Batch{}}, results);
}

Matrix TileStep::logits() const {
  if (!logitRows)
    return {};
  Matrix result(logitRows->rows, vocabulary);
  for (int64_t r = 0; r < result.rows; ++r)
    std::copy_n(logitRows->row(r).begin(), vocabulary, result.row(r).begin());
  return result;
}

LogicalResult TileStep::call(func::FuncOp function, ArrayRef<RuntimeValue> arguments,
                             SmallVectorImpl<RuntimeValue> &results) {
  auto run = [&](Operation &op, Frame &frame) { return execute(op, frame); };
  return callFunction(function, arguments, depth, run, results);
}

// Blocks of rows are a matter of time alone: with the first all rows are computed, and exchanged at once.
LogicalResult TileStep::execute(Operation &op, Frame &frame) {
  if (tile::blockOf(&op).value_or(0) > 0 || isa<tile::WaitOp>(op))
    return success();
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<llm::UseWeightOp, llm::UseStateOp, func::CallOp, tile::AllocOp, tile::LogitsOp, tile::LaunchOp>(
          [&](auto known) { return evaluate(known, frame); })
      .Case<tile::AllReduceOp, tile::AllGatherOp>(
          [&](auto collective) { return exchange(collective, frame, collective.getInput(), collective.getResult()); })
      .Case([&](tile::SendOp send) { return exchange(send, frame, send.getInput(), {}); })
      .Case([&](tile::ReceiveOp receive) { return exchange(receive, frame, {}, receive.getResult()); })
      .Default(
          [](Operation *unknown) { return unknown->emitOpError() << "has no reference implementation between tasks"; });
}

LogicalResult TileStep::evaluate(llm::UseWeightOp op, Frame &frame) {
  frame[op] = owner.module.lookupSymbol<llm::WeightOp>(op.getSymbolAttr());
  return success();
}

LogicalResult TileStep::evaluate(llm::UseStateOp op, Frame &frame) {
  frame[op] = owner.module.lookupSymbol<llm::StateOp>(op.getSymbolAttr());
  return success();
}

LogicalResult TileStep::evaluate(func::CallOp op, Frame &frame) {
  SmallVector<RuntimeValue> arguments, results;
  for (Value operand : op.getOperands())
    arguments.push_back(frame.at(operand));
  if (failed(call(owner.module.lookupSymbol<func::FuncOp>(op.getCalleeAttr()), arguments, results)))
    return failure();
  for (auto [value, result] : llvm::zip(op.getResults(), results))
    frame[value] = result;
  return success();
}

// Channels start as NaN, so that reading what no task wrote shows; the padding is finite, as tile.load promises.
FailureOr<std::shared_ptr<Rows>> TileStep::makeRows(Operation *op, tile::RowsType type, int64_t count) {
  if (type.stride() > maxBufferElements / std::max<int64_t>(count, 1))
    return op->emitOpError() << "needs " << count << " rows of " << type.stride() << " elements, at most "
                             << maxBufferElements << " together";
  auto rows = std::make_shared<Rows>(count, type.stride());
  for (int64_t r = 0; r < count; ++r)
    std::fill_n(rows->row(r).begin(), type.getChannels(), std::numeric_limits<float>::quiet_NaN());
  return rows;
}

LogicalResult TileStep::evaluate(tile::AllocOp op, Frame &frame) {
  const int64_t count = std::max(memory.batch->num_tokens, memory.batch->num_logit_rows);
  FailureOr<std::shared_ptr<Rows>> rows = makeRows(op, op.getType(), count);
  if (failed(rows))
    return failure();
  frame[op] = *rows;
  return success();
}

LogicalResult TileStep::evaluate(tile::LogitsOp op, Frame &frame) {
  if (!logitRows) {
    FailureOr<std::shared_ptr<Rows>> rows = makeRows(op, op.getType(), memory.batch->num_logit_rows);
    if (failed(rows))
      return failure();
    logitRows = *rows;
    vocabulary = op.getType().getChannels();
  }
  if (vocabulary != op.getType().getChannels())
    return op.emitOpError() << "has " << op.getType().getChannels() << " channels, but an earlier one " << vocabulary;
  frame[op] = logitRows;
  return success();
}

LogicalResult TileStep::evaluate(tile::LaunchOp op, Frame &frame) {
  if (op.getRecording() && !memory.records)
    return success();
  std::vector<TaskArgument> arguments;
  for (Value operand : op.getOperands()) {
    TaskArgument &argument = arguments.emplace_back();
    RuntimeValue &value = frame.at(operand);
    if (auto *rows = std::get_if<std::shared_ptr<Rows>>(&value))
      argument.rows = rows->get();
    if (auto *state = std::get_if<llm::StateOp>(&value))
      argument.stateOffset = owner.stateOffsets.at(state->getSymName().str());
    auto *weight = std::get_if<llm::WeightOp>(&value);
    if (!weight)
      continue;
    FailureOr<std::span<const uint8_t>> bytes = owner.weights->bytes(*weight);
    StatusOr<PackedLayout> layout = layoutOf(weight->getType());
    if (failed(bytes))
      return failure();
    if (!layout.ok())
      return weight->emitOpError() << layout.status().message();
    if (bytes->size() != layout->bytes().value())
      return weight->emitError() << "weight @" << weight->getSymName() << " has " << bytes->size()
                                 << " packed bytes, expected " << layout->bytes().value().value_or(0);
    argument.weight = bytes->data();
  }
  auto task = owner.tasks.find(op.getTask().str());
  if (task == owner.tasks.end())
    return op.emitOpError() << "names @" << op.getTask() << ", which is no tile.task of this module";
  return task->second->run(std::move(arguments), memory);
}

LogicalResult TileStep::exchange(Operation *op, Frame &frame, Value input, Value result) {
  if (!owner.collectives)
    return op->emitOpError() << "needs the other ranks, but this one is interpreted alone";
  auto rowsOf = [&](Value value) { return value ? std::get<std::shared_ptr<Rows>>(frame.at(value)) : nullptr; };
  std::shared_ptr<Rows> from = rowsOf(input), to = rowsOf(result);
  SmallVector<int64_t> words = tile::describeCollective(op, tile::ranksOf(owner.module), from ? from->columns : 0,
                                                        to ? to->columns : 0);
  const auto *what = reinterpret_cast<const llmc_collective *>(words.data());
  const int64_t count = what->logit_rows ? memory.batch->num_logit_rows : memory.batch->num_tokens;
  CheckedSize floats = collectiveScratchFloats(*what, count);
  if (!floats.fits(maxBufferElements))
    return op->emitOpError() << "exchanges " << count << " rows, whose copies take more than " << maxBufferElements
                             << " elements";
  std::vector<float> scratch(*floats.value());
  Status status = owner.collectives->run(*what, count, from ? from->values.data() : nullptr,
                                         to ? to->values.data() : nullptr, scratch);
  return status.ok() ? success() : op->emitOpError() << status.message();
}
