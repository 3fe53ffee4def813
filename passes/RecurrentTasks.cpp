// Ops with a recurrent state: one task each, which takes the rows of a sequence in their order.
#include "passes/FunctionTasks.h"

using namespace mlir;
using namespace llmc;

namespace {

// Values of a column tile where many heads have few values each: four vectors of results.
constexpr int64_t mostTileValues = 64;

// Values of a column tile of linear attention: a block of one head, or whole heads that share a query and a key.
int64_t tileValues(llm::RecurrentType state, int64_t headsPerKey) {
  if (!state.lanesAreKeys())
    return std::min(state.getValues(), state.blockLanes());
  int64_t heads = std::max<int64_t>(1, mostTileValues / state.getValues());
  while (headsPerKey % heads != 0)
    --heads;
  return heads * state.getValues();
}

} // namespace

LogicalResult FunctionTasks::convertLinearAttention(llm::LinearAttentionOp op) {
  llm::RecurrentType state = op.getState().getType();
  int64_t keyHeads = cast<RankedTensorType>(op.getKey().getType()).getDimSize(1), keys = state.getKeys();
  int64_t headsPerKey = state.getHeads() / keyHeads, values = tileValues(state, headsPerKey);
  int64_t heads = std::max<int64_t>(1, values / state.getValues());
  TaskBuilder task = newTask(tile::Space::Rows, op.getLoc());
  Value at = task.columnStart(values, 0);
  // The column's first head, and the head of its query and key.
  Value head = task.divide(at, state.getValues());
  Value keyAt = task.multiply(task.divide(head, headsPerKey), keys);
  auto load = [&](Value value, Value from, int64_t size) {
    return task.load(buffers_.at(TaskGrouping::root(value)), task.row(), from, size);
  };
  Value query = load(op.getQuery(), keyAt, keys), key = load(op.getKey(), keyAt, keys);
  Value value = load(op.getValue(), at, values), decay, beta;
  if (op.getDecay()) {
    int64_t perHead = llm::elementsPerRow(op.getDecay().getType()) / state.getHeads();
    decay = load(op.getDecay(), task.multiply(head, perHead), heads * perHead);
  }
  if (op.getBeta())
    beta = load(op.getBeta(), head, heads);
  Value result = tile::RecurOp::create(task.body(), task.location(), value.getType(), query, key, value, decay, beta,
                                       task.argument(others_.at(op.getState())), task.column(),
                                       task.argument(others_.at(op.getBatch())), task.row());
  task.store(result, bufferFor(op.getResult()), at);
  task.finish(state.getHeads() * state.getValues() / values);
  return success();
}

LogicalResult FunctionTasks::convertShortConv(llm::ShortConvOp op) {
  llm::RecurrentType state = op.getState().getType();
  if (!state.lanesAreKeys())
    return op.emitOpError() << "has " << state.getValues() + 1 << " taps, but kernels take at most " << llm::stateLanes;
  int64_t channels = state.blockLanes();
  TaskBuilder task = newTask(tile::Space::Rows, op.getLoc());
  Value at = task.columnStart(channels, 0);
  Value input = task.load(buffers_.at(TaskGrouping::root(op.getInput())), task.row(), at, channels);
  Value result = tile::ConvolveOp::create(
      task.body(), task.location(), input.getType(), input, task.argument(others_.at(op.getWeight())), task.column(),
      task.argument(others_.at(op.getState())), task.argument(others_.at(op.getBatch())), task.row());
  if (op.getBias())
    result = task.add(result, task.loadVector(others_.at(op.getBias()), at, channels));
  task.store(result, bufferFor(op.getResult()), at);
  task.finish(state.blocksPerHead());
  return success();
}

LogicalResult FunctionTasks::convertWindowPool(llm::WindowPoolOp op) {
  llm::RecurrentType state = op.getState().getType();
  if (state.lanesAreKeys())
    return op.emitOpError() << "has " << state.getValues() << " channels, but kernels take at least "
                            << llm::stateLanes;
  int64_t size = state.blockLanes(), channels = llm::channelsOf(op.getType());
  TaskBuilder task = newTask(tile::Space::Rows, op.getLoc());
  Value at = task.columnStart(size, 0);
  // The same channels of every part.
  auto parts = [&](Value value) {
    SmallVector<Value> tiles;
    for (int64_t part = 0; part * channels < llm::channelsOf(value.getType()); ++part) {
      Value from = arith::AddIOp::create(task.body(), task.location(), at, task.index(part * channels));
      tiles.push_back(task.load(buffers_.at(TaskGrouping::root(value)), task.row(), part ? from : at, size));
    }
    return task.concat(tiles);
  };
  Value value = parts(op.getValue()), gate = parts(op.getGate());
  Value result =
      tile::PoolOp::create(task.body(), task.location(), RankedTensorType::get({size}, task.body().getF32Type()), value,
                           gate, task.argument(others_.at(op.getState())), task.column(),
                           task.argument(others_.at(op.getBatch())), task.row(), op.getWindowAttr());
  task.store(result, bufferFor(op.getResult()), at);
  task.finish(state.blocksPerHead());
  return success();
}
