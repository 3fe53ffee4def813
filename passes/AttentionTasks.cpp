// Attention and its cache.
#include "passes/FunctionTasks.h"

using namespace mlir;
using namespace llmc;

namespace {
// Positions that attention sums up alone, so that workers may share a long context. Fixed: every sum depends on it.
// Large enough to cost nothing, and that eight key-value heads keep 64 workers busy from 8192 positions on.
constexpr int64_t spanPositions = 1024;
constexpr int64_t minLatentHeads = 8, maxLatentHeads = 16;
} // namespace

void FunctionTasks::emitAppend(TaskBuilder &task, llm::KvAppendOp op, tile::KvHalf half, Value tile, Value head) {
  tile::AppendOp::create(task.body(), task.location(), tile::KvHalfAttr::get(old_.getContext(), half), tile,
                         task.argument(others_.at(op.getKv())), head, task.argument(others_.at(op.getBatch())),
                         task.row());
}

// The positions that are summed up or searched alone: whole pages. 0 before a cache has pages.
static int64_t spanOf(llm::KvType kv) {
  return kv.isPaged() ? (spanPositions + kv.getPage() - 1) / kv.getPage() * kv.getPage() : 0;
}

// How many query heads of a key-value head a column of the task takes. A latent cache has one head for all of them:
// parts of it keep workers busy, and turning a page for each part costs little beside the products of so many heads.
static int64_t columnHeads(llm::KvType kv, int64_t group) {
  if (!kv.getLatent())
    return group;
  int64_t heads = std::min<int64_t>(group, maxLatentHeads);
  while (group % heads != 0)
    --heads;
  return heads < minLatentHeads ? group : heads;
}

Value FunctionTasks::partialsFor(TaskBuilder &task, int64_t channels) {
  return task.argument(tile::AllocOp::create(launches_, task.location(),
                                             tile::RowsType::get(old_.getContext(), channels), IntegerAttr()));
}

LogicalResult FunctionTasks::convertAttention(llm::AttentionOp op) {
  auto kv = cast<llm::KvType>(others_.at(op.getKv()).getType());
  int64_t queryHeads = llm::elementsPerRow(op.getQuery().getType()) / kv.getHeadDim();
  int64_t heads = columnHeads(kv, queryHeads / kv.getHeads()), columns = queryHeads / heads;
  TaskBuilder task = newTask(tile::Space::Rows, op.getLoc());
  Value query = task.load(buffers_.at(TaskGrouping::root(op.getQuery())), task.row(),
                          task.columnStart(heads * kv.getHeadDim(), 0), heads * kv.getHeadDim());
  Value head = task.column();
  if (columns != kv.getHeads())
    head = arith::DivUIOp::create(task.body(), op.getLoc(), head, task.index(columns / kv.getHeads()));
  int64_t span = spanOf(kv), seen = 0; // positions that a row sees at most; 0: all
  Value selected, sinks, partials;
  if (op.getSelected()) {
    seen = llm::channelsOf(op.getSelected().getType());
    selected = task.load(buffers_.at(TaskGrouping::root(op.getSelected())), task.row(), task.index(0), seen);
  }
  if (op.getSinks())
    sinks = task.loadVector(others_.at(op.getSinks()), task.columnStart(heads, 0), heads);
  for (int64_t bound : {static_cast<int64_t>(op.getWindow()), static_cast<int64_t>(op.getChunk())})
    if (bound > 0)
      seen = seen > 0 ? std::min(seen, bound) : bound;
  // What sees few positions sees two spans at most: too little to share.
  if (span > 0 && (seen == 0 || seen > span))
    partials = partialsFor(task, tile::partialChannels(kv, queryHeads));
  auto attended =
      tile::AttendOp::create(task.body(), task.location(), query, task.argument(others_.at(op.getKv())), head,
                             task.argument(others_.at(op.getBatch())), task.row(), partials, sinks, selected,
                             op.getScaleAttr(), op.getSoftcapAttr(), op.getWindowAttr(), op.getChunkAttr(),
                             op.getAlibiAttr(), task.body().getI64IntegerAttr(span), op.getWithLogsumAttr());
  task.store(attended.getResult(), bufferFor(op.getResult()), task.columnStart(heads * kv.getValueDim(), 0));
  if (op.getLogsum())
    task.store(attended.getLogsum(), bufferFor(op.getLogsum()), task.columnStart(heads, 0));
  task.finish(columns);
  return success();
}

LogicalResult FunctionTasks::convertSelectPositions(llm::SelectPositionsOp op) {
  auto kv = cast<llm::KvType>(others_.at(op.getKv()).getType());
  TaskBuilder task = newTask(tile::Space::Rows, op.getLoc());
  Value query = emitRow(task, op.getQuery(), task.row()), weights = emitRow(task, op.getWeights(), task.row());
  int64_t count = llm::channelsOf(op.getType()), span = spanOf(kv);
  Value partials = span > 0 ? partialsFor(task, 2 * count) : Value();
  Value selected = tile::SelectPositionsOp::create(
      task.body(), task.location(), RankedTensorType::get({count}, task.body().getF32Type()), query, weights,
      task.argument(others_.at(op.getKv())), task.argument(others_.at(op.getBatch())), task.row(), partials,
      task.body().getI64IntegerAttr(span));
  task.store(selected, bufferFor(op.getResult()), task.index(0));
  task.finish(1);
  return success();
}

LogicalResult FunctionTasks::convertAppend(llm::KvAppendOp op) {
  TaskBuilder task = newTask(tile::Space::Rows, op.getLoc());
  for (auto [half, value] :
       {std::pair(tile::KvHalf::Key, op.getKey()), std::pair(tile::KvHalf::Value, op.getValue())}) {
    if (!value) // latent
      continue;
    Value row = emitRow(task, value, task.row());
    int64_t channels = llm::channelsOf(value.getType());
    for (int64_t head = 0; head * channels < llm::elementsPerRow(value.getType()); ++head)
      emitAppend(task, op, half, task.slice(row, head * channels, channels), task.index(head));
  }
  task.finish(1);
  return success();
}
