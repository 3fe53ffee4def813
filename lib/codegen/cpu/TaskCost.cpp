#include "lib/codegen/cpu/TaskCost.h"
#include "dialects/llm/LlmShapes.h"
#include "lib/weights/PackedLayout.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

// exp, rsqrt, sine and the like, in operations: polynomials of about five steps. As the llm dialect counts them.
constexpr int64_t kMathOperations = 10;
constexpr int64_t kQuantizeOperations = 4; // magnitude, maximum, product, rounding

int64_t elementsOf(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile ? tile.getNumElements() : 1;
}

int64_t elementBytes(Type type) { return (getElementTypeOrSelf(type).getIntOrFloatBitWidth() + 7) / 8; }

int64_t packedBytes(llm::WeightType type) {
  StatusOr<PackedLayout> layout = layoutOf(type);
  std::optional<uint64_t> bytes = layout.ok() ? layout->bytes().value() : std::nullopt;
  return static_cast<int64_t>(bytes.value_or(0));
}

class CostCounter {
public:
  explicit CostCounter(tile::TaskOp task) : task(task) { varying.insert(task.getColumn()); }

  KernelCost count() {
    cost.logitRows = task.getSpace() == tile::Space::LogitRows;
    countBlock(task.getBody().front(), static_cast<int64_t>(task.getColumns()), /*conditional=*/false);
    return cost;
  }

private:
  // `columns` is how many column tiles run the block; what does not depend on the column is done once per row.
  void countBlock(Block &block, int64_t columns, bool conditional) {
    for (Operation &op : block) {
      if (auto when = dyn_cast<tile::WhenOp>(op)) {
        countBlock(when.getBody().front(), static_cast<int64_t>(when.getEnd() - when.getBegin()), true);
        continue;
      }
      bool varies =
          conditional || llvm::any_of(op.getOperands(), [&](Value operand) { return varying.contains(operand); });
      if (varies)
        varying.insert(op.getResults().begin(), op.getResults().end());
      countOp(op, varies ? columns : 1);
    }
  }

  // Of a stack what one row names; more rows read more of it.
  void countProduct(llm::WeightType weight, int64_t passes) {
    StatusOr<PackedLayout> layout = layoutOf(weight);
    int64_t stacked = weight.getNumStacked(), matrices = 1;
    if (layout.ok() && weight.getShape().size() == 3)
      matrices = static_cast<int64_t>(task.getColumns()) / layout->numTiles();
    cost.products += 2 * matrices * weight.getNumRows() * weight.getShape().back();
    cost.passes = passes;
    cost.weightBytes += packedBytes(weight) / stacked * std::min(matrices, stacked);
  }

  void countAttend(tile::AttendOp op, int64_t times) {
    llm::KvType kv = op.getKv().getType();
    // Scores and weighted values: a product for every channel of every query head. Columns that share a key-value head
    // read it together.
    cost.positionProducts +=
        2 * (elementsOf(op.getQuery().getType()) + elementsOf(op.getResult().getType())) * times / kv.getEvery();
    cost.positionBytes += (kv.getHeadDim() + kv.storedValueDim()) * elementBytes(kv.getElementType()) *
                          std::min(times, kv.getHeads()) / kv.getEvery();
    for (int64_t bound : {static_cast<int64_t>(op.getWindow()), static_cast<int64_t>(op.getChunk()),
                          op.getSelected() ? elementsOf(op.getSelected().getType()) : 0})
      if (bound > 0)
        cost.window = cost.window ? std::min(cost.window, bound * kv.getEvery()) : bound * kv.getEvery();
  }

  void countSelect(tile::SelectPositionsOp op) {
    llm::KvType kv = op.getKv().getType();
    cost.positionProducts +=
        2 * (elementsOf(op.getQuery().getType()) + elementsOf(op.getWeights().getType())) / kv.getEvery();
    cost.positionBytes += kv.getHeadDim() * elementBytes(kv.getElementType()) / kv.getEvery();
  }

  // A few operations for every element of the state that the tile covers, which is read and written once for all rows
  // of a sequence.
  void countState(llm::RecurrentType state, int64_t elements, int64_t operations, int64_t times) {
    cost.otherOperations += operations * elements * times;
    cost.sequenceBytes += 2 * state.bytes() / static_cast<int64_t>(task.getColumns()) * times;
  }

  void countRecur(tile::RecurOp op, int64_t times) {
    llm::RecurrentType state = op.getState().getType();
    // Two sums and the update with beta, else the update and one sum; and the decay.
    int64_t operations = (op.getBeta() ? 6 : 4) + (op.getDecay() ? 1 : 0);
    countState(state, state.getKeys() * elementsOf(op.getValue().getType()), operations, times);
  }

  void countConvolve(tile::ConvolveOp op, int64_t times) {
    llm::RecurrentType state = op.getState().getType();
    countState(state, elementsOf(op.getInput().getType()), 2 * (state.getValues() + 1), times);
    cost.weightBytes += packedBytes(op.getWeight().getType()) / static_cast<int64_t>(task.getColumns()) * times;
  }

  void countPool(tile::PoolOp op, int64_t times) {
    // Two exponentials and seven more for each channel given, about half of that for its result.
    int64_t given = elementsOf(op.getValue().getType()), size = elementsOf(op.getType());
    cost.otherOperations += (2 * kMathOperations + 7) * (given > size ? given + size : given) * times;
    countState(op.getState().getType(), 0, 0, times);
  }

  void countOp(Operation &op, int64_t times) {
    llvm::TypeSwitch<Operation *>(&op)
        .Case([&](tile::DotOp dot) { countProduct(dot.getWeight().getType(), 1); })
        .Case([&](tile::ScaledDotOp dot) {
          countProduct(dot.getWeight().getType(), elementBytes(dot.getCodes().getType()));
        })
        .Case([&](tile::AttendOp attend) { countAttend(attend, times); })
        .Case([&](tile::RecurOp recur) { countRecur(recur, times); })
        .Case([&](tile::ConvolveOp convolve) { countConvolve(convolve, times); })
        .Case([&](tile::PoolOp pool) { countPool(pool, times); })
        .Case([&](tile::SinkhornOp matrix) {
          cost.otherOperations +=
              4 * static_cast<int64_t>(matrix.getIterations()) * elementsOf(matrix.getType()) * times;
        })
        .Case([&](tile::SelectPositionsOp select) { countSelect(select); })
        .Case([&](tile::LoadOp load) { cost.rowBytes += 4 * elementsOf(load.getType()) * times; })
        .Case([&](tile::StoreOp store) { cost.rowBytes += 4 * elementsOf(store.getValue().getType()) * times; })
        .Case([&](tile::LoadVectorOp load) { cost.weightBytes += 4 * elementsOf(load.getType()) * times; })
        .Case([&](tile::GatherOp gather) {
          double bytes = llm::bytesPerWeightElement(gather.getWeight().getType().getForm());
          cost.rowBytes += static_cast<int64_t>(bytes * static_cast<double>(elementsOf(gather.getType()))) * times;
        })
        .Case([&](tile::AppendOp append) {
          cost.rowBytes +=
              elementsOf(append.getValue().getType()) * elementBytes(append.getKv().getType().getElementType()) * times;
        })
        .Case([&](tile::QuantizeOp quantize) {
          cost.otherOperations += kQuantizeOperations * elementsOf(quantize.getInput().getType()) * times;
        })
        .Case([&](tile::ChooseOp choose) {
          cost.otherOperations += elementsOf(choose.getInput().getType()) * elementsOf(choose.getType()) * times;
        })
        .Case([&](tile::ReduceOp reduce) { cost.otherOperations += elementsOf(reduce.getInput().getType()) * times; })
        .Default([&](Operation *other) {
          bool isMath = isa_and_nonnull<math::MathDialect>(other->getDialect());
          if (!isMath && !isa_and_nonnull<arith::ArithDialect>(other->getDialect()))
            return;
          if (other->getNumOperands() > 0 && isa<FloatType>(getElementTypeOrSelf(other->getResult(0).getType())))
            cost.otherOperations += (isMath ? kMathOperations : 1) * elementsOf(other->getResult(0).getType()) * times;
        });
  }

  tile::TaskOp task;
  llvm::DenseSet<Value> varying; // values that depend on the column
  KernelCost cost;
};

} // namespace

KernelCost llmc::cpu::costOf(tile::TaskOp task) { return CostCounter(task).count(); }

DenseMap<Operation *, std::vector<int32_t>> llmc::cpu::layersOfLaunches(ModuleOp program) {
  DenseMap<Operation *, std::vector<int32_t>> layers;
  auto step = program.lookupSymbol<func::FuncOp>("step");
  if (!step || step.isExternal())
    return layers;
  auto note = [&](tile::LaunchOp launch, int32_t layer) {
    if (Operation *task = program.lookupSymbol(launch.getTaskAttr().getAttr()); task && !launch.getRecording())
      layers[task].push_back(layer);
  };
  int32_t next = 0;
  for (Operation &op : step.getBody().front()) {
    if (tile::blockOf(&op).value_or(0) > 0)
      continue;
    if (auto launch = dyn_cast<tile::LaunchOp>(op))
      note(launch, -1);
    auto call = dyn_cast<func::CallOp>(op);
    auto callee = call ? program.lookupSymbol<func::FuncOp>(call.getCalleeAttr().getAttr()) : func::FuncOp();
    if (!callee || callee.isExternal())
      continue;
    auto known = call->getAttrOfType<IntegerAttr>("tile.layer");
    auto layer = known ? static_cast<int32_t>(known.getInt()) : next++;
    for (auto launch : callee.getBody().front().getOps<tile::LaunchOp>())
      note(launch, layer);
  }
  return layers;
}
