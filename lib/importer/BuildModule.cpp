// Writes a ModelGraph down as IR: symbols first, then a function per kind of layer, then the step that calls them.
#include "lib/importer/BuildModule.h"
#include "dialects/llm/LlmDialect.h"
#include "lib/importer/WeightSourceAttr.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include <map>

using namespace mlir;

namespace llmc {
namespace {

using ValueKind = GraphValue::Kind;

class ModuleBuilder {
public:
  ModuleBuilder(MLIRContext &context, const ModelSpec &spec, int64_t positions, const StorageTypeOf &storageTypeOf)
      : spec_(spec), positions_(positions), storageTypeOf_(storageTypeOf), builder_(&context) {}
  OwningOpRef<ModuleOp> build();

private:
  using Values = llvm::DenseMap<int, Value>; // of one function, by number

  void declareWeights();
  void declareStates();
  func::FuncOp declareFunction(const GraphFunction &graph);
  void buildBody(func::FuncOp function, const GraphFunction &graph, const std::string &prefix);
  void buildNode(const GraphFunction &graph, const GraphNode &node, const std::string &prefix, Values &values);
  void buildRopeTable(const GraphFunction &graph, const GraphNode &node, Location location, Values &values);
  // Weights and states become values where the step first uses them.
  Value valueOf(const GraphFunction &graph, int id, Values &values);

  Type typeOf(const GraphValue &value);
  Attribute attributeOf(StringRef name, const GraphAttribute &attribute);
  Location named(const std::string &name) { return NameLoc::get(builder_.getStringAttr(name)); }
  FloatAttr f32(double value) { return builder_.getF32FloatAttr(static_cast<float>(value)); }

  const ModelSpec &spec_;
  const int64_t positions_;
  const StorageTypeOf &storageTypeOf_;
  OpBuilder builder_;
};

OwningOpRef<ModuleOp> ModuleBuilder::build() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder_.getUnknownLoc());
  builder_.setInsertionPointToEnd(module->getBody());
  (*module)->setAttr("llmc.hidden", builder_.getI64IntegerAttr(spec_.hidden));
  (*module)->setAttr("llmc.vocabulary", builder_.getI64IntegerAttr(spec_.vocabulary));
  (*module)->setAttr("llmc.layers", builder_.getI64IntegerAttr(spec_.layers));
  (*module)->setAttr("llmc.context", builder_.getI64IntegerAttr(positions_));
  declareWeights();
  declareStates();
  for (const GraphFunction &kind : spec_.graph.kinds) {
    func::FuncOp function = declareFunction(kind);
    function.setPrivate();
    buildBody(function, kind, "layers.*(" + kind.name + ").");
  }
  buildBody(declareFunction(spec_.graph.step), spec_.graph.step, "");
  return module;
}

//===-- symbols -----------------------------------------------------------------------------------------------------===//

void ModuleBuilder::declareWeights() {
  for (const WeightSpec &weight : spec_.weights) {
    SmallVector<Attribute> sources;
    for (const WeightSource &source : weight.sources)
      sources.push_back(weightSourceAttr(builder_, source, storageTypeOf_));
    llm::WeightOp::create(builder_, named(weight.name), weight.name,
                          llm::WeightType::get(builder_.getContext(), weight.shape), builder_.getArrayAttr(sources),
                          weight.add != 0 ? builder_.getF64FloatAttr(weight.add) : FloatAttr(), nullptr, nullptr);
  }
}

void ModuleBuilder::declareStates() {
  for (const GraphValue &value : spec_.graph.step.values)
    if (value.kind == ValueKind::State)
      llm::StateOp::create(builder_, named(value.name), value.name, typeOf(value));
}

//===-- functions ---------------------------------------------------------------------------------------------------===//

Type ModuleBuilder::typeOf(const GraphValue &value) {
  switch (value.kind) {
  case ValueKind::Batch:
    return llm::BatchType::get(builder_.getContext());
  case ValueKind::Weight:
    return llm::WeightType::get(builder_.getContext(), value.shape);
  case ValueKind::State:
    if (!value.state.isCache)
      return llm::RecurrentType::get(builder_.getContext(), value.state.heads, value.state.keys, value.state.values);
    return llm::KvType::get(value.state.heads, value.state.keys, builder_.getF32Type(), value.state.values,
                            value.state.latent, value.state.every);
  case ValueKind::Rows:
    break;
  }
  SmallVector<int64_t> shape = {ShapedType::kDynamic};
  if (value.heads)
    shape.push_back(value.heads);
  shape.push_back(value.channels);
  return RankedTensorType::get(shape, builder_.getF32Type());
}

func::FuncOp ModuleBuilder::declareFunction(const GraphFunction &graph) {
  SmallVector<Type> inputs, results;
  for (int input : graph.inputs)
    inputs.push_back(typeOf(graph.values[static_cast<size_t>(input)]));
  for (int result : graph.results)
    results.push_back(typeOf(graph.values[static_cast<size_t>(result)]));
  return func::FuncOp::create(builder_, named(graph.name), graph.name, builder_.getFunctionType(inputs, results));
}

void ModuleBuilder::buildBody(func::FuncOp function, const GraphFunction &graph, const std::string &prefix) {
  Block *body = function.addEntryBlock();
  OpBuilder::InsertionGuard guard(builder_);
  builder_.setInsertionPointToEnd(body);
  Values values;
  for (auto [input, argument] : llvm::zip(graph.inputs, body->getArguments()))
    values[input] = argument;
  for (const GraphNode &node : graph.nodes)
    buildNode(graph, node, prefix, values);
  SmallVector<Value> results;
  for (int result : graph.results)
    results.push_back(values.lookup(result));
  func::ReturnOp::create(builder_, named(graph.name), results);
}

Value ModuleBuilder::valueOf(const GraphFunction &graph, int id, Values &values) {
  Value &value = values[id];
  const GraphValue &described = graph.values[static_cast<size_t>(id)];
  if (value || described.kind == ValueKind::Rows)
    return value;
  if (described.kind == ValueKind::Weight)
    value = llm::UseWeightOp::create(builder_, named(described.name), typeOf(described), described.name);
  else
    value = llm::UseStateOp::create(builder_, named(described.name), typeOf(described), described.name);
  return value;
}

void ModuleBuilder::buildNode(const GraphFunction &graph, const GraphNode &node, const std::string &prefix,
                              Values &values) {
  Location location = named(prefix + node.name);
  if (node.op == "rope_table")
    return buildRopeTable(graph, node, location, values);
  SmallVector<Value> operands;
  for (int operand : node.operands)
    operands.push_back(valueOf(graph, operand, values));
  SmallVector<Type> results;
  for (int result : node.results)
    results.push_back(typeOf(graph.values[static_cast<size_t>(result)]));
  ValueRange made;
  if (node.op == "call") {
    const GraphFunction &callee = spec_.graph.kinds[static_cast<size_t>(std::get<int64_t>(node.attributes.at("kind")))];
    made = func::CallOp::create(builder_, location, callee.name, results, operands).getResults();
  } else {
    OperationState state(location, "llm." + node.op);
    state.addOperands(operands);
    state.addTypes(results);
    for (const auto &[name, attribute] : node.attributes)
      state.addAttribute(name, attributeOf(name, attribute));
    if (!node.segments.empty())
      state.addAttribute("operandSegmentSizes",
                         builder_.getDenseI32ArrayAttr(SmallVector<int32_t>(node.segments.begin(), node.segments.end())));
    made = builder_.create(state)->getResults();
  }
  for (auto [result, value] : llvm::zip(node.results, made))
    values[result] = value;
}

void ModuleBuilder::buildRopeTable(const GraphFunction &graph, const GraphNode &node, Location location, Values &values) {
  const RopeSpec &rope = spec_.ropes.at(std::get<std::string>(node.attributes.at("rope")));
  bool isLong = !rope.longFrequencies.empty() && positions_ > rope.longAfter;
  const std::vector<float> &frequencies = isLong ? rope.longFrequencies : rope.frequencies;
  int result = node.results.front();
  values[result] = llm::RopeTableOp::create(
      builder_, location, typeOf(graph.values[static_cast<size_t>(result)]),
      valueOf(graph, node.operands.front(), values), builder_.getDenseF32ArrayAttr(frequencies), f32(rope.magnitude),
      builder_.getI64IntegerAttr(node.attributes.contains("step") ? std::get<int64_t>(node.attributes.at("step")) : 1));
}

Attribute ModuleBuilder::attributeOf(StringRef name, const GraphAttribute &attribute) {
  MLIRContext *context = builder_.getContext();
  if (const bool *flag = std::get_if<bool>(&attribute))
    return name == "normalize" ? Attribute(builder_.getBoolAttr(*flag)) : builder_.getUnitAttr();
  if (const int64_t *number = std::get_if<int64_t>(&attribute))
    return builder_.getI64IntegerAttr(*number);
  if (const double *number = std::get_if<double>(&attribute))
    return f32(*number);
  if (const auto *list = std::get_if<std::vector<float>>(&attribute))
    return builder_.getDenseF32ArrayAttr(*list);
  // Words are checked where the graph is made.
  const std::string &word = std::get<std::string>(attribute);
  if (name == "activation")
    return llm::ActivationAttr::get(context, *llm::symbolizeActivation(word));
  if (name == "scoring")
    return llm::ScoringAttr::get(context, *llm::symbolizeScoring(word));
  assert(name == "pairing" && "no other attribute of an op is a word");
  return llm::PairingAttr::get(context, *llm::symbolizePairing(word));
}

} // namespace

OwningOpRef<ModuleOp> buildModule(MLIRContext &context, const ModelSpec &spec, int64_t positions,
                                  const StorageTypeOf &storageTypeOf) {
  return ModuleBuilder(context, spec, positions, storageTypeOf).build();
}

} // namespace llmc
