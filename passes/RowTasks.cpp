// Ops that treat every row alone: inlined where they are read, or a task of one column.
#include "passes/FunctionTasks.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc;

namespace {

// Whether `op` must see each head of a whole row alone.
bool worksOnHeads(Operation *op) {
  auto isPerChannel = [&](Value vector) {
    if (!vector)
      return false;
    int64_t elements = cast<llm::WeightType>(vector.getType()).getShape()[0];
    return elements != 1 && elements != llm::elementsPerRow(op->getResult(0).getType());
  };
  if (auto affine = dyn_cast<llm::AffineOp>(op))
    return !affine.getPerHead() && (isPerChannel(affine.getWeight()) || isPerChannel(affine.getBias()));
  return isa<llm::RmsNormOp, llm::LayerNormOp, llm::SoftmaxOp, llm::RopeOp>(op);
}

} // namespace

Value FunctionTasks::emitBatchFact(TaskBuilder &task, tile::BatchFact fact, Value batch, Value row) {
  return tile::BatchOp::create(task.body(), task.location(), task.body().getIndexType(),
                               tile::BatchFactAttr::get(old_.getContext(), fact), task.argument(others_.at(batch)),
                               row);
}

// A factor for each head or row, as often as the part has elements.
Value FunctionTasks::emitFactors(TaskBuilder &task, Value factors, const RowPart &part) {
  int64_t count = llm::elementsPerRow(factors.getType());
  if (!part.isColumn())
    return task.repeat(emitRow(task, factors, part.row()), part.size());
  Value at = count == 1 ? task.index(0) : part.firstHead(task);
  return task.repeat(task.load(buffers_.at(TaskGrouping::root(factors)), part.row(), at, 1), part.size());
}

Value FunctionTasks::emitPart(TaskBuilder &task, Operation *op, const RowPart &part,
                              llvm::function_ref<Value(Value)> operand) {
  if (part.heads() > 1 && worksOnHeads(op)) {
    Value input = operand(op->getOperand(0));
    SmallVector<Value> heads;
    for (int64_t head = 0; head < part.heads(); ++head) {
      Value slice = task.slice(input, head * part.width(), part.width());
      heads.push_back(emitPart(task, op, part.head(head), [&](Value) { return slice; }));
    }
    return task.concat(heads);
  }
  auto vector = [&](Value weight) { return weight ? part.vector(task, others_.at(weight)) : Value(); };
  auto vectorOfHeads = [&](Value weight) { return weight ? part.vectorOfHeads(task, others_.at(weight)) : Value(); };
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](llm::AddOp add) {
        Value lhs = operand(add.getLhs()), rhs = operand(add.getRhs());
        return task.add(lhs, rhs);
      })
      .Case([&](llm::MultiplyOp multiply) {
        Value lhs = operand(multiply.getLhs());
        bool isElementwise = multiply.getRhs().getType() == multiply.getType();
        return task.multiply(lhs,
                             isElementwise ? operand(multiply.getRhs()) : emitFactors(task, multiply.getRhs(), part));
      })
      .Case([&](llm::ScaleOp scale) {
        Value scaled = task.scale(operand(scale.getInput()), scale.getFactor().convertToFloat());
        double offset = scale.getOffset().convertToFloat();
        return offset == 0 ? scaled : task.add(scaled, task.constant(offset, part.size()));
      })
      .Case([&](llm::AffineOp affine) {
        if (affine.getPerHead())
          return task.gainAndOffset(operand(affine.getInput()), vectorOfHeads(affine.getWeight()),
                                    vectorOfHeads(affine.getBias()));
        return task.gainAndOffset(operand(affine.getInput()), vector(affine.getWeight()), vector(affine.getBias()));
      })
      .Case([&](llm::ClampOp clamp) {
        Value low = task.constant(clamp.getLow().convertToFloat(), part.size());
        Value high = task.constant(clamp.getHigh().convertToFloat(), part.size());
        return task.minimum(task.maximum(operand(clamp.getInput()), low), high);
      })
      .Case([&](llm::SoftcapOp softcap) {
        return task.softcap(operand(softcap.getInput()), softcap.getCap().convertToFloat());
      })
      .Case([&](llm::ActivationOp activation) {
        return task.activation(activation.getActivation(), operand(activation.getInput()));
      })
      .Case([&](llm::GatedActivationOp gated) {
        Value gate = operand(gated.getGate()), up = operand(gated.getUp());
        return task.multiply(task.activation(gated.getActivation(), gate), up);
      })
      .Case([&](llm::XieluOp xielu) {
        Value sides = task.loadVector(others_.at(xielu.getWeight()), task.index(0), 2);
        return task.xielu(operand(xielu.getInput()), sides, xielu.getBeta().convertToFloat(),
                          xielu.getEps().convertToFloat());
      })
      .Case([&](llm::SoftmaxOp softmax) { return task.softmax(operand(softmax.getInput())); })
      .Case([&](llm::SinkhornOp matrix) {
        return tile::SinkhornOp::create(task.body(), task.location(), operand(matrix.getInput()),
                                        matrix.getIterationsAttr(), matrix.getEpsAttr());
      })
      .Case([&](llm::RmsNormOp norm) {
        return task.rmsNorm(operand(norm.getInput()), vector(norm.getWeight()), norm.getEps().convertToFloat());
      })
      .Case([&](llm::LayerNormOp norm) {
        return task.layerNorm(operand(norm.getInput()), vector(norm.getWeight()), vector(norm.getBias()),
                              norm.getEps().convertToFloat());
      })
      .Case([&](llm::RopeOp rope) {
        return task.rope(rope, operand(rope.getInput()), emitRow(task, rope.getTable(), part.row()));
      })
      .Case([&](llm::PositionScaleOp scale) {
        Value position = emitBatchFact(task, tile::BatchFact::Position, scale.getBatch(), part.row());
        return task.multiply(operand(scale.getInput()), task.repeat(task.positionScale(position, scale), part.size()));
      });
}

// What moves channels between heads, or rows.
Value FunctionTasks::emitMoved(TaskBuilder &task, Operation *op, Value row) {
  Type type = op->getResult(0).getType();
  int64_t size = llm::channelsOf(type), heads = llm::elementsPerRow(type) / size;
  SmallVector<Value> pieces;
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](llm::SliceOp slice) {
        Value input = emitRow(task, slice.getInput(), row);
        int64_t stride = llm::channelsOf(slice.getInput().getType()), begin = static_cast<int64_t>(slice.getBegin());
        for (int64_t head = 0; head < heads; ++head)
          pieces.push_back(task.slice(input, head * stride + begin, size));
        return task.concat(pieces);
      })
      .Case([&](llm::ConcatOp concat) {
        SmallVector<Value> inputs;
        for (Value input : concat.getInputs())
          inputs.push_back(emitRow(task, input, row));
        for (int64_t head = 0; head < heads; ++head)
          for (Value input : inputs) {
            int64_t channels = task.sizeOf(input) / heads;
            pieces.push_back(task.slice(input, head * channels, channels));
          }
        return task.concat(pieces);
      })
      .Case([&](llm::RepeatHeadsOp repeat) {
        Value input = emitRow(task, repeat.getInput(), row);
        for (int64_t head = 0; head < heads; ++head)
          pieces.push_back(task.slice(input, head / static_cast<int64_t>(repeat.getTimes()) * size, size));
        return task.concat(pieces);
      })
      .Case([&](llm::CombineOp combine) {
        Value slots = emitRow(task, combine.getInput(), row), weights = emitRow(task, combine.getWeights(), row), sum;
        for (int64_t slot = 0; slot < task.sizeOf(weights); ++slot) {
          Value weighted =
              task.multiply(task.slice(slots, slot * size, size), task.repeat(task.slice(weights, slot, 1), size));
          sum = sum ? task.add(sum, weighted) : weighted;
        }
        return sum;
      })
      .Case([&](llm::SelectRowsOp select) {
        return emitRow(task, select.getInput(), emitBatchFact(task, tile::BatchFact::LogitRow, select.getBatch(), row));
      })
      .Default([](Operation *) { return Value(); });
}

// What begins with the batch or with nothing.
Value FunctionTasks::emitSource(TaskBuilder &task, Operation *op, Value row) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](llm::EmbeddingOp embedding) {
        int64_t size = llm::elementsPerRow(embedding.getType());
        Value token = emitBatchFact(task, tile::BatchFact::Token, embedding.getBatch(), row);
        Value table = others_.at(embedding.getWeight()), gathered;
        if (embedding.getExact())
          gathered = task.loadVector(table, task.multiply(token, size), size);
        else
          gathered = tile::GatherOp::create(task.body(), task.location(),
                                            RankedTensorType::get({size}, task.body().getF32Type()),
                                            task.argument(table), token);
        double scale = embedding.getScale().convertToFloat();
        return scale == 1.0 ? gathered : task.scale(gathered, scale);
      })
      .Case([&](llm::PositionEmbeddingOp embedding) {
        Value place = emitBatchFact(task, tile::BatchFact::Position, embedding.getBatch(), row);
        if (auto period = static_cast<int64_t>(embedding.getPeriod()))
          place = arith::RemUIOp::create(task.body(), task.location(), place, task.index(period));
        if (auto offset = static_cast<int64_t>(embedding.getOffset()))
          place = arith::AddIOp::create(task.body(), task.location(), place, task.index(offset));
        int64_t rows = cast<llm::WeightType>(embedding.getWeight().getType()).getShape()[0];
        int64_t size = llm::elementsPerRow(embedding.getType());
        place = arith::MinUIOp::create(task.body(), task.location(), place, task.index(rows - 1));
        Value at = arith::MulIOp::create(task.body(), task.location(), place, task.index(size));
        return task.loadVector(others_.at(embedding.getWeight()), at, size);
      })
      .Case([&](llm::FillOp fill) {
        return task.constant(fill.getValue().convertToFloat(), llm::elementsPerRow(fill.getType()));
      })
      .Case([&](llm::RopeTableOp table) {
        Value position = emitBatchFact(task, tile::BatchFact::Position, table.getBatch(), row);
        if (auto step = static_cast<int64_t>(table.getStep()); step > 1)
          position = task.multiply(task.divide(position, step), step);
        return task.ropeTable(position, table.getFrequencies(), table.getMagnitude().convertToFloat());
      })
      .Default([](Operation *) { return Value(); });
}

Value FunctionTasks::emitRow(TaskBuilder &task, Value value, Value row) {
  value = TaskGrouping::root(value);
  if (Value buffer = buffers_.lookup(value))
    return task.load(buffer, row, task.index(0), llm::elementsPerRow(value.getType()));
  if (Value known = rows_.lookup({value, row}))
    return known;
  Operation *op = value.getDefiningOp();
  Value emitted = emitMoved(task, op, row);
  if (!emitted)
    emitted = emitSource(task, op, row);
  if (!emitted)
    emitted = emitPart(task, op, RowPart::wholeRow(value.getType(), row),
                       [&](Value operand) { return emitRow(task, operand, row); });
  return rows_[{value, row}] = emitted;
}

LogicalResult FunctionTasks::convertRowOp(Operation &op) {
  Value result = op.getResult(0);
  if (isa<llm::PositionScaleOp>(op) && spaceOf(result) == tile::Space::LogitRows)
    return op.emitOpError()
           << "scales by the positions of rows whose logits are wanted, which are not known there; scale "
              "before llm.select_rows";
  if (!grouping_.needsBuffer(result) && !buffers_.contains(result))
    return success(); // inlined where it is read
  TaskBuilder task = newTask(spaceOf(result), op.getLoc());
  // Computed before its buffer is known, or it would load itself.
  Value buffer = buffers_.lookup(result);
  buffers_.erase(result);
  Value row = emitRow(task, result, task.row());
  if (buffer)
    buffers_[result] = buffer;
  task.store(row, bufferFor(result), task.index(0));
  task.finish(1);
  return success();
}
