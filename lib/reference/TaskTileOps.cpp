// A rule for each op of tile, in the order of TileOps.td.
#include "lib/reference/TaskCompiler.h"
#include "lib/weights/Unpack.h"
#include <cstring>

using namespace mlir;
using namespace llmc;
using namespace llmc::reference;

namespace {
constexpr int64_t maxRecords = 1 << 16;
} // namespace

//===-- memory --===//

namespace {
bool inRow(Operation *op, const Rows &rows, int64_t row, int64_t column, int64_t size) {
  if (row >= 0 && row < rows.rows && column >= 0 && column <= rows.columns - size)
    return true;
  op->emitOpError() << "touches row " << row << ", elements " << column << " to " << column + size << ", of "
                    << rows.rows << " rows of " << rows.columns << " elements";
  return false;
}
} // namespace

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::LoadOp op) {
  TaskArgument *rows = argument(op.getRows());
  Slot row = slot(op.getRow()), column = slot(op.getColumn()), out = slot(op);
  return Instruction([=] {
    if (!inRow(op, *rows->rows, *row.integers, *column.integers, out.size))
      return false;
    std::copy_n(rows->rows->row(*row.integers).begin() + *column.integers, out.size, out.floats);
    return true;
  });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::StoreOp op) {
  TaskArgument *rows = argument(op.getRows());
  Slot row = slot(op.getRow()), column = slot(op.getColumn()), value = slot(op.getValue());
  return Instruction([=] {
    if (!inRow(op, *rows->rows, *row.integers, *column.integers, value.size))
      return false;
    std::copy_n(value.floats, value.size, rows->rows->row(*row.integers).begin() + *column.integers);
    return true;
  });
}

FailureOr<PackedLayout> TaskCompiler::layout(Operation *op, llm::WeightType type) {
  StatusOr<PackedLayout> layout = layoutOf(type);
  if (!layout.ok())
    return op->emitOpError() << "reads " << type << ": " << layout.status().message();
  return *layout;
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::LoadVectorOp op) {
  TaskArgument *weight = argument(op.getWeight());
  if (failed(layout(op, op.getWeight().getType())))
    return failure();
  Slot column = slot(op.getColumn()), out = slot(op);
  int64_t size = 1; // a plain list of vectors is one long vector
  for (int64_t dimension : op.getWeight().getType().getShape())
    size *= dimension;
  return Instruction([=] {
    if (*column.integers < 0) {
      op->emitOpError() << "reads from element " << *column.integers << " on";
      return false;
    }
    std::fill_n(out.floats, out.size, 0.0f);
    const int64_t count = std::min(out.size, size - *column.integers);
    if (count > 0)
      std::memcpy(out.floats, weight->weight + *column.integers * 4, static_cast<size_t>(count) * 4);
    return true;
  });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::GatherOp op) {
  TaskArgument *weight = argument(op.getWeight());
  FailureOr<PackedLayout> packed = layout(op, op.getWeight().getType());
  if (failed(packed))
    return failure();
  Slot index = slot(op.getIndex()), out = slot(op);
  return Instruction([=, packed = *packed] {
    if (*index.integers < 0 || *index.integers >= packed.n) {
      op->emitOpError() << "reads row " << *index.integers << " of a weight of " << packed.n << " rows";
      return false;
    }
    Status status =
        unpackRow(packed, {weight->weight, static_cast<size_t>(*packed.bytes().value())}, *index.integers, out.floats);
    if (!status.ok())
      op->emitOpError() << status.message();
    return status.ok();
  });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::BatchOp op) {
  Slot row = slot(op.getRow()), out = slot(op);
  StepMemory *memory = &task.memory;
  return Instruction([=, fact = op.getFact()] {
    const llmc_batch &batch = *memory->batch;
    const int64_t count = fact == tile::BatchFact::LogitRow ? batch.num_logit_rows : batch.num_tokens;
    if (*row.integers < 0 || *row.integers >= count) {
      op->emitOpError() << "asks for row " << *row.integers << " of " << count;
      return false;
    }
    const int32_t *facts = fact == tile::BatchFact::Token      ? batch.tokens
                           : fact == tile::BatchFact::Position ? batch.positions
                                                               : batch.logit_rows;
    *out.integers = facts[*row.integers];
    return true;
  });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::RecordOp op) {
  Slot row = slot(op.getRow()), value = slot(op.getValue());
  StepMemory *memory = &task.memory;
  if (static_cast<int64_t>(op.getIndex()) >= maxRecords)
    return op.emitOpError() << "has index " << op.getIndex() << ", at most " << maxRecords << " records are kept";
  return Instruction([=, index = static_cast<size_t>(op.getIndex())] {
    if (!memory->records)
      return true;
    if (memory->records->size() <= index)
      memory->records->resize(index + 1);
    Matrix &record = (*memory->records)[index];
    if (record.values.empty())
      record = Matrix(memory->batch->num_tokens, value.size);
    if (!inRow(op, record, *row.integers, 0, value.size))
      return false;
    std::ranges::copy(value.f(), record.row(*row.integers).begin());
    return true;
  });
}

//===-- arithmetic --===//

namespace {
// The bytes of column tile `index` of matrix `matrix`, or null after an error.
const uint8_t *tileAt(Operation *op, const uint8_t *weight, const PackedLayout &layout, int64_t index, int64_t matrix) {
  if (index >= 0 && index < layout.numTiles())
    return weight + (matrix * layout.numTiles() + index) * static_cast<int64_t>(*layout.tileBytes().value());
  op->emitOpError() << "reads tile " << index << " of a weight of " << layout.numTiles() << " tiles";
  return nullptr;
}

// `multiply` with the tile of the matrix that `matrix` names, of the only one without; zeros where it names none.
bool multiplyTile(Operation *op, const uint8_t *weight, const PackedLayout &layout, int64_t index,
                  const int64_t *matrix, std::span<float> out, llvm::function_ref<void(const uint8_t *)> multiply) {
  const int64_t named = matrix ? *matrix : 0;
  if (named < 0 || named >= layout.stacked) {
    std::fill(out.begin(), out.end(), 0.0f);
    return true;
  }
  const uint8_t *tile = tileAt(op, weight, layout, index, named);
  if (tile)
    multiply(tile);
  return tile != nullptr;
}
} // namespace

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::DotOp op) {
  TaskArgument *weight = argument(op.getWeight());
  FailureOr<PackedLayout> packed = layout(op, op.getWeight().getType());
  if (failed(packed))
    return failure();
  Slot in = slot(op.getInput()), column = slot(op.getColumn()), out = slot(op);
  Slot matrix = op.getMatrix() ? slot(op.getMatrix()) : Slot();
  return Instruction([=, packed = *packed] {
    auto *dot = packed.form == llm::WeightForm::F32 ? dotF32 : packed.form == llm::WeightForm::F8 ? dotF8 : dotBf16;
    return multiplyTile(op, weight->weight, packed, *column.integers, matrix.integers, out.f(),
                        [&](const uint8_t *tile) { dot(in.f(), tile, packed, out.f()); });
  });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::QuantizeOp op) {
  Slot in = slot(op.getInput()), codes = slot(op.getCodes()), scales = slot(op.getScales());
  return Instruction([=, largest = static_cast<float>(tile::largestCodeOf(op.getCodes().getType()))] {
    quantize(in.f(), largest, {codes.codes, static_cast<size_t>(codes.size)}, scales.f());
    return true;
  });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::ScaledDotOp op) {
  TaskArgument *weight = argument(op.getWeight());
  FailureOr<PackedLayout> packed = layout(op, op.getWeight().getType());
  if (failed(packed))
    return failure();
  Slot codes = slot(op.getCodes()), scales = slot(op.getScales()), column = slot(op.getColumn()), out = slot(op);
  Slot matrix = op.getMatrix() ? slot(op.getMatrix()) : Slot();
  return Instruction([=, packed = *packed] {
    return multiplyTile(op, weight->weight, packed, *column.integers, matrix.integers, out.f(),
                        [&](const uint8_t *tile) {
                          scaledDot({codes.codes, static_cast<size_t>(codes.size)}, scales.f(), tile, packed, out.f());
                        });
  });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::ReduceOp op) {
  Slot in = slot(op.getInput()), out = slot(op);
  return Instruction([=, add = op.getReduction() == tile::Reduction::Add] {
    *out.floats = add ? reduceAdd(in.f()) : reduceMax(in.f());
    return true;
  });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::SplatOp op) {
  Slot in = slot(op.getInput()), out = slot(op);
  return Instruction([=] {
    std::fill_n(out.floats, out.size, *in.floats);
    return true;
  });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::SliceOp op) {
  Slot in = slot(op.getInput()), out = slot(op);
  return Instruction([=, offset = static_cast<int64_t>(op.getOffset())] {
    std::copy_n(in.floats + offset, out.size, out.floats);
    return true;
  });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::ConcatOp op) {
  std::vector<Slot> inputs;
  for (Value input : op.getInputs())
    inputs.push_back(slot(input));
  Slot out = slot(op);
  return Instruction([=] {
    float *at = out.floats;
    for (const Slot &input : inputs)
      at = std::copy_n(input.floats, input.size, at);
    return true;
  });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::WhenOp op) {
  std::vector<Instruction> inner;
  if (failed(compile(op.getBody().front(), inner)))
    return failure();
  Slot column = slot(op.getColumn());
  return Instruction([=, begin = static_cast<int64_t>(op.getBegin()), end = static_cast<int64_t>(op.getEnd()),
                      inner = std::move(inner)] {
    if (*column.integers < begin || *column.integers >= end)
      return true;
    return llvm::all_of(inner, [](const Instruction &instruction) { return instruction(); });
  });
}

//===-- cache --===//

std::function<CacheView(int64_t)> TaskCompiler::cache(Value value) {
  TaskArgument *argument = this->argument(value);
  StepMemory *memory = &task.memory;
  return [=, kv = cast<llm::KvType>(value.getType())](int64_t row) {
    const llmc_batch &batch = *memory->batch;
    const int32_t *pages = batch.page_table + static_cast<int64_t>(batch.token_sequence[row]) * batch.page_table_stride;
    return CacheView{memory->kv, memory->pageBytes, argument->stateOffset, pages, kv};
  };
}

namespace {
bool hasHead(Operation *op, int64_t head, int64_t heads, int64_t row, int64_t numRows) {
  if (head >= 0 && head < heads && row >= 0 && row < numRows)
    return true;
  op->emitOpError() << "works on head " << head << " of " << heads << " and row " << row << " of " << numRows;
  return false;
}
} // namespace

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::AppendOp op) {
  std::function<CacheView(int64_t)> view = cache(op.getKv());
  Slot value = slot(op.getValue()), head = slot(op.getHead()), row = slot(op.getRow());
  StepMemory *memory = &task.memory;
  return Instruction([=, view = std::move(view), isValue = op.getHalf() == tile::KvHalf::Value,
                      heads = op.getKv().getType().getHeads(), every = op.getKv().getType().getEvery()] {
    if (!hasHead(op, *head.integers, heads, *row.integers, memory->batch->num_tokens))
      return false;
    const int64_t position = memory->batch->positions[*row.integers];
    if ((position + 1) % every == 0)
      view(*row.integers).append(isValue, *head.integers, position / every, value.f());
    return true;
  });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::AttendOp op) {
  std::function<CacheView(int64_t)> view = cache(op.getKv());
  Slot query = slot(op.getQuery()), head = slot(op.getHead()), row = slot(op.getRow()), out = slot(op.getResult());
  Slot logsum = op.getLogsum() ? slot(op.getLogsum()) : Slot();
  Slot sinks = op.getSinks() ? slot(op.getSinks()) : Slot(),
       selected = op.getSelected() ? slot(op.getSelected()) : Slot();
  StepMemory *memory = &task.memory;
  AttendShape shape{op.getScale().convertToFloat(), op.getSoftcap().convertToFloat(),
                    static_cast<int64_t>(op.getWindow()), static_cast<int64_t>(op.getSpan()),
                    static_cast<int64_t>(op.getChunk())};
  std::vector<float> slopes;
  if (op.getAlibi())
    slopes = op.getAlibi()->vec();
  const size_t group = static_cast<size_t>(query.size / op.getKv().getType().getHeadDim());
  return Instruction([=, column = task.column, view = std::move(view), kv = op.getKv().getType()] {
    if (!hasHead(op, *head.integers, kv.getHeads(), *row.integers, memory->batch->num_tokens))
      return false;
    AttendShape here = shape;
    if (!slopes.empty())
      here.slopes = std::span(slopes).subspan(static_cast<size_t>(*column.integers) * group, group);
    if (sinks.size)
      here.sinks = sinks.f();
    if (selected.size)
      here.selected = selected.f();
    const int64_t last = kv.rowsOf(memory->batch->positions[*row.integers] + 1) - 1;
    attend(query.f(), view(*row.integers), *head.integers, last, here, out.f(), logsum.f());
    return true;
  });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::SelectPositionsOp op) {
  std::function<CacheView(int64_t)> view = cache(op.getKv());
  Slot query = slot(op.getQuery()), weights = slot(op.getWeights()), row = slot(op.getRow()), out = slot(op);
  StepMemory *memory = &task.memory;
  return Instruction([=, view = std::move(view), kv = op.getKv().getType()] {
    if (!hasHead(op, 0, 1, *row.integers, memory->batch->num_tokens))
      return false;
    const int64_t last = kv.rowsOf(memory->batch->positions[*row.integers] + 1) - 1;
    selectPositions(query.f(), weights.f(), view(*row.integers), last, out.f());
    return true;
  });
}
