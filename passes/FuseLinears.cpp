// Finds groups of linears that read one input in a layer, and merges them there and in the symbols of every call.
#include "dialects/llm/LlmDialect.h"
#include "dialects/llm/LlmShapes.h"
#include "mlir/IR/Remarks.h"
#include "passes/LayerCalls.h"
#include "passes/Passes.h"
#include "llvm/ADT/SetVector.h"

namespace llmc {
#define GEN_PASS_DEF_FUSELINEARSPASS
#include "passes/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

using Group = SmallVector<llm::LinearOp>;

// Groups of two or more linears of `function` that may become one product.
SmallVector<Group> findGroups(func::FuncOp function);
// Replaces `group` by a fused linear on new arguments of `function`, and its weights in every call.
void fuse(const Group &group, func::FuncOp function, ArrayRef<func::CallOp> calls, SymbolTable &symbols);

// An argument that only `op` reads: then the symbols behind it can be merged.
bool isOwnArgument(Value weight, Operation *op) {
  return isa<BlockArgument>(weight) && weight.hasOneUse() && *weight.getUsers().begin() == op;
}

bool mayFuse(llm::LinearOp op) {
  return isOwnArgument(op.getWeight(), op) && (!op.getBias() || isOwnArgument(op.getBias(), op));
}

void missed(llm::LinearOp first, StringRef reason) {
  remark::missed(first.getLoc(), remark::RemarkOpts::name("fuse-linears").category("fusion"))
      << remark::reason("{0}", reason);
}

bool agree(ArrayRef<llm::LinearOp> group, bool isGatePair) {
  llm::LinearOp first = group.front();
  if (llvm::any_of(group, [&](llm::LinearOp op) { return !op.getBias() != !first.getBias(); })) {
    missed(first, "only some of the linears have a bias");
    return false;
  }
  bool aligned = llvm::all_of(group, [](llm::LinearOp op) { return llm::channelsOf(op.getType()) % 16 == 0; });
  if (!aligned && !isGatePair)
    missed(first, "widths are no multiple of 16");
  return aligned || isGatePair;
}

SmallVector<Group> findGroups(func::FuncOp function) {
  SmallVector<Group> groups;
  llvm::DenseSet<Operation *> taken;
  auto propose = [&](Group group, bool isGatePair) {
    if (group.size() < 2 || !llvm::all_of(group, mayFuse) || !agree(group, isGatePair))
      return;
    taken.insert(group.begin(), group.end());
    groups.push_back(std::move(group));
  };
  function.walk([&](llm::GatedActivationOp op) {
    auto gate = op.getGate().getDefiningOp<llm::LinearOp>(), up = op.getUp().getDefiningOp<llm::LinearOp>();
    if (gate && up && gate != up && gate.getInput() == up.getInput() && gate->hasOneUse() && up->hasOneUse())
      propose({gate, up}, /*isGatePair=*/true);
  });
  llvm::MapVector<Value, Group> byInput;
  function.walk([&](llm::LinearOp op) {
    if (!taken.contains(op))
      byInput[op.getInput()].push_back(op);
  });
  for (auto &[input, group] : byInput)
    propose(group, /*isGatePair=*/false);
  return groups;
}

// "a.b.query", "a.b.key" -> "a.b.query+key".
std::string joinedName(ArrayRef<StringRef> names) {
  StringRef prefix = names.front();
  for (StringRef name : names)
    while (!name.starts_with(prefix))
      prefix = prefix.drop_back();
  prefix = prefix.take_front(prefix.rfind('.') + 1);
  std::string joined = prefix.str();
  for (auto [i, name] : llvm::enumerate(names))
    joined += (i ? "+" : "") + name.drop_front(prefix.size()).str();
  return joined;
}

// Of weights below each other of which ranks have parts: the shape that all are of, and the parts of its dimensions.
std::pair<DenseI64ArrayAttr, ArrayAttr> joinedParts(ArrayRef<llm::WeightOp> weights) {
  if (llvm::none_of(weights, [](llm::WeightOp weight) { return weight.getParts().has_value(); }))
    return {};
  Builder builder(weights.front()->getContext());
  SmallVector<int64_t> rows, of;
  SmallVector<Attribute> parts;
  int64_t begin = 0;
  for (llm::WeightOp weight : weights) {
    ArrayRef<int64_t> shape = weight.getOf() ? *weight.getOf() : cast<llm::WeightType>(weight.getType()).getShape();
    if (!weight.getParts()) {
      rows.append({-1, begin, shape[0]});
    } else {
      ArrayRef<int64_t> own = cast<DenseI64ArrayAttr>((*weight.getParts())[0]).asArrayRef();
      for (size_t i = 0; i < own.size(); i += 3)
        rows.append({own[i], begin + own[i + 1], own[i + 2]});
      parts.assign(weight.getParts()->begin(), weight.getParts()->end());
    }
    begin += shape[0];
    of.assign(shape.begin(), shape.end());
  }
  of[0] = begin;
  parts[0] = builder.getDenseI64ArrayAttr(rows);
  return {builder.getDenseI64ArrayAttr(of), builder.getArrayAttr(parts)};
}

// The weight symbol that is `parts` below each other, made when it does not exist yet.
llm::WeightOp joinedWeight(ArrayRef<llm::WeightOp> parts, llm::WeightType type, SymbolTable &symbols) {
  SmallVector<StringRef> names;
  SmallVector<Attribute> sources;
  for (llm::WeightOp part : parts) {
    names.push_back(part.getSymName());
    llvm::append_range(sources, part.getSources());
  }
  std::string name = joinedName(names);
  if (auto known = symbols.lookup<llm::WeightOp>(name))
    return known;
  OpBuilder builder(parts.front());
  auto [of, rows] = joinedParts(parts);
  Location location = NameLoc::get(builder.getStringAttr(name));
  llm::WeightOp first = parts.front();
  auto joined =
      llm::WeightOp::create(builder, location, name, type, builder.getArrayAttr(sources), first.getAddAttr(), of, rows);
  symbols.insert(joined, Block::iterator(first));
  return joined;
}

// Puts one operand, the joined weight, in front of the operands `indices` of `call`; these go afterwards.
void joinOperands(func::CallOp call, ArrayRef<unsigned> indices, llm::WeightType type, SymbolTable &symbols) {
  SmallVector<llm::WeightOp> parts;
  for (unsigned index : indices) {
    auto use = call.getOperand(index).getDefiningOp<llm::UseWeightOp>();
    parts.push_back(symbols.lookup<llm::WeightOp>(use.getSymbol()));
  }
  OpBuilder builder(call);
  llm::WeightOp joined = joinedWeight(parts, type, symbols);
  Value use = llm::UseWeightOp::create(builder, joined.getLoc(), type, joined.getSymName());
  call->insertOperands(call.getNumOperands(), use);
}

void fuse(const Group &group, func::FuncOp function, ArrayRef<func::CallOp> calls, SymbolTable &symbols) {
  Block &body = function.getBody().front();
  llm::LinearOp first = group.front();
  auto addJoined = [&](SmallVector<unsigned> indices, ArrayRef<int64_t> shape) -> Value {
    auto type = llm::WeightType::get(function.getContext(), shape);
    for (func::CallOp call : calls)
      joinOperands(call, indices, type, symbols);
    return body.addArgument(type, first.getLoc());
  };
  SmallVector<unsigned> weights, biases;
  SmallVector<Type> results;
  int64_t outputs = 0;
  for (llm::LinearOp op : group) {
    weights.push_back(cast<BlockArgument>(op.getWeight()).getArgNumber());
    if (op.getBias())
      biases.push_back(cast<BlockArgument>(op.getBias()).getArgNumber());
    results.push_back(op.getType());
    outputs += llm::channelsOf(op.getType());
  }
  Value weight = addJoined(weights, {outputs, llm::channelsOf(first.getInput().getType())});
  Value bias = biases.empty() ? Value() : addJoined(biases, {outputs});
  OpBuilder builder(first);
  auto fused = llm::FusedLinearOp::create(builder, first.getLoc(), results, first.getInput(), weight, bias);
  for (auto [op, result] : llvm::zip(group, fused.getResults())) {
    llm::LinearOp linear = op;
    linear.getResult().replaceAllUsesWith(result);
    linear.erase();
  }
  llvm::BitVector dead(body.getNumArguments());
  for (unsigned index : llvm::concat<unsigned>(weights, biases))
    dead.set(index);
  body.eraseArguments(dead);
  for (func::CallOp call : calls)
    call->eraseOperands(dead);
  updateFunctionType(function);
}

struct FuseLinears : llmc::impl::FuseLinearsPassBase<FuseLinears> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    LayerCalls layerCalls(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      ArrayRef<func::CallOp> calls = layerCalls.callsOf(function);
      // Without calls there is no symbol to join; an operand that is no symbol (a test) cannot be joined either.
      bool joinable = !calls.empty() && llvm::all_of(calls, [](func::CallOp call) {
        return llvm::all_of(call.getOperands(), [](Value operand) {
          return !isa<llm::WeightType>(operand.getType()) || operand.getDefiningOp<llm::UseWeightOp>();
        });
      });
      if (!joinable)
        continue;
      for (const Group &group : findGroups(function))
        fuse(group, function, calls, symbols);
    }
    eraseUnusedSymbols(getOperation());
  }
};

} // namespace
