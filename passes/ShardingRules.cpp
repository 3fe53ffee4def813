#include "passes/ShardingRules.h"
#include "dialects/llm/LlmShapes.h"
#include "llvm/ADT/TypeSwitch.h"
#include <tuple>

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;
using sharding::Dimension;

namespace {

SmallVector<int64_t> sizesOf(Type type) {
  return llvm::TypeSwitch<Type, SmallVector<int64_t>>(type)
      .Case<RankedTensorType>([](RankedTensorType rows) { return SmallVector<int64_t>(rows.getShape().drop_front()); })
      .Case<WeightType>([](WeightType weight) { return SmallVector<int64_t>(weight.getShape()); })
      .Case<KvType>([](KvType kv) { return SmallVector<int64_t>{kv.getHeads()}; })
      .Case<RecurrentType>([](RecurrentType state) {
        return SmallVector<int64_t>{state.getHeads(), state.getKeys(), state.getValues()};
      })
      .Default([](Type) { return SmallVector<int64_t>(); });
}

class Rules {
public:
  Rules(FunctionDimensions &function, llvm::SetVector<Operation *> &wholeRows)
      : f(function), axes(function.axes()), wholeRows(wholeRows) {}

  // Nobody knows better: everything is whole.
  void add(Operation *op) {
    for (Value operand : op->getOperands())
      readWhole(operand);
    for (Value result : op->getResults())
      keepWhole(result);
  }
  void add(LinearOp op) {
    product(op.getInput(), op.getWeight(), f.of(op.getResult())[0]);
    if (op.getBias())
      axes.equate(f.of(op.getBias())[0], f.of(op.getResult())[0]);
  }
  void add(HeadLinearOp op) {
    axes.equate(f.of(op.getInput())[0], f.of(op.getResult())[0]);
    axes.equate(f.of(op.getWeight())[0], f.of(op.getResult())[0]);
    for (Dimension whole :
         {f.of(op.getWeight())[1], f.of(op.getWeight())[2], f.of(op.getInput())[1], f.of(op.getResult())[1]})
      axes.keepWhole(whole);
  }
  void add(ExpertLinearOp op) {
    ArrayRef<Dimension> weight = f.of(op.getWeight());
    Dimension experts = weight[0], outer = weight[1], inner = weight[2];
    axes.markExperts(experts);
    axes.markInsideExpert(outer);
    axes.markInsideExpert(inner);
    axes.equate(outer, f.of(op.getResult())[1]);
    axes.equate(inner, f.of(op.getInput()).back());
    axes.keepWhole(f.of(op.getResult())[0]);
    if (f.of(op.getInput()).size() == 2)
      axes.keepWhole(f.of(op.getInput())[0]);
    if (op.getBias()) {
      axes.equate(f.of(op.getBias())[0], experts);
      axes.equate(f.of(op.getBias())[1], outer);
    }
    axes.contract(inner, outer);
    countWeight(op.getWeight());
    readWhole(op.getExperts());
  }
  void add(CombineOp op) {
    axes.equate(f.of(op.getInput())[1], f.of(op.getResult())[0]);
    axes.keepWhole(f.of(op.getInput())[0]);
    readWhole(op.getWeights());
  }
  template <typename Op> void elementwise(Op op) {
    for (Value operand : op->getOperands())
      if (isRows(operand))
        equateAll(operand, op->getResult(0));
      else
        vector(operand, op->getResult(0), false);
  }
  void add(ActivationOp op) { elementwise(op); }
  void add(GatedActivationOp op) { elementwise(op); }
  void add(AddOp op) { elementwise(op); }
  void add(ScaleOp op) { elementwise(op); }
  void add(SoftcapOp op) { elementwise(op); }
  void add(ClampOp op) { elementwise(op); }
  void add(PositionScaleOp op) { equateAll(op.getInput(), op.getResult()); }
  void add(SelectRowsOp op) { equateAll(op.getInput(), op.getResult()); }
  void add(XieluOp op) {
    equateAll(op.getInput(), op.getResult());
    keepWhole(op.getWeight());
  }
  void add(MultiplyOp op) {
    equateAll(op.getLhs(), op.getResult());
    if (op.getRhs().getType() == op.getLhs().getType())
      return equateAll(op.getRhs(), op.getResult());
    if (f.of(op.getResult()).size() == 2 && elementsPerRow(op.getRhs().getType()) > 1)
      axes.equate(f.of(op.getRhs())[0], f.of(op.getResult())[0]);
    else
      readWhole(op.getRhs()); // a number per row
  }
  void add(AffineOp op) {
    equateAll(op.getInput(), op.getResult());
    vector(op.getWeight(), op.getResult(), op.getPerHead());
    vector(op.getBias(), op.getResult(), op.getPerHead());
  }
  void add(RmsNormOp op) { norm(op, op.getInput(), {op.getWeight()}); }
  void add(LayerNormOp op) { norm(op, op.getInput(), {op.getWeight(), op.getBias()}); }
  void add(SliceOp op) {
    ArrayRef<Dimension> from = f.of(op.getInput());
    if (from.size() == 1)
      return axes.equate(axes.slice(from[0], static_cast<int64_t>(op.getBegin()), channelsOf(op.getType())),
                         f.of(op.getResult())[0]);
    axes.equate(from[0], f.of(op.getResult())[0]);
    axes.keepWhole(from[1]);
    axes.keepWhole(f.of(op.getResult())[1]);
  }
  void add(ConcatOp op) {
    if (f.of(op.getResult()).size() == 2) {
      for (Value input : op.getInputs()) {
        axes.equate(f.of(input)[0], f.of(op.getResult())[0]);
        axes.keepWhole(f.of(input)[1]);
      }
      return axes.keepWhole(f.of(op.getResult())[1]);
    }
    Dimension joined;
    for (Value input : op.getInputs())
      for (const sharding::Piece &piece : f.of(input)[0])
        joined.push_back(piece);
    axes.equate(joined, f.of(op.getResult())[0]);
  }
  void add(RepeatHeadsOp op) {
    axes.equate(f.of(op.getInput())[0], f.of(op.getResult())[0], static_cast<int64_t>(op.getTimes()));
    axes.keepWhole(f.of(op.getInput())[1]);
    axes.keepWhole(f.of(op.getResult())[1]);
  }
  void add(SplitHeadsOp op) { heads(op, op.getInput(), op.getResult()); }
  void add(MergeHeadsOp op) { heads(op, op.getResult(), op.getInput()); }
  void add(RopeOp op) {
    axes.equate(f.of(op.getInput())[0], f.of(op.getResult())[0]);
    wholeChannels(op.getInput());
    wholeChannels(op.getResult());
    readWhole(op.getTable());
  }
  void add(KvAppendOp op) {
    for (Value rows : op->getOperands())
      if (isRows(rows)) {
        axes.equate(f.of(rows)[0], f.of(op.getKv())[0]);
        wholeChannels(rows);
      }
    axes.equate(f.of(op.getKv())[0], f.of(op->getResult(0))[0]);
  }
  void add(AttentionOp op) {
    Dimension queries = f.of(op.getQuery())[0], keys = f.of(op.getKv())[0];
    axes.equate(queries, f.of(op.getResult())[0]);
    attend(keys, queries);
    wholeChannels(op.getQuery());
    wholeChannels(op.getResult());
    if (op.getSinks())
      axes.equate(f.of(op.getSinks())[0], queries);
    if (op.getLogsum())
      axes.equate(f.of(op.getLogsum())[0], queries);
    if (op.getSelected())
      readWhole(op.getSelected());
  }
  void add(ShortConvOp op) {
    equateAll(op.getInput(), op.getResult());
    axes.equate(f.of(op.getWeight())[0], f.of(op.getResult())[0]);
    axes.keepWhole(f.of(op.getWeight())[1]);
    axes.equate(f.of(op.getState())[1], f.of(op.getResult())[0]);
    axes.keepWhole(f.of(op.getState())[0]);
    axes.keepWhole(f.of(op.getState())[2]);
    if (op.getBias())
      axes.equate(f.of(op.getBias())[0], f.of(op.getResult())[0]);
  }
  void add(LinearAttentionOp op) {
    Dimension values = f.of(op.getValue())[0];
    axes.equate(values, f.of(op.getResult())[0]);
    axes.equate(values, f.of(op.getState())[0]);
    axes.equate(f.of(op.getQuery())[0], f.of(op.getKey())[0]);
    attend(f.of(op.getKey())[0], values);
    for (Value perHead : {op.getDecay(), op.getBeta()})
      if (perHead) {
        axes.equate(f.of(perHead)[0], values);
        wholeChannels(perHead);
      }
    for (Value rows : {op.getQuery(), op.getKey(), op.getValue(), op.getResult()})
      wholeChannels(rows);
    axes.keepWhole(f.of(op.getState())[1]);
    axes.keepWhole(f.of(op.getState())[2]);
  }
  // Every rank looks up its channels, which are gathered at once.
  void add(EmbeddingOp op) {
    axes.keepWhole(f.of(op.getWeight())[0]);
    if (op.getExact()) // few columns
      axes.keepWhole(f.of(op.getWeight())[1]);
    else
      axes.anchor(f.of(op.getWeight())[1]);
  }

private:
  void keepWhole(Value value) {
    for (const Dimension &dimension : f.of(value))
      axes.keepWhole(dimension);
  }
  void readWhole(Value value) {
    for (const Dimension &dimension : f.of(value)) {
      if (isRows(value) && f.of(value).size() == 1)
        axes.preferWhole(dimension);
      else
        axes.keepWhole(dimension);
    }
  }
  void wholeChannels(Value heads) {
    if (f.of(heads).size() == 2)
      axes.keepWhole(f.of(heads)[1]);
  }
  void equateAll(Value left, Value right) {
    for (auto [a, b] : llvm::zip(f.of(left), f.of(right)))
      axes.equate(Dimension(a), Dimension(b));
  }
  // One element for all, per head, per channel, or per channel of every head.
  void vector(Value weight, Value rows, bool perHead) {
    if (!weight || !isa<WeightType>(weight.getType()))
      return;
    Dimension own = f.of(weight)[0];
    int64_t size = axes.sizeOf(own);
    if (size == 1)
      axes.keepWhole(own);
    else if (perHead)
      axes.equate(own, f.of(rows)[0]);
    else if (size == elementsPerRow(rows.getType()))
      axes.equate(own, f.rowOf(rows));
    else
      axes.equate(own, f.of(rows).back());
  }
  void countWeight(Value weight) {
    int64_t elements = 1;
    for (const Dimension &dimension : f.of(weight))
      elements *= axes.sizeOf(dimension);
    for (const Dimension &dimension : f.of(weight))
      axes.addWeight(dimension, elements);
  }
  void product(Value input, Value weight, Dimension outer) {
    axes.markOutsideExperts(f.of(weight)[0]);
    axes.markOutsideExperts(f.of(weight)[1]);
    axes.equate(f.of(weight)[0], outer);
    axes.equate(f.of(weight)[1], f.of(input)[0]);
    axes.contract(f.of(weight)[1], f.of(weight)[0]);
    countWeight(weight);
  }
  void norm(Operation *op, Value input, ArrayRef<Value> vectors) {
    Value result = op->getResult(0);
    if (f.of(input).size() == 2) {
      axes.equate(f.of(input)[0], f.of(result)[0]);
      wholeChannels(input);
      wholeChannels(result);
      for (Value weight : vectors)
        vector(weight, result, false);
      return;
    }
    wholeRows.insert(op);
    for (Value weight : vectors)
      if (weight)
        keepWhole(weight);
  }
  void heads(Operation *op, Value flat, Value withHeads) {
    if (axes.sizeOf(f.of(withHeads)[0]) == 1) {
      // A row as one head cannot be cut by heads, but the row before and behind may be.
      for (const Dimension &dimension : f.of(withHeads))
        axes.keepWhole(dimension);
      wholeRows.insert(op);
      return;
    }
    int64_t width = channelsOf(withHeads.getType());
    axes.equate(axes.divided(f.of(flat)[0], width), f.of(withHeads)[0]);
    axes.keepWhole(f.of(withHeads)[1]);
  }
  void attend(Dimension keys, Dimension queries) {
    axes.anchor(queries);
    axes.readBy(keys, queries, axes.sizeOf(queries) / axes.sizeOf(keys));
  }

  FunctionDimensions &f;
  sharding::Dimensions &axes;
  llvm::SetVector<Operation *> &wholeRows;
};

} // namespace

ArrayRef<Dimension> FunctionDimensions::of(Value value) {
  SmallVector<Dimension> &known = dimensions_[value];
  if (known.empty())
    for (int64_t size : sizesOf(value.getType()))
      known.push_back(axes_.fresh(size));
  return known;
}

Dimension FunctionDimensions::rowOf(Value value) {
  ArrayRef<Dimension> dimensions = of(value);
  return dimensions.size() == 1 ? dimensions[0] : axes_.multiplied(dimensions[0], channelsOf(value.getType()));
}

bool FunctionDimensions::isCut(Value value) {
  return llvm::any_of(of(value), [&](const Dimension &dimension) { return axes_.isCut(dimension); });
}

FunctionDimensions::FunctionDimensions(func::FuncOp function) {
  // All values first: a reference to what `of` returns holds while rules are added.
  for (Value argument : function.getArguments())
    std::ignore = of(argument);
  for (Operation &op : function.getBody().front())
    for (Value result : op.getResults())
      std::ignore = of(result);
  for (Value argument : function.getArguments())
    if (isRows(argument))
      for (const Dimension &dimension : of(argument))
        axes_.keepWhole(dimension);
  for (Operation &op : function.getBody().front().without_terminator())
    addRule(&op);
  // Logits are gathered: their product is the largest of all.
  bool isStep = function.getSymName() == "step";
  for (Value result : function.getBody().front().getTerminator()->getOperands())
    for (const Dimension &dimension : of(result)) {
      if (of(result).size() > 1)
        axes_.keepWhole(dimension);
      else if (!isStep)
        axes_.preferWhole(dimension);
    }
  linkWholeRows();
}

void FunctionDimensions::addRule(Operation *op) {
  Rules rules(*this, wholeRows_);
  llvm::TypeSwitch<Operation *>(op)
      .Case<LinearOp, HeadLinearOp, ExpertLinearOp, CombineOp, ActivationOp, GatedActivationOp, AddOp, ScaleOp,
            SoftcapOp, ClampOp, PositionScaleOp, SelectRowsOp, XieluOp, MultiplyOp, AffineOp, RmsNormOp, LayerNormOp,
            SliceOp, ConcatOp, RepeatHeadsOp, SplitHeadsOp, MergeHeadsOp, RopeOp, KvAppendOp, AttentionOp, ShortConvOp,
            LinearAttentionOp, EmbeddingOp>([&](auto known) { rules.add(known); })
      .Case<UseWeightOp, UseStateOp, SendOp>([](auto) {}) // what is sent is gathered, like what is returned
      .Default([&](Operation *unknown) { rules.add(unknown); });
}

// The row that came to be the one head which `op` makes a row again; null where it was none.
static Value rowBeforeOneHead(MergeHeadsOp op) {
  Value value = op.getInput();
  while (Operation *before = value.getDefiningOp()) {
    if (auto split = dyn_cast<SplitHeadsOp>(before))
      return split.getInput();
    if (before->getNumOperands() == 0 || before->getOperand(0).getType() != value.getType())
      return Value();
    value = before->getOperand(0);
  }
  return Value();
}

// A norm over all channels of heads that ranks share: both sides are cut alike. Elsewhere its rows are whole, and
// nothing is gained by cutting what feeds it.
void FunctionDimensions::linkWholeRows() {
  for (Operation *op : wholeRows_) {
    Value input = op->getOperand(0);
    if (auto merge = dyn_cast<MergeHeadsOp>(op))
      input = rowBeforeOneHead(merge);
    if (!input || isa<SplitHeadsOp>(op))
      continue;
    Dimension from = of(input)[0], to = of(op->getResult(0))[0];
    if (axes_.isAnchored(from) || axes_.isAnchored(to)) {
      axes_.equate(from, to);
      continue;
    }
    axes_.preferWhole(from);
    axes_.preferWhole(to);
  }
}

bool FunctionDimensions::wantsWhole(OpOperand &operand, bool resultIsCut) const {
  Operation *op = operand.getOwner();
  if (!isRows(operand.get()))
    return false;
  if (needsWholeRows(op))
    return true;
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<LinearOp, HeadLinearOp, ActivationOp, GatedActivationOp, AddOp, ScaleOp, SoftcapOp, ClampOp,
            PositionScaleOp, SelectRowsOp, XieluOp, AffineOp, RmsNormOp, LayerNormOp, SliceOp, ConcatOp, RepeatHeadsOp,
            SplitHeadsOp, MergeHeadsOp, KvAppendOp, ShortConvOp, LinearAttentionOp>([](auto) { return false; })
      .Case<MultiplyOp>([&](MultiplyOp) { return operand.getOperandNumber() == 1 && !resultIsCut; })
      .Case<ExpertLinearOp>([&](ExpertLinearOp experts) { return operand.get() == experts.getExperts(); })
      .Case<CombineOp, RopeOp>([&](auto) { return operand.getOperandNumber() == 1; })
      .Case<AttentionOp>([&](AttentionOp) { return operand.getOperandNumber() != 0; })
      .Default([](Operation *) { return true; });
}

bool llmc::takesSums(Operation *op, function_ref<bool(Value)> isSum) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<AddOp>([&](AddOp add) { return isSum(add.getLhs()) && isSum(add.getRhs()); })
      .Case<ScaleOp>([](ScaleOp scale) { return scale.getOffset().isZero(); })
      .Case<MultiplyOp>([&](MultiplyOp multiply) { return !isSum(multiply.getRhs()); })
      .Case<CombineOp, SelectRowsOp>([](auto) { return true; })
      .Default([](Operation *) { return false; });
}
