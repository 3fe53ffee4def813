#include "passes/TaskGrouping.h"
#include "dialects/llm/LlmShapes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace llmc {
namespace {

// Columns of a tile where nothing asks for another width: one panel of the widest kernel.
constexpr int64_t defaultTile = 64;
// Gate and up alternate in blocks of this many rows, so that both halves of a block meet in one tile.
constexpr int64_t gateBlock = 32;

int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The head size when `result` is taken apart into heads at once, else 0.
int64_t headDimOf(Value result) {
  for (Operation *user : result.getUsers())
    if (auto split = dyn_cast<llm::SplitHeadsOp>(user))
      return llm::channelsOf(split.getType());
  return 0;
}

// Whether the two results of `op` are gate and up of one activation.
bool isGatePair(Operation *op) {
  if (!isa<llm::FusedLinearOp>(op) || op->getNumResults() != 2 || !op->getResult(0).hasOneUse())
    return false;
  auto gated = dyn_cast<llm::GatedActivationOp>(*op->getResult(0).getUsers().begin());
  return gated && gated.getGate() == op->getResult(0) && gated.getUp() == op->getResult(1) &&
         op->getResult(0).getType() == op->getResult(1).getType();
}

// The width of a column tile that every result of `op` consists of.
int64_t tileWidth(Operation *op) {
  if (TaskGrouping::hasStack(op)) {
    // The slots of a row lie side by side: each is whole tiles.
    int64_t width = defaultTile;
    while (llm::channelsOf(op->getResult(0).getType()) % width != 0)
      width /= 2;
    return width;
  }
  if (int64_t headDim = headDimOf(op->getResult(0)))
    if (llvm::all_of(op->getResults(), [&](Value result) {
          int64_t other = headDimOf(result);
          return (other == 0 || other == headDim) && llm::channelsOf(result.getType()) % headDim == 0;
        }))
      return headDim;
  if (op->getNumResults() == 1)
    return std::min(defaultTile, (llm::channelsOf(op->getResult(0).getType()) + 15) / 16 * 16);
  int64_t width = defaultTile;
  while (width > 1 &&
         llvm::any_of(op->getResults(), [&](Value result) { return llm::channelsOf(result.getType()) % width != 0; }))
    width /= 2;
  return width;
}

} // namespace

Value TaskGrouping::root(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<llm::SplitHeadsOp, llm::MergeHeadsOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

SmallVector<OpOperand *> TaskGrouping::usesOf(Value value) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : value.getUses()) {
    if (isa<llm::SplitHeadsOp, llm::MergeHeadsOp>(use.getOwner()))
      llvm::append_range(uses, usesOf(use.getOwner()->getResult(0)));
    else
      uses.push_back(&use);
  }
  return uses;
}

TaskGrouping::TaskGrouping(func::FuncOp function) {
  for (Operation &op : function.getBody().front())
    if (isa<llm::LinearOp, llm::FusedLinearOp>(op) || hasStack(&op))
      group(&op);
}

const ProductTask *TaskGrouping::productOf(Operation *op) const {
  auto known = taskOf_.find(op);
  if (known == taskOf_.end() || products_[known->second].anchor != op)
    return nullptr;
  return &products_[known->second];
}

void TaskGrouping::group(Operation *anchor) {
  ProductTask task;
  task.anchor = anchor;
  if (isGatePair(anchor)) {
    task.interleave = gateBlock;
    task.tile = 2 * gateBlock;
    task.columns = ceilDivide(llm::channelsOf(anchor->getResult(0).getType()), gateBlock);
    for (Value result : anchor->getResults())
      task.inside[result] = {0, task.columns, gateBlock};
  } else {
    task.tile = tileWidth(anchor);
    for (Value result : anchor->getResults()) {
      int64_t tiles = ceilDivide(llm::elementsPerRow(result.getType()), task.tile);
      task.inside[result] = {task.columns, tiles, task.tile};
      task.columns += tiles;
    }
  }
  for (Operation *op = anchor->getNextNode(); op; op = op->getNextNode())
    if (!taskOf_.contains(op) && absorb(op, task))
      task.absorbed.insert(op);
  taskOf_[anchor] = products_.size();
  for (Operation *op : task.absorbed)
    taskOf_[op] = products_.size();
  products_.push_back(std::move(task));
}

// A value that the task can load: it exists before the product starts.
bool TaskGrouping::isAvailable(Value value, const ProductTask &task) const {
  Operation *op = root(value).getDefiningOp();
  if (!op)
    return true;
  auto known = taskOf_.find(op);
  Operation *start = known == taskOf_.end() ? op : products_[known->second].anchor;
  return start != task.anchor && start->isBeforeInBlock(task.anchor);
}

bool TaskGrouping::absorb(Operation *op, ProductTask &task) {
  const ColumnRange *range = rangeBehind(op, task);
  if (!range)
    return false;
  // Insertion may move the map's entries: copy first.
  ColumnRange copy = *range;
  if (!isa<llm::KvAppendOp>(op))
    task.inside[op->getResult(0)] = copy;
  return true;
}

// The columns that `op` fills when it is computed behind the product, or null.
const ColumnRange *TaskGrouping::rangeBehind(Operation *op, const ProductTask &task) const {
  auto rangeOf = [&](Value value) -> const ColumnRange * {
    auto known = task.inside.find(root(value));
    return known == task.inside.end() ? nullptr : &known->second;
  };
  // One operand inside decides the range; the other is inside with the same one, or can be loaded.
  auto pairRange = [&](Value a, Value b) -> const ColumnRange * {
    const ColumnRange *ranges[] = {rangeOf(a), rangeOf(b)};
    if (ranges[0] && ranges[1])
      return ranges[0]->first == ranges[1]->first && ranges[0]->width == ranges[1]->width ? ranges[0] : nullptr;
    if (ranges[0])
      return isAvailable(b, task) ? ranges[0] : nullptr;
    return ranges[1] && isAvailable(a, task) ? ranges[1] : nullptr;
  };
  // Ops on whole heads need a head per tile.
  auto headRange = [&](Value value) -> const ColumnRange * {
    const ColumnRange *range = rangeOf(value);
    return range && range->width == llm::channelsOf(value.getType()) ? range : nullptr;
  };
  // Ops that ask for the place of a channel in its head need tiles of which a head is made.
  auto partRange = [&](Value value) -> const ColumnRange * {
    const ColumnRange *range = rangeOf(value);
    bool hasHeads = cast<RankedTensorType>(value.getType()).getRank() == 3;
    return range && (!hasHeads || llm::channelsOf(value.getType()) % range->width == 0) ? range : nullptr;
  };
  return llvm::TypeSwitch<Operation *, const ColumnRange *>(op)
      .Case([&](llm::AddOp add) { return pairRange(add.getLhs(), add.getRhs()); })
      .Case([&](llm::GatedActivationOp gated) { return pairRange(gated.getGate(), gated.getUp()); })
      .Case([&](llm::MultiplyOp multiply) {
        if (multiply.getRhs().getType() == multiply.getType())
          return pairRange(multiply.getLhs(), multiply.getRhs());
        return isAvailable(multiply.getRhs(), task) ? partRange(multiply.getLhs()) : nullptr;
      })
      .Case<llm::ActivationOp, llm::ClampOp, llm::PositionScaleOp, llm::ScaleOp, llm::SoftcapOp, llm::XieluOp>(
          [&](auto unary) { return rangeOf(unary.getInput()); })
      .Case([&](llm::AffineOp affine) { return partRange(affine.getInput()); })
      .Case<llm::LayerNormOp, llm::RmsNormOp, llm::SoftmaxOp>([&](auto norm) {
        bool perHead = cast<RankedTensorType>(norm.getType()).getRank() == 3;
        return perHead ? headRange(norm.getInput()) : nullptr;
      })
      .Case([&](llm::RopeOp rope) { return isAvailable(rope.getTable(), task) ? headRange(rope.getInput()) : nullptr; })
      .Case([&](llm::KvAppendOp append) {
        bool hasValue = !append.getValue() || headRange(append.getValue());
        return hasValue ? headRange(append.getKey()) : nullptr;
      })
      .Default([](Operation *) { return nullptr; });
}

// What a use of a row leads to: the op whose task reads it, or null where nothing does but records, which compute it
// again.
Operation *TaskGrouping::readerOf(OpOperand *use) const {
  Operation *user = use->getOwner();
  if (isa<llm::RecordOp>(user))
    return nullptr;
  bool isInlined = !taskOf_.contains(user) && !readsMemory(user) && user->getNumResults() == 1 &&
                   isa<RankedTensorType>(user->getResult(0).getType());
  if (!isInlined)
    return user;
  const Reading &reading = readingOf(user->getResult(0));
  return reading.needsBuffer ? user : reading.reader;
}

bool TaskGrouping::readsMemory(Operation *op) {
  return isa<llm::AttentionOp, llm::SelectPositionsOp, llm::LinearAttentionOp, llm::ShortConvOp, llm::WindowPoolOp,
             func::CallOp, func::ReturnOp>(op) ||
         hasStack(op) || isCollective(op);
}

bool TaskGrouping::needsBuffer(Value value) const { return readingOf(value).needsBuffer; }

const TaskGrouping::Reading &TaskGrouping::readingOf(Value value) const {
  auto known = readings_.find(value);
  if (known == readings_.end())
    known = readings_.insert({value, std::make_unique<Reading>(read(value))}).first;
  return *known->second;
}

TaskGrouping::Reading TaskGrouping::read(Value value) const {
  SmallVector<OpOperand *> uses = usesOf(value);
  Operation *op = value.getDefiningOp();
  auto producer = taskOf_.find(op);
  bool inProduct = producer != taskOf_.end();
  llvm::SmallPtrSet<Operation *, 4> readers;
  for (OpOperand *use : uses) {
    Operation *user = use->getOwner();
    auto consumer = taskOf_.find(user);
    bool absorbed = consumer != taskOf_.end() && products_[consumer->second].anchor != user;
    if (inProduct && absorbed && consumer->second == producer->second)
      continue;
    // A product's column tile, slots and heads, attention and other functions read memory.
    if (inProduct || absorbed || readsMemory(user))
      return {true, nullptr};
    if (Operation *reader = readerOf(use))
      readers.insert(reader);
  }
  if (op && isCollective(op))
    return {true, nullptr};
  // A row that two tasks read is cheaper to keep than to compute twice.
  bool isDear = isa_and_nonnull<llm::AttentionOp, llm::SelectPositionsOp, llm::LinearAttentionOp, llm::ShortConvOp,
                                llm::WindowPoolOp, llm::RopeTableOp>(op) &&
                !uses.empty();
  if (isDear || readers.size() > 1)
    return {true, nullptr};
  return {false, readers.empty() ? nullptr : *readers.begin()};
}

} // namespace llmc
