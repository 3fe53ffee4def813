// Attention and its cache.
#include "passes/FunctionTasks.h"

using namespace mlir;
using namespace llmc;

namespace {
// Positions that attention sums up alone, so that workers may share a long context. Fixed: every sum depends on it.
// Large enough to cost nothing, and that eight key-value heads keep 64 workers busy from 8192 positions on.
constexpr int64_t spanPositions = 1024;
} // namespace

void FunctionTasks::emitAppend(TaskBuilder &task, llm::KvAppendOp op, tile::KvHalf half, Value tile, Value head) {
  tile::AppendOp::create(task.body(), task.location(), tile::KvHalfAttr::get(old_.getContext(), half), tile,
                         task.argument(others_.at(op.getKv())), head, task.argument(others_.at(op.getBatch())),
                         task.row());
}

LogicalResult FunctionTasks::convertAttention(llm::AttentionOp op) {
  auto kv = cast<llm::KvType>(others_.at(op.getKv()).getType());
  int64_t width = llm::elementsPerRow(op.getType()) / kv.getHeads();
  TaskBuilder task = newTask(tile::Space::Rows, op.getLoc());
  Value at = task.columnStart(width, 0);
  Value query = task.load(buffers_.at(TaskGrouping::root(op.getQuery())), task.row(), at, width);
  int64_t span = kv.isPaged() ? (spanPositions + kv.getPage() - 1) / kv.getPage() * kv.getPage() : 0;
  int64_t window = static_cast<int64_t>(op.getWindow()), heads = llm::elementsPerRow(op.getType()) / kv.getHeadDim();
  // A short window sees two spans at most: too little to share.
  Value partials;
  if (span > 0 && (window == 0 || window > span))
    partials = task.argument(tile::AllocOp::create(
        launches_, op.getLoc(), tile::RowsType::get(old_.getContext(), heads * (kv.getHeadDim() + 32)), IntegerAttr()));
  Value attended = tile::AttendOp::create(
      task.body(), task.location(), query.getType(), query, task.argument(others_.at(op.getKv())), task.column(),
      task.argument(others_.at(op.getBatch())), task.row(), partials, op.getScaleAttr(), op.getSoftcapAttr(),
      op.getWindowAttr(), task.body().getI64IntegerAttr(span));
  task.store(attended, bufferFor(op.getResult()), at);
  task.finish(kv.getHeads());
  return success();
}

LogicalResult FunctionTasks::convertAppend(llm::KvAppendOp op) {
  TaskBuilder task = newTask(tile::Space::Rows, op.getLoc());
  for (auto [half, value] :
       {std::pair(tile::KvHalf::Key, op.getKey()), std::pair(tile::KvHalf::Value, op.getValue())}) {
    Value row = emitRow(task, value, task.row());
    int64_t channels = llm::channelsOf(value.getType());
    for (int64_t head = 0; head * channels < llm::elementsPerRow(value.getType()); ++head)
      emitAppend(task, op, half, task.slice(row, head * channels, channels), task.index(head));
  }
  task.finish(1);
  return success();
}
