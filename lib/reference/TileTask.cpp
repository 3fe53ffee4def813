// A rule for each op that a task may hold, in the order of TileOps.td: one file, because that is where an op is looked up.
#include "lib/reference/TileTask.h"
#include "lib/reference/Formulas.h"
#include "lib/weights/Unpack.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace llmc;
using namespace llmc::reference;

namespace {
constexpr int64_t maxTaskElements = int64_t(1) << 28;
constexpr int64_t maxRecords = 1 << 16;

bool isFloatLike(Type type) { return getElementTypeOrSelf(type).isF32() || getElementTypeOrSelf(type).isBF16(); }
} // namespace

namespace llmc::reference {

class TaskCompiler {
public:
  explicit TaskCompiler(TileTask &task) : task(task) {}
  LogicalResult compile(Block &block, std::vector<TileTask::Instruction> &into);
  LogicalResult addSlot(Value value);

private:
  using Slot = TileTask::Slot;
  using Instruction = TileTask::Instruction;

  FailureOr<Instruction> compile(Operation &op);
  FailureOr<Instruction> compileArith(Operation &op);
  FailureOr<Instruction> compileMath(Operation &op);

  // Ops with a rule of their own; a null instruction has nothing left to do at run time.
  FailureOr<Instruction> rule(arith::ConstantOp op);
  FailureOr<Instruction> rule(arith::CmpFOp op);
  FailureOr<Instruction> rule(arith::SelectOp op);
  FailureOr<Instruction> rule(tile::LoadOp op);
  FailureOr<Instruction> rule(tile::StoreOp op);
  FailureOr<Instruction> rule(tile::LoadVectorOp op);
  FailureOr<Instruction> rule(tile::GatherOp op);
  FailureOr<Instruction> rule(tile::BatchOp op);
  FailureOr<Instruction> rule(tile::RecordOp op);
  FailureOr<Instruction> rule(tile::DotOp op);
  FailureOr<Instruction> rule(tile::QuantizeOp op);
  FailureOr<Instruction> rule(tile::ScaledDotOp op);
  FailureOr<Instruction> rule(tile::ReduceOp op);
  FailureOr<Instruction> rule(tile::SplatOp op);
  FailureOr<Instruction> rule(tile::SliceOp op);
  FailureOr<Instruction> rule(tile::ConcatOp op);
  FailureOr<Instruction> rule(tile::WhenOp op);
  FailureOr<Instruction> rule(tile::AppendOp op);
  FailureOr<Instruction> rule(tile::AttendOp op);

  template <typename F> Instruction unary(Operation &op, F f) {
    Slot in = slot(op.getOperand(0)), out = slot(op.getResult(0));
    return [=] {
      for (int64_t i = 0; i < out.size; ++i)
        out.floats[i] = f(in.floats[i]);
      return true;
    };
  }
  template <typename F> Instruction binary(Operation &op, F f) {
    Slot a = slot(op.getOperand(0)), b = slot(op.getOperand(1)), out = slot(op.getResult(0));
    return [=] {
      for (int64_t i = 0; i < out.size; ++i)
        out.floats[i] = f(a.floats[i], b.floats[i]);
      return true;
    };
  }
  template <typename F> Instruction integers(Operation &op, F f) {
    Slot a = slot(op.getOperand(0)), b = slot(op.getOperand(1)), out = slot(op.getResult(0));
    return [=] {
      for (int64_t i = 0; i < out.size; ++i)
        out.integers[i] =
            static_cast<int64_t>(f(static_cast<uint64_t>(a.integers[i]), static_cast<uint64_t>(b.integers[i])));
      return true;
    };
  }
  FailureOr<Instruction> division(Operation &op, bool remainder);

  Slot slot(Value value) { return slots.at(value); }
  TaskArgument *argument(Value value) { return &task.arguments[cast<BlockArgument>(value).getArgNumber() - 2]; }
  /// Layout of a packed weight; an error at `op` when it is none.
  FailureOr<PackedLayout> layout(Operation *op, llm::WeightType type);
  FailureOr<std::function<CacheView(int64_t)>> cache(Value kv);

  TileTask &task;
  llvm::DenseMap<Value, Slot> slots;
  int64_t elements = 0;
};

} // namespace llmc::reference

//===-- the task
//----------------------------------------------------------------------------------------------------===//

FailureOr<std::unique_ptr<TileTask>> TileTask::compile(tile::TaskOp op) {
  auto task = std::make_unique<TileTask>();
  task->op = op;
  task->arguments.resize(op.getOperandArguments().size()); // never resized again: instructions point into it
  TaskCompiler compiler(*task);
  if (failed(compiler.compile(op.getBody().front(), task->body)))
    return failure();
  return task;
}

LogicalResult TileTask::run(std::vector<TaskArgument> launched, const StepMemory &stepMemory) {
  std::ranges::copy(launched, arguments.begin());
  memory = stepMemory;
  const int64_t numRows = op.getSpace() == tile::Space::Rows ? memory.batch->num_tokens : memory.batch->num_logit_rows;
  for (*column.integers = 0; *column.integers < static_cast<int64_t>(op.getColumns()); ++*column.integers)
    for (*row.integers = 0; *row.integers < numRows; ++*row.integers)
      for (const Instruction &instruction : body)
        if (!instruction())
          return failure();
  return success();
}

//===-- compiling a body
//--------------------------------------------------------------------------------------------===//

LogicalResult TaskCompiler::addSlot(Value value) {
  Type type = value.getType();
  if (isa<tile::RowsType, llm::WeightType, llm::KvType, llm::BatchType>(type))
    return success();
  Slot slot;
  slot.size = 1;
  if (isa<ShapedType>(type)) {
    if (!tile::isTileType(type))
      return emitError(value.getLoc()) << "a task makes a value of type " << type << ", expected tiles and scalars";
    slot.size = cast<RankedTensorType>(type).getDimSize(0);
  }
  elements += slot.size;
  if (elements > maxTaskElements)
    return emitError(value.getLoc()) << "a task holds more than " << maxTaskElements << " elements";
  Type element = getElementTypeOrSelf(type);
  if (isFloatLike(type)) {
    slot.floats = task.floats.emplace_back(static_cast<size_t>(slot.size)).data();
  } else if (element.isSignlessInteger(16)) {
    slot.codes = task.codes.emplace_back(static_cast<size_t>(slot.size)).data();
  } else if (element.isIndex() || element.isSignlessInteger(1) || element.isSignlessInteger(32) ||
             element.isSignlessInteger(64)) {
    slot.integers = task.integers.emplace_back(static_cast<size_t>(slot.size)).data();
  } else {
    return emitError(value.getLoc()) << "a task makes a value of type " << type
                                     << ", expected f32, bf16, i16, i32, i64, i1 or index elements";
  }
  slots[value] = slot;
  return success();
}

LogicalResult TaskCompiler::compile(Block &block, std::vector<Instruction> &into) {
  for (BlockArgument argument : block.getArguments())
    if (failed(addSlot(argument)))
      return failure();
  if (isa<tile::TaskOp>(block.getParentOp())) {
    task.row = slot(block.getArgument(0));
    task.column = slot(block.getArgument(1));
  }
  for (Operation &op : block) {
    for (Value result : op.getResults())
      if (failed(addSlot(result)))
        return failure();
    FailureOr<Instruction> instruction = compile(op);
    if (failed(instruction))
      return failure();
    if (*instruction)
      into.push_back(std::move(*instruction));
  }
  return success();
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::compile(Operation &op) {
  if (isa_and_nonnull<arith::ArithDialect>(op.getDialect()) &&
      !isa<arith::ConstantOp, arith::CmpFOp, arith::SelectOp>(op))
    return compileArith(op);
  if (isa_and_nonnull<math::MathDialect>(op.getDialect()))
    return compileMath(op);
  return llvm::TypeSwitch<Operation *, FailureOr<Instruction>>(&op)
      .Case<arith::ConstantOp, arith::CmpFOp, arith::SelectOp, tile::LoadOp, tile::StoreOp, tile::LoadVectorOp,
            tile::GatherOp, tile::BatchOp, tile::RecordOp, tile::DotOp, tile::QuantizeOp, tile::ScaledDotOp,
            tile::ReduceOp, tile::SplatOp, tile::SliceOp, tile::ConcatOp, tile::WhenOp, tile::AppendOp, tile::AttendOp>(
          [&](auto known) { return rule(known); })
      .Default([](Operation *unknown) -> FailureOr<Instruction> {
        return unknown->emitOpError() << "has no reference implementation in a task";
      });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::division(Operation &op, bool remainder) {
  Slot a = slot(op.getOperand(0)), b = slot(op.getOperand(1)), out = slot(op.getResult(0));
  return Instruction([=, at = &op] {
    for (int64_t i = 0; i < out.size; ++i) {
      auto dividend = static_cast<uint64_t>(a.integers[i]), divisor = static_cast<uint64_t>(b.integers[i]);
      if (divisor == 0) {
        at->emitOpError() << "divides by zero";
        return false;
      }
      out.integers[i] = static_cast<int64_t>(remainder ? dividend % divisor : dividend / divisor);
    }
    return true;
  });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::compileArith(Operation &op) {
  auto all = [&](auto predicate) {
    return llvm::all_of(op.getOperandTypes(), predicate) && llvm::all_of(op.getResultTypes(), predicate);
  };
  const bool floats = all([](Type type) { return getElementTypeOrSelf(type).isF32(); });
  const bool wide = all([](Type type) { return type.isIndex() || type.isSignlessInteger(64); });
  using R = FailureOr<Instruction>;
  // Casts of the kinds that tasks make.
  if (isa<arith::TruncFOp>(op) && getElementTypeOrSelf(op.getResult(0).getType()).isBF16() &&
      getElementTypeOrSelf(op.getOperand(0).getType()).isF32())
    return unary(op, roundToBf16);
  if (isa<arith::ExtFOp>(op) && all([](Type type) { return isFloatLike(type); }))
    return unary(op, [](float x) { return x; });
  if (isa<arith::IndexCastOp>(op) && !isa<ShapedType>(op.getResult(0).getType())) {
    Slot in = slot(op.getOperand(0)), out = slot(op.getResult(0));
    const bool narrow = op.getResult(0).getType().isSignlessInteger(32);
    if (in.integers && out.integers)
      return Instruction([=] {
        *out.integers = narrow ? static_cast<int32_t>(*in.integers) : *in.integers;
        return true;
      });
  }
  if (isa<arith::SIToFPOp>(op) && getElementTypeOrSelf(op.getResult(0).getType()).isF32() &&
      slot(op.getOperand(0)).integers) {
    Slot in = slot(op.getOperand(0)), out = slot(op.getResult(0));
    return Instruction([=] {
      for (int64_t i = 0; i < out.size; ++i)
        out.floats[i] = static_cast<float>(in.integers[i]);
      return true;
    });
  }
  // The dialect's maximum and minimum hand NaN on.
  auto maximum = [](float a, float b) {
    return std::isnan(a) || a > b ? a : std::isnan(b) ? b : a == b && std::signbit(b) ? a : b;
  };
  auto minimum = [](float a, float b) {
    return std::isnan(a) || a < b ? a : std::isnan(b) ? b : a == b && std::signbit(a) ? a : b;
  };
  R result = failure();
  if (floats)
    result = llvm::TypeSwitch<Operation *, R>(&op)
                 .Case([&](arith::AddFOp) -> R { return binary(op, [](float a, float b) { return a + b; }); })
                 .Case([&](arith::SubFOp) -> R { return binary(op, [](float a, float b) { return a - b; }); })
                 .Case([&](arith::MulFOp) -> R { return binary(op, [](float a, float b) { return a * b; }); })
                 .Case([&](arith::DivFOp) -> R { return binary(op, [](float a, float b) { return a / b; }); })
                 .Case([&](arith::MaximumFOp) -> R { return binary(op, maximum); })
                 .Case([&](arith::MinimumFOp) -> R { return binary(op, minimum); })
                 .Case([&](arith::NegFOp) -> R { return unary(op, [](float x) { return -x; }); })
                 .Default(R(failure()));
  if (wide)
    result = llvm::TypeSwitch<Operation *, R>(&op)
                 .Case([&](arith::AddIOp) -> R { return integers(op, [](uint64_t a, uint64_t b) { return a + b; }); })
                 .Case([&](arith::SubIOp) -> R { return integers(op, [](uint64_t a, uint64_t b) { return a - b; }); })
                 .Case([&](arith::MulIOp) -> R { return integers(op, [](uint64_t a, uint64_t b) { return a * b; }); })
                 .Case([&](arith::DivUIOp) { return division(op, /*remainder=*/false); })
                 .Case([&](arith::RemUIOp) { return division(op, /*remainder=*/true); })
                 .Default(R(failure()));
  if (failed(result))
    return op.emitOpError() << "has no reference implementation in a task for these types";
  return result;
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::compileMath(Operation &op) {
  using R = FailureOr<Instruction>;
  R result = failure();
  if (op.getNumResults() == 1 && getElementTypeOrSelf(op.getResult(0).getType()).isF32())
    result = llvm::TypeSwitch<Operation *, R>(&op)
                 .Case([&](math::ExpOp) -> R { return unary(op, [](float x) { return std::exp(x); }); })
                 .Case([&](math::Exp2Op) -> R { return unary(op, [](float x) { return std::exp2(x); }); })
                 .Case([&](math::TanhOp) -> R { return unary(op, [](float x) { return std::tanh(x); }); })
                 .Case([&](math::ErfOp) -> R { return unary(op, [](float x) { return std::erf(x); }); })
                 .Case([&](math::RsqrtOp) -> R { return unary(op, [](float x) { return 1 / std::sqrt(x); }); })
                 .Case([&](math::SqrtOp) -> R { return unary(op, [](float x) { return std::sqrt(x); }); })
                 .Case([&](math::CosOp) -> R { return unary(op, [](float x) { return std::cos(x); }); })
                 .Case([&](math::SinOp) -> R { return unary(op, [](float x) { return std::sin(x); }); })
                 .Default(R(failure()));
  if (failed(result))
    return op.emitOpError() << "has no reference implementation in a task for these types";
  return result;
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(arith::ConstantOp op) {
  Slot out = slot(op);
  auto set = [&](int64_t i, Attribute value) {
    if (auto number = dyn_cast<FloatAttr>(value); number && out.floats)
      out.floats[i] = static_cast<float>(number.getValueAsDouble());
    else if (auto integer = dyn_cast<IntegerAttr>(value); integer && out.integers)
      out.integers[i] = integer.getType().isIndex() ? integer.getInt() : integer.getValue().getSExtValue();
    else
      return false;
    return true;
  };
  if (auto dense = dyn_cast<DenseElementsAttr>(op.getValue())) {
    for (auto [i, value] : llvm::enumerate(dense.getValues<Attribute>()))
      if (!set(static_cast<int64_t>(i), value))
        return op.emitOpError() << "has no reference implementation in a task for " << op.getType();
    return Instruction();
  }
  if (!set(0, op.getValue()))
    return op.emitOpError() << "has no reference implementation in a task for " << op.getType();
  return Instruction();
}

namespace {
// The ordered predicates are bit sets: 1 equal, 2 greater, 4 less. The unordered ones follow in the same order from 8
// on.
bool compares(arith::CmpFPredicate predicate, float a, float b) {
  const bool unordered = std::isnan(a) || std::isnan(b);
  if (predicate == arith::CmpFPredicate::AlwaysTrue || predicate == arith::CmpFPredicate::UNO)
    return unordered || predicate == arith::CmpFPredicate::AlwaysTrue;
  const int number = static_cast<int>(predicate), set = number < 8 ? number : number - 7;
  if (unordered)
    return number >= 8;
  return (set & 1 && a == b) || (set & 2 && a > b) || (set & 4 && a < b);
}
} // namespace

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(arith::CmpFOp op) {
  Slot a = slot(op.getLhs()), b = slot(op.getRhs()), out = slot(op);
  return Instruction([=, predicate = op.getPredicate()] {
    for (int64_t i = 0; i < out.size; ++i)
      out.integers[i] = compares(predicate, a.floats[i], b.floats[i]);
    return true;
  });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(arith::SelectOp op) {
  if (!isFloatLike(op.getType()))
    return op.emitOpError() << "has no reference implementation in a task for " << op.getType();
  Slot condition = slot(op.getCondition()), a = slot(op.getTrueValue()), b = slot(op.getFalseValue()), out = slot(op);
  return Instruction([=] {
    for (int64_t i = 0; i < out.size; ++i)
      out.floats[i] = condition.integers[condition.size == 1 ? 0 : i] ? a.floats[i] : b.floats[i];
    return true;
  });
}

//===-- memory
//------------------------------------------------------------------------------------------------------===//

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
  return Instruction([=, size = op.getWeight().getType().getShape()[0]] {
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

//===-- arithmetic
//--------------------------------------------------------------------------------------------------===//

namespace {
// The bytes of column tile `index`, or null after an error.
const uint8_t *tileAt(Operation *op, const uint8_t *weight, const PackedLayout &layout, int64_t index) {
  if (index >= 0 && index < layout.numTiles())
    return weight + index * static_cast<int64_t>(*layout.tileBytes().value());
  op->emitOpError() << "reads tile " << index << " of a weight of " << layout.numTiles() << " tiles";
  return nullptr;
}
} // namespace

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::DotOp op) {
  TaskArgument *weight = argument(op.getWeight());
  FailureOr<PackedLayout> packed = layout(op, op.getWeight().getType());
  if (failed(packed))
    return failure();
  Slot in = slot(op.getInput()), column = slot(op.getColumn()), out = slot(op);
  return Instruction([=, packed = *packed] {
    const uint8_t *tile = tileAt(op, weight->weight, packed, *column.integers);
    if (!tile)
      return false;
    (packed.form == llm::WeightForm::F32 ? dotF32 : dotBf16)(in.f(), tile, packed, out.f());
    return true;
  });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::QuantizeOp op) {
  Slot in = slot(op.getInput()), codes = slot(op.getCodes()), scales = slot(op.getScales());
  return Instruction([=] {
    quantize(in.f(), {codes.codes, static_cast<size_t>(codes.size)}, scales.f());
    return true;
  });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::ScaledDotOp op) {
  TaskArgument *weight = argument(op.getWeight());
  FailureOr<PackedLayout> packed = layout(op, op.getWeight().getType());
  if (failed(packed))
    return failure();
  Slot codes = slot(op.getCodes()), scales = slot(op.getScales()), column = slot(op.getColumn()), out = slot(op);
  return Instruction([=, packed = *packed] {
    const uint8_t *tile = tileAt(op, weight->weight, packed, *column.integers);
    if (!tile)
      return false;
    scaledDot({codes.codes, static_cast<size_t>(codes.size)}, scales.f(), tile, packed, out.f());
    return true;
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

//===-- cache
//-------------------------------------------------------------------------------------------------------===//

FailureOr<std::function<CacheView(int64_t)>> TaskCompiler::cache(Value value) {
  TaskArgument *argument = this->argument(value);
  StepMemory *memory = &task.memory;
  auto kv = cast<llm::KvType>(value.getType());
  return std::function<CacheView(int64_t)>([=](int64_t row) {
    const llmc_batch &batch = *memory->batch;
    const int32_t *pages = batch.page_table + static_cast<int64_t>(batch.token_sequence[row]) * batch.page_table_stride;
    return CacheView{memory->kv,   memory->pageBytes, argument->kvOffset,
                     pages,        kv.getHeads(),     kv.getHeadDim(),
                     kv.getPage(), kv.getPanel(),     kv.getElementType().isBF16()};
  });
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
  FailureOr<std::function<CacheView(int64_t)>> view = cache(op.getKv());
  Slot value = slot(op.getValue()), head = slot(op.getHead()), row = slot(op.getRow());
  StepMemory *memory = &task.memory;
  return Instruction(
      [=, view = *view, isValue = op.getHalf() == tile::KvHalf::Value, heads = op.getKv().getType().getHeads()] {
        if (!hasHead(op, *head.integers, heads, *row.integers, memory->batch->num_tokens))
          return false;
        CacheView cache = view(*row.integers);
        for (int64_t d = 0; d < value.size; ++d)
          cache.store(isValue, *head.integers, memory->batch->positions[*row.integers], d, value.floats[d]);
        return true;
      });
}

FailureOr<TaskCompiler::Instruction> TaskCompiler::rule(tile::AttendOp op) {
  FailureOr<std::function<CacheView(int64_t)>> view = cache(op.getKv());
  Slot query = slot(op.getQuery()), head = slot(op.getHead()), row = slot(op.getRow()), out = slot(op);
  StepMemory *memory = &task.memory;
  AttendShape shape{op.getScale().convertToFloat(), op.getSoftcap().convertToFloat(),
                    static_cast<int64_t>(op.getWindow())};
  return Instruction([=, view = *view, heads = op.getKv().getType().getHeads()] {
    if (!hasHead(op, *head.integers, heads, *row.integers, memory->batch->num_tokens))
      return false;
    attend(query.f(), view(*row.integers), *head.integers, memory->batch->positions[*row.integers], shape, out.f());
    return true;
  });
}
