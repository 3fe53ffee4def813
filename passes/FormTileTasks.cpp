// Rewrites each function of the llm module into launches of tile tasks. TaskGrouping decides what shares a task,
// TaskBuilder spells the arithmetic; here values become buffers, and functions get their results as operands.
#include "dialects/llm/LlmShapes.h"
#include "passes/LayerCalls.h"
#include "passes/Passes.h"
#include "passes/TaskBuilder.h"
#include "passes/TaskGrouping.h"
#include "llvm/ADT/TypeSwitch.h"

namespace llmc {
#define GEN_PASS_DEF_FORMTILETASKSPASS
#include "passes/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

// Positions that attention sums up alone, so that workers may share a long context. Fixed: every sum depends on it. Large
// enough to cost nothing, and that eight key-value heads keep 64 workers busy from 8192 positions on.
constexpr int64_t spanPositions = 1024;

// Gives every packed weight its tiles, in symbols, uses and functions.
class WeightTiling {
public:
  WeightTiling(ModuleOp module, const llvm::MapVector<func::FuncOp, TaskGrouping> &groupings);
  LogicalResult apply();

private:
  LogicalResult require(Value weight, int64_t tile, int64_t interleave);
  LogicalResult requireSymbol(llm::UseWeightOp use, int64_t tile, int64_t interleave);

  ModuleOp module_;
  const llvm::MapVector<func::FuncOp, TaskGrouping> &groupings_;
  LayerCalls calls_;
  SymbolTable symbols_;
};

// Turns one function into its tile form.
class FunctionTasks {
public:
  FunctionTasks(func::FuncOp function, const TaskGrouping &grouping, bool isStep)
      : old_(function), grouping_(grouping), isStep_(isStep), launches_(function.getContext()) {}
  LogicalResult convert();

private:
  LogicalResult convertOp(Operation &op);
  LogicalResult convertProduct(const ProductTask &task);
  LogicalResult convertAttention(llm::AttentionOp op);
  LogicalResult convertAppend(llm::KvAppendOp op);
  LogicalResult convertRecord(llm::RecordOp op);
  LogicalResult convertCall(func::CallOp op);
  LogicalResult convertRowOp(Operation &op);
  LogicalResult convertReturn(func::ReturnOp op);

  // Column tiles of values inside a product's task.
  Value emitTile(TaskBuilder &task, const ProductTask &product, Value value, Value dot, DenseMap<Value, Value> &known);
  Value emitInside(TaskBuilder &task, const ProductTask &product, Operation *op, const ColumnRange &range,
                   llvm::function_ref<Value(Value)> operand);
  Value emitBias(TaskBuilder &task, const ProductTask &product, Value bias);
  void emitAppend(TaskBuilder &task, llm::KvAppendOp op, tile::KvHalf half, Value tile, Value head);
  // Whole rows, heads side by side.
  Value emitRow(TaskBuilder &task, Value value, Value row);
  Value emitPerHead(TaskBuilder &task, Type type, Value row, llvm::function_ref<Value(Value)> perHead);

  tile::Space spaceOf(Value value);
  Value bufferFor(Value value);
  TaskBuilder newTask(tile::Space space, Location location) {
    return TaskBuilder(old_, launches_, (old_.getSymName() + "." + Twine(numTasks_++)).str(), space, location);
  }
  tile::RowsType rowsType(Type tensor) {
    return tile::RowsType::get(old_.getContext(), llm::elementsPerRow(tensor));
  }

  func::FuncOp old_, new_;
  const TaskGrouping &grouping_;
  bool isStep_;
  OpBuilder launches_;
  int numTasks_ = 0;
  DenseMap<Value, Value> buffers_; // root value -> !tile.rows
  DenseMap<Value, Value> others_;  // weights, states, the batch
};

//===-- weights -----------------------------------------------------------------------------------------------------===//

WeightTiling::WeightTiling(ModuleOp module, const llvm::MapVector<func::FuncOp, TaskGrouping> &groupings)
    : module_(module), groupings_(groupings), calls_(module), symbols_(module) {}

LogicalResult WeightTiling::requireSymbol(llm::UseWeightOp use, int64_t tile, int64_t interleave) {
  auto symbol = symbols_.lookup<llm::WeightOp>(use.getSymbol());
  auto type = cast<llm::WeightType>(symbol.getType());
  llm::WeightType tiled = type.withTiles(tile, interleave);
  if (type.getTile() && tiled != type)
    return use.emitOpError() << "needs tiles of " << tile << ", but @" << use.getSymbol() << " is already packed as "
                             << type;
  symbol.setTypeAttr(TypeAttr::get(tiled));
  use.getResult().setType(tiled);
  return success();
}

LogicalResult WeightTiling::require(Value weight, int64_t tile, int64_t interleave) {
  auto type = cast<llm::WeightType>(weight.getType());
  if (type.getForm() == llm::WeightForm::Any || type.getForm() == llm::WeightForm::Plain)
    return emitError(weight.getLoc()) << "a matrix product reads " << type << "; run llmc-choose-weight-forms first";
  if (auto use = weight.getDefiningOp<llm::UseWeightOp>())
    return requireSymbol(use, tile, interleave);
  auto argument = cast<BlockArgument>(weight);
  for (func::CallOp call : calls_.callsOf(cast<func::FuncOp>(argument.getOwner()->getParentOp()))) {
    auto use = call.getOperand(argument.getArgNumber()).getDefiningOp<llm::UseWeightOp>();
    if (!use)
      return call.emitOpError() << "passes a weight that is no llm.use_weight";
    if (failed(requireSymbol(use, tile, interleave)))
      return failure();
  }
  argument.setType(type.withTiles(tile, interleave));
  return success();
}

LogicalResult WeightTiling::apply() {
  for (auto &[function, grouping] : groupings_)
    for (const ProductTask &task : grouping.products())
      if (failed(require(task.anchor->getOperand(1), task.tile, task.interleave)))
        return failure();
  // An embedding reads single rows: it takes any tiles, those of the tied head where there is one.
  for (auto &[function, grouping] : groupings_) {
    WalkResult result = func::FuncOp(function).walk([&](llm::EmbeddingOp op) {
      auto use = op.getWeight().getDefiningOp<llm::UseWeightOp>();
      bool tiled = use && cast<llm::WeightType>(symbols_.lookup<llm::WeightOp>(use.getSymbol()).getType()).getTile();
      int64_t channels = cast<llm::WeightType>(op.getWeight().getType()).getShape()[0];
      return tiled || succeeded(require(op.getWeight(), std::min<int64_t>(64, (channels + 15) / 16 * 16), 0))
                 ? WalkResult::advance()
                 : WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      return failure();
  }
  // Every use of a symbol sees the type that was settled last.
  module_.walk([&](llm::UseWeightOp use) {
    use.getResult().setType(cast<llm::WeightType>(symbols_.lookup<llm::WeightOp>(use.getSymbol()).getType()));
  });
  return success();
}

//===-- values ------------------------------------------------------------------------------------------------------===//

tile::Space FunctionTasks::spaceOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return tile::Space::Rows;
  if (isa<llm::SelectRowsOp>(op))
    return tile::Space::LogitRows;
  for (Value operand : op->getOperands())
    if (isa<RankedTensorType>(operand.getType()))
      return spaceOf(operand);
  return tile::Space::Rows;
}

Value FunctionTasks::bufferFor(Value value) {
  Value &buffer = buffers_[value];
  if (!buffer)
    buffer = tile::AllocOp::create(launches_, value.getLoc(), rowsType(value.getType()), IntegerAttr());
  return buffer;
}

Value FunctionTasks::emitPerHead(TaskBuilder &task, Type type, Value row, llvm::function_ref<Value(Value)> perHead) {
  SmallVector<Value> heads;
  int64_t size = llm::channelsOf(type);
  for (int64_t at = 0; at < llm::elementsPerRow(type); at += size)
    heads.push_back(perHead(task.slice(row, at, size)));
  return task.concat(heads);
}

Value FunctionTasks::emitRow(TaskBuilder &task, Value value, Value row) {
  value = TaskGrouping::root(value);
  int64_t size = llm::elementsPerRow(value.getType());
  if (Value buffer = buffers_.lookup(value))
    return task.load(buffer, row, task.index(0), size);
  auto batchFact = [&](tile::BatchFact fact, Value batch) -> Value {
    return tile::BatchOp::create(task.body(), task.location(), task.body().getIndexType(),
                                 tile::BatchFactAttr::get(old_.getContext(), fact), task.argument(others_.at(batch)), row);
  };
  return llvm::TypeSwitch<Operation *, Value>(value.getDefiningOp())
      .Case([&](llm::EmbeddingOp op) {
        Value token = batchFact(tile::BatchFact::Token, op.getBatch());
        Value gathered = tile::GatherOp::create(task.body(), task.location(),
                                                RankedTensorType::get({size}, task.body().getF32Type()),
                                                task.argument(others_.at(op.getWeight())), token);
        double scale = op.getScale().convertToFloat();
        return scale == 1.0 ? gathered : task.scale(gathered, scale);
      })
      .Case([&](llm::RopeTableOp op) {
        return task.ropeTable(batchFact(tile::BatchFact::Position, op.getBatch()), op.getFrequencies(),
                              op.getMagnitude().convertToFloat());
      })
      .Case([&](llm::SelectRowsOp op) {
        return emitRow(task, op.getInput(), batchFact(tile::BatchFact::LogitRow, op.getBatch()));
      })
      .Case([&](llm::RmsNormOp op) {
        int64_t channels = llm::channelsOf(op.getType());
        Value gain = task.loadVector(others_.at(op.getWeight()), task.index(0), channels);
        return emitPerHead(task, RankedTensorType::get({1, channels}, task.body().getF32Type()),
                           emitRow(task, op.getInput(), row),
                           [&](Value head) { return task.rmsNorm(head, gain, op.getEps().convertToFloat()); });
      })
      .Case([&](llm::RopeOp op) {
        Value table = emitRow(task, op.getTable(), row);
        return emitPerHead(task, op.getType(), emitRow(task, op.getInput(), row),
                           [&](Value head) { return task.rope(head, table); });
      })
      .Case([&](llm::AddOp op) {
        return task.add(emitRow(task, op.getLhs(), row), emitRow(task, op.getRhs(), row));
      })
      .Case([&](llm::ScaleOp op) {
        return task.scale(emitRow(task, op.getInput(), row), op.getFactor().convertToFloat());
      })
      .Case([&](llm::SoftcapOp op) {
        return task.softcap(emitRow(task, op.getInput(), row), op.getCap().convertToFloat());
      })
      .Case([&](llm::GatedActivationOp op) {
        return task.gatedActivation(op.getActivation(), emitRow(task, op.getGate(), row), emitRow(task, op.getUp(), row));
      });
}

//===-- products ----------------------------------------------------------------------------------------------------===//

Value FunctionTasks::emitBias(TaskBuilder &task, const ProductTask &product, Value bias) {
  Value weight = others_.at(bias);
  if (!product.interleave)
    return task.loadVector(weight, task.columnStart(product.tile, 0), product.tile);
  // Gate's part, then up's, as the tile has them.
  int64_t half = cast<llm::WeightType>(weight.getType()).getShape()[0] / 2;
  Value at = task.columnStart(product.interleave, 0);
  Value upAt = arith::AddIOp::create(task.body(), task.location(), at, task.index(half));
  return task.concat({task.loadVector(weight, at, product.interleave), task.loadVector(weight, upAt, product.interleave)});
}

Value FunctionTasks::emitInside(TaskBuilder &task, const ProductTask &product, Operation *op, const ColumnRange &range,
                                llvm::function_ref<Value(Value)> operand) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](llm::AddOp add) { return task.add(operand(add.getLhs()), operand(add.getRhs())); })
      .Case([&](llm::ScaleOp scale) {
        return task.scale(operand(scale.getInput()), scale.getFactor().convertToFloat());
      })
      .Case([&](llm::SoftcapOp softcap) {
        return task.softcap(operand(softcap.getInput()), softcap.getCap().convertToFloat());
      })
      .Case([&](llm::GatedActivationOp gated) {
        return task.gatedActivation(gated.getActivation(), operand(gated.getGate()), operand(gated.getUp()));
      })
      .Case([&](llm::RmsNormOp norm) {
        Value gain = task.loadVector(others_.at(norm.getWeight()), task.index(0), range.width);
        return task.rmsNorm(operand(norm.getInput()), gain, norm.getEps().convertToFloat());
      })
      .Case([&](llm::RopeOp rope) {
        return task.rope(operand(rope.getInput()), emitRow(task, rope.getTable(), task.row()));
      });
}

Value FunctionTasks::emitTile(TaskBuilder &task, const ProductTask &product, Value value, Value dot,
                              DenseMap<Value, Value> &known) {
  value = TaskGrouping::root(value);
  if (Value tile = known.lookup(value))
    return tile;
  const ColumnRange &range = product.inside.find(value)->second;
  Value tile;
  if (value.getDefiningOp() == product.anchor) {
    int64_t place = product.interleave ? cast<OpResult>(value).getResultNumber() * product.interleave : 0;
    tile = task.slice(dot, place, range.width);
  } else {
    tile = emitInside(task, product, value.getDefiningOp(), range, [&](Value operand) -> Value {
      Value root = TaskGrouping::root(operand);
      if (product.inside.contains(root))
        return emitTile(task, product, root, dot, known);
      return task.load(buffers_.at(root), task.row(), task.columnStart(range.width, range.first), range.width);
    });
  }
  known[value] = tile;
  return tile;
}

void FunctionTasks::emitAppend(TaskBuilder &task, llm::KvAppendOp op, tile::KvHalf half, Value tile, Value head) {
  tile::AppendOp::create(task.body(), task.location(), tile::KvHalfAttr::get(old_.getContext(), half), tile,
                         task.argument(others_.at(op.getKv())), head, task.argument(others_.at(op.getBatch())),
                         task.row());
}

LogicalResult FunctionTasks::convertProduct(const ProductTask &product) {
  Operation *anchor = product.anchor;
  Value input = anchor->getOperand(0);
  TaskBuilder task = newTask(spaceOf(TaskGrouping::root(input)), anchor->getLoc());
  Value dot = task.dot(emitRow(task, input, task.row()), others_.at(anchor->getOperand(1)));
  if (anchor->getNumOperands() > 2)
    dot = task.add(dot, emitBias(task, product, anchor->getOperand(2)));
  // One part per range of columns: what is stored or appended there.
  llvm::MapVector<int64_t, SmallVector<llvm::unique_function<void(DenseMap<Value, Value> &)>>> parts;
  llvm::DenseMap<int64_t, int64_t> ends;
  auto part = [&](Value value) -> auto & {
    const ColumnRange &range = product.inside.find(TaskGrouping::root(value))->second;
    ends[range.first] = range.first + range.tiles;
    return parts[range.first];
  };
  for (auto &entry : product.inside) {
    Value value = entry.first;
    const ColumnRange &range = entry.second;
    if (!grouping_.needsBuffer(value))
      continue;
    Value buffer = bufferFor(value);
    part(value).push_back([&, value, buffer](DenseMap<Value, Value> &known) {
      Value tile = emitTile(task, product, value, dot, known);
      task.store(tile, buffer, task.columnStart(range.width, range.first));
    });
  }
  for (Operation *op : product.absorbed)
    if (auto append = dyn_cast<llm::KvAppendOp>(op))
      for (auto [half, value] : {std::pair(tile::KvHalf::Key, append.getKey()), std::pair(tile::KvHalf::Value, append.getValue())})
        part(value).push_back([&, append, half, value](DenseMap<Value, Value> &known) {
          Value tile = emitTile(task, product, value, dot, known);
          const ColumnRange &range = product.inside.find(TaskGrouping::root(value))->second;
          emitAppend(task, append, half, tile, task.columnStart(1, range.first));
        });
  for (auto &[first, emitters] : parts) {
    OpBuilder::InsertionGuard guard(task.body());
    if (ends[first] - first != product.columns) {
      auto when = tile::WhenOp::create(task.body(), task.location(), task.column(), first, ends[first]);
      task.body().setInsertionPointToEnd(&when.getBody().emplaceBlock());
    }
    DenseMap<Value, Value> known;
    for (auto &emit : emitters)
      emit(known);
  }
  task.finish(product.columns);
  return success();
}

//===-- the other ops -----------------------------------------------------------------------------------------------===//

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
  Value attended = tile::AttendOp::create(task.body(), task.location(), query.getType(), query,
                                          task.argument(others_.at(op.getKv())), task.column(),
                                          task.argument(others_.at(op.getBatch())), task.row(), partials,
                                          op.getScaleAttr(), op.getSoftcapAttr(), op.getWindowAttr(),
                                          task.body().getI64IntegerAttr(span));
  task.store(attended, bufferFor(op.getResult()), at);
  task.finish(kv.getHeads());
  return success();
}

LogicalResult FunctionTasks::convertAppend(llm::KvAppendOp op) {
  TaskBuilder task = newTask(tile::Space::Rows, op.getLoc());
  for (auto [half, value] : {std::pair(tile::KvHalf::Key, op.getKey()), std::pair(tile::KvHalf::Value, op.getValue())}) {
    Value row = emitRow(task, value, task.row());
    int64_t channels = llm::channelsOf(value.getType());
    for (int64_t head = 0; head * channels < llm::elementsPerRow(value.getType()); ++head)
      emitAppend(task, op, half, task.slice(row, head * channels, channels), task.index(head));
  }
  task.finish(1);
  return success();
}

LogicalResult FunctionTasks::convertRecord(llm::RecordOp op) {
  TaskBuilder task = newTask(tile::Space::Rows, op.getLoc());
  Value row = emitRow(task, op.getValue(), task.row());
  tile::RecordOp::create(task.body(), task.location(), row, task.argument(others_.at(op.getBatch())), task.row(),
                         op.getIndexAttr());
  task.finish(1, /*recording=*/true);
  return success();
}

LogicalResult FunctionTasks::convertRowOp(Operation &op) {
  Value result = op.getResult(0);
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

LogicalResult FunctionTasks::convertCall(func::CallOp op) {
  SmallVector<Value> operands;
  for (Value operand : op.getOperands())
    operands.push_back(isa<RankedTensorType>(operand.getType()) ? buffers_.at(TaskGrouping::root(operand))
                                                                : others_.at(operand));
  for (Value result : op.getResults())
    operands.push_back(bufferFor(result));
  func::CallOp::create(launches_, op.getLoc(), op.getCallee(), TypeRange(), operands);
  return success();
}

LogicalResult FunctionTasks::convertReturn(func::ReturnOp op) {
  func::ReturnOp::create(launches_, op.getLoc());
  return success();
}

LogicalResult FunctionTasks::convertOp(Operation &op) {
  if (const ProductTask *product = grouping_.productOf(&op))
    return convertProduct(*product);
  if (auto append = dyn_cast<llm::KvAppendOp>(op)) {
    // Attention reads the same pages, grown.
    others_[append.getResult()] = others_.at(append.getKv());
    return grouping_.isAbsorbed(&op) ? success() : convertAppend(append);
  }
  if (grouping_.isAbsorbed(&op) || isa<llm::SplitHeadsOp, llm::MergeHeadsOp>(op))
    return success();
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<llm::UseWeightOp, llm::UseStateOp>([&](auto) {
        others_[op.getResult(0)] = launches_.clone(op)->getResult(0);
        return success();
      })
      .Case([&](llm::AttentionOp attention) { return convertAttention(attention); })
      .Case([&](llm::RecordOp record) { return convertRecord(record); })
      .Case([&](func::CallOp call) { return convertCall(call); })
      .Case([&](func::ReturnOp ret) { return convertReturn(ret); })
      .Case<llm::EmbeddingOp, llm::RopeTableOp, llm::SelectRowsOp, llm::RmsNormOp, llm::RopeOp, llm::AddOp,
            llm::ScaleOp, llm::SoftcapOp, llm::GatedActivationOp>([&](auto) { return convertRowOp(op); })
      .Default([](Operation *other) -> LogicalResult { return other->emitOpError() << "has no tile form"; });
}

LogicalResult FunctionTasks::convert() {
  Block &body = old_.getBody().front();
  SmallVector<Type> inputs;
  for (BlockArgument argument : body.getArguments())
    inputs.push_back(isa<RankedTensorType>(argument.getType()) ? Type(rowsType(argument.getType())) : argument.getType());
  auto returned = body.getTerminator()->getOperands();
  if (!isStep_)
    for (Value value : returned)
      inputs.push_back(rowsType(value.getType()));
  OpBuilder builder(old_);
  builder.setInsertionPointAfter(old_);
  new_ = func::FuncOp::create(builder, old_.getLoc(), old_.getSymName(), builder.getFunctionType(inputs, {}));
  new_.setVisibility(old_.getVisibility());
  Block *newBody = new_.addEntryBlock();
  launches_.setInsertionPointToEnd(newBody);
  for (auto [argument, replacement] : llvm::zip(body.getArguments(), newBody->getArguments()))
    (isa<RankedTensorType>(argument.getType()) ? buffers_ : others_)[argument] = replacement;
  for (auto [index, value] : llvm::enumerate(returned)) {
    Value root = TaskGrouping::root(value);
    if (buffers_.contains(root) || (isStep_ && index > 0))
      return body.getTerminator()->emitOpError() << "returns an operand, or one value twice; llm.scale makes a copy";
    if (isStep_)
      buffers_[root] = tile::LogitsOp::create(launches_, value.getLoc(), rowsType(value.getType()));
    else
      buffers_[root] = newBody->getArgument(body.getNumArguments() + static_cast<unsigned>(index));
  }
  for (Operation &op : body)
    if (failed(convertOp(op)))
      return failure();
  old_.erase();
  return success();
}

struct FormTileTasks : llmc::impl::FormTileTasksPassBase<FormTileTasks> {
  void runOnOperation() override {
    llvm::MapVector<func::FuncOp, TaskGrouping> groupings;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isDeclaration())
        groupings.insert({function, TaskGrouping(function)});
    if (failed(WeightTiling(getOperation(), groupings).apply()))
      return signalPassFailure();
    for (auto &[function, grouping] : groupings)
      if (failed(FunctionTasks(function, grouping, function.getSymName() == "step").convert()))
        return signalPassFailure();
  }
};

} // namespace
