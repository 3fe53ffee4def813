// One pass over ModelSpec: symbols first, then a function per kind of layer, then the step that calls them.
#include "lib/importer/BuildModule.h"
#include "lib/importer/WeightSourceAttr.h"
#include "dialects/llm/LlmDialect.h"
#include "dialects/llm/LlmShapes.h"
#include "lib/importer/Inspect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

using namespace mlir;

namespace llmc {
namespace {

class ModuleBuilder {
public:
  ModuleBuilder(MLIRContext &context, const ModelSpec &spec, int64_t positions, const StorageTypeOf &storageTypeOf)
      : spec_(spec), positions_(positions), storageTypeOf_(storageTypeOf), builder_(&context) {
    for (const WeightSpec &weight : spec.weights)
      weights_[weight.name] = &weight;
  }
  OwningOpRef<ModuleOp> build();

private:
  // A layer function while it is built, its weights by the name inside the layer.
  struct Layer {
    std::map<std::string, Value> weights;
    Value batch, kv, rope;
  };

  struct Kind {
    std::string name;
    std::vector<std::string> weightNames; // inside the layer, in call order
  };

  void declareSymbols(ModuleOp module);
  void buildLayer(ModuleOp module, Kind &kind, size_t exampleLayer);
  Value buildAttention(Layer &layer, const LayerSpec &spec, Value hidden);
  Value buildMlp(Layer &layer, const LayerSpec &spec, Value hidden);
  Value residual(Layer &layer, const LayerSpec &spec, Value hidden, Value block, const std::string &postNorm);
  void buildStep(ModuleOp module);

  Location named(const std::string &name) { return NameLoc::get(builder_.getStringAttr(name)); }
  RankedTensorType rows(int64_t channels) {
    return RankedTensorType::get({ShapedType::kDynamic, channels}, builder_.getF32Type());
  }
  RankedTensorType headRows(int64_t heads, int64_t channels) {
    return RankedTensorType::get({ShapedType::kDynamic, heads, channels}, builder_.getF32Type());
  }
  llm::WeightType weightType(const WeightSpec &weight) {
    return llm::WeightType::get(builder_.getContext(), weight.shape);
  }
  llm::KvType kvType(const AttentionSpec &attention) {
    return llm::KvType::get(attention.kvHeads, attention.headDim, builder_.getF32Type());
  }
  FloatAttr f32(double value) { return builder_.getF32FloatAttr(static_cast<float>(value)); }

  Value use(const std::string &name) {
    return llm::UseWeightOp::create(builder_, named(name), weightType(*weights_.at(name)), name);
  }
  Value norm(const std::string &name, Value input, Value weight, double eps) {
    return llm::RmsNormOp::create(builder_, named(name), input.getType(), input, weight, f32(eps));
  }
  Value linear(Layer &layer, const std::string &name, Value input) {
    Value weight = layer.weights.at(name);
    auto bias = layer.weights.find(name + ".bias");
    int64_t outputs = cast<llm::WeightType>(weight.getType()).getShape()[0];
    return llm::LinearOp::create(builder_, named(layerPrefix_ + name), rows(outputs), input, weight,
                                 bias == layer.weights.end() ? Value() : bias->second);
  }

  const ModelSpec &spec_;
  const int64_t positions_;
  const StorageTypeOf &storageTypeOf_;
  OpBuilder builder_;
  std::map<std::string, const WeightSpec *> weights_;
  std::vector<Kind> kinds_;
  std::vector<size_t> kindOfLayer_;
  std::string layerPrefix_;
};

std::string layerName(size_t layer) { return "layers." + std::to_string(layer) + "."; }

OwningOpRef<ModuleOp> ModuleBuilder::build() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder_.getUnknownLoc());
  builder_.setInsertionPointToEnd(module->getBody());
  (*module)->setAttr("llmc.hidden", builder_.getI64IntegerAttr(spec_.hidden));
  (*module)->setAttr("llmc.vocabulary", builder_.getI64IntegerAttr(spec_.vocabulary));
  (*module)->setAttr("llmc.layers", builder_.getI64IntegerAttr(static_cast<int64_t>(spec_.layers.size())));
  (*module)->setAttr("llmc.context", builder_.getI64IntegerAttr(positions_));
  declareSymbols(*module);
  kindOfLayer_.resize(spec_.layers.size());
  for (const LayerKind &kind : layerKinds(spec_)) {
    for (int64_t layer : kind.at)
      kindOfLayer_[static_cast<size_t>(layer)] = kinds_.size();
    kinds_.push_back({kind.name, {}});
    buildLayer(*module, kinds_.back(), static_cast<size_t>(kind.at.front()));
  }
  buildStep(*module);
  return module;
}

void ModuleBuilder::declareSymbols(ModuleOp) {
  for (const WeightSpec &weight : spec_.weights) {
    SmallVector<Attribute> sources;
    for (const WeightSource &source : weight.sources) {
      sources.push_back(weightSourceAttr(builder_, source, storageTypeOf_));
    }
    llm::WeightOp::create(builder_, named(weight.name), weight.name, weightType(weight), builder_.getArrayAttr(sources),
                          weight.add != 0 ? builder_.getF64FloatAttr(weight.add) : FloatAttr());
  }
  for (size_t layer = 0; layer < spec_.layers.size(); ++layer)
    llm::StateOp::create(builder_, named(layerName(layer) + "kv"), layerName(layer) + "kv",
                         kvType(spec_.layers[layer].attention));
}

void ModuleBuilder::buildLayer(ModuleOp module, Kind &kind, size_t exampleLayer) {
  const LayerSpec &spec = spec_.layers[exampleLayer];
  Layer layer;
  std::string prefix = layerName(exampleLayer);
  SmallVector<Type> inputs = {rows(spec_.hidden), llm::BatchType::get(builder_.getContext()), kvType(spec.attention)};
  bool hasRope = spec.attention.rope >= 0;
  if (hasRope)
    inputs.push_back(rows(2 * static_cast<int64_t>(spec_.ropes[spec.attention.rope].frequencies.size())));
  for (const WeightSpec &weight : spec_.weights)
    if (llvm::StringRef(weight.name).starts_with(prefix)) {
      kind.weightNames.push_back(weight.name.substr(prefix.size()));
      inputs.push_back(weightType(weight));
    }
  layerPrefix_ = "layers.*(" + kind.name + ").";
  auto function = func::FuncOp::create(builder_, named(kind.name), kind.name,
                                       builder_.getFunctionType(inputs, {rows(spec_.hidden)}));
  function.setPrivate();
  Block *body = function.addEntryBlock();
  OpBuilder::InsertionGuard guard(builder_);
  builder_.setInsertionPointToEnd(body);
  layer.batch = body->getArgument(1);
  layer.kv = body->getArgument(2);
  unsigned next = 3;
  if (hasRope)
    layer.rope = body->getArgument(next++);
  for (const std::string &name : kind.weightNames)
    layer.weights[name] = body->getArgument(next++);
  Value hidden = buildAttention(layer, spec, body->getArgument(0));
  hidden = buildMlp(layer, spec, hidden);
  func::ReturnOp::create(builder_, named(kind.name), hidden);
}

Value ModuleBuilder::residual(Layer &layer, const LayerSpec &spec, Value hidden, Value block,
                              const std::string &postNorm) {
  if (auto weight = layer.weights.find(postNorm); weight != layer.weights.end())
    block = norm(layerPrefix_ + postNorm, block, weight->second, spec_.normEps);
  if (spec.residualScale != 1.0)
    block = llm::ScaleOp::create(builder_, named(layerPrefix_ + "residual_scale"), block, f32(spec.residualScale),
                                 FloatAttr());
  return llm::AddOp::create(builder_, named(layerPrefix_ + "residual"), hidden, block);
}

Value ModuleBuilder::buildAttention(Layer &layer, const LayerSpec &layerSpec, Value hidden) {
  const AttentionSpec &spec = layerSpec.attention;
  Value input = hidden;
  if (layerSpec.preAttentionNorm)
    input = norm(layerPrefix_ + "attention_norm", hidden, layer.weights.at("attention_norm"), spec_.normEps);
  Value query = linear(layer, "attention.query", input);
  Value key = linear(layer, "attention.key", input);
  Value value = linear(layer, "attention.value", input);
  auto qkNorm = [&](const char *name, Value x) {
    return norm(layerPrefix_ + name, x, layer.weights.at(name), spec.qkNormEps);
  };
  if (spec.qkNorm == QkNorm::WholeWidth) {
    query = qkNorm("attention.query_norm", query);
    key = qkNorm("attention.key_norm", key);
  }
  auto split = [&](const char *name, Value x, int64_t heads) -> Value {
    return llm::SplitHeadsOp::create(builder_, named(layerPrefix_ + name), headRows(heads, spec.headDim), x);
  };
  query = split("attention.query", query, spec.heads);
  key = split("attention.key", key, spec.kvHeads);
  value = split("attention.value", value, spec.kvHeads);
  if (spec.qkNorm == QkNorm::PerHead) {
    query = qkNorm("attention.query_norm", query);
    key = qkNorm("attention.key_norm", key);
  }
  if (layer.rope) {
    query =
        llm::RopeOp::create(builder_, named(layerPrefix_ + "attention.query.rope"), query.getType(), query, layer.rope);
    key = llm::RopeOp::create(builder_, named(layerPrefix_ + "attention.key.rope"), key.getType(), key, layer.rope);
  }
  Location location = named(layerPrefix_ + "attention");
  Value grown = llm::KvAppendOp::create(builder_, location, layer.kv.getType(), layer.kv, key, value, layer.batch);
  Value attended =
      llm::AttentionOp::create(builder_, location, query.getType(), query, grown, layer.batch, /*sinks=*/Value(),
                               /*selected=*/Value(), f32(spec.scale), f32(spec.softcap),
                               builder_.getI64IntegerAttr(spec.window), /*chunk=*/IntegerAttr(), /*alibi=*/nullptr);
  Value merged = llm::MergeHeadsOp::create(builder_, location, rows(spec.heads * spec.headDim), attended);
  Value output = linear(layer, "attention.output", merged);
  return residual(layer, layerSpec, hidden, output, "attention_post_norm");
}

Value ModuleBuilder::buildMlp(Layer &layer, const LayerSpec &layerSpec, Value hidden) {
  Value input = hidden;
  if (layerSpec.preMlpNorm)
    input = norm(layerPrefix_ + "mlp_norm", hidden, layer.weights.at("mlp_norm"), spec_.normEps);
  Value gate = linear(layer, "mlp.gate", input);
  Value up = linear(layer, "mlp.up", input);
  auto activation = llm::symbolizeActivation(layerSpec.mlp.activation);
  assert(activation && "ModelSpec holds only activations that the dialect knows");
  Value middle = llm::GatedActivationOp::create(builder_, named(layerPrefix_ + "mlp.activation"), gate.getType(),
                                                llm::ActivationAttr::get(builder_.getContext(), *activation), gate, up);
  return residual(layer, layerSpec, hidden, linear(layer, "mlp.down", middle), "mlp_post_norm");
}

void ModuleBuilder::buildStep(ModuleOp module) {
  Type batchType = llm::BatchType::get(builder_.getContext());
  auto function = func::FuncOp::create(builder_, named("step"), "step",
                                       builder_.getFunctionType({batchType}, {rows(spec_.vocabulary)}));
  Block *body = function.addEntryBlock();
  OpBuilder::InsertionGuard guard(builder_);
  builder_.setInsertionPointToEnd(body);
  Value batch = body->getArgument(0);
  auto record = [&](Value value, size_t index) {
    llm::RecordOp::create(builder_, named("record"), value, batch,
                          builder_.getI64IntegerAttr(static_cast<int64_t>(index)));
  };
  Value embedding = use("embedding");
  double scale = spec_.embeddingScale;
  Value hidden =
      llm::EmbeddingOp::create(builder_, named("embedding"), rows(spec_.hidden), batch, embedding, f32(scale));
  record(hidden, 0);
  SmallVector<Value> ropes;
  for (const RopeSpec &rope : spec_.ropes) {
    bool isLong = !rope.longFrequencies.empty() && positions_ > rope.longAfter;
    const std::vector<float> &frequencies = isLong ? rope.longFrequencies : rope.frequencies;
    ropes.push_back(llm::RopeTableOp::create(builder_, named("rope"),
                                             rows(2 * static_cast<int64_t>(frequencies.size())), batch,
                                             builder_.getDenseF32ArrayAttr(frequencies), f32(rope.magnitude)));
  }
  for (size_t i = 0; i < spec_.layers.size(); ++i) {
    const LayerSpec &layer = spec_.layers[i];
    SmallVector<Value> operands = {
        hidden, batch,
        llm::UseStateOp::create(builder_, named(layerName(i) + "kv"), kvType(layer.attention), layerName(i) + "kv")};
    if (layer.attention.rope >= 0)
      operands.push_back(ropes[layer.attention.rope]);
    const Kind &kind = kinds_[kindOfLayer_[i]];
    for (const std::string &name : kind.weightNames)
      operands.push_back(use(layerName(i) + name));
    hidden = func::CallOp::create(builder_, named("layers." + std::to_string(i)), kind.name,
                                  TypeRange{rows(spec_.hidden)}, operands)
                 .getResult(0);
    record(hidden, i + 1);
  }
  Value finalNorm = use("final_norm");
  record(norm("final_norm", hidden, finalNorm, spec_.normEps), spec_.layers.size() + 1);
  Value wanted = llm::SelectRowsOp::create(builder_, named("head"), hidden.getType(), hidden, batch);
  Value normed = norm("final_norm", wanted, finalNorm, spec_.normEps);
  Value head = spec_.tiedHead ? embedding : use("head");
  Value logits = llm::LinearOp::create(builder_, named("head"), rows(spec_.vocabulary), normed, head, Value());
  if (spec_.logitScale != 1.0)
    logits = llm::ScaleOp::create(builder_, named("head"), logits, f32(spec_.logitScale), FloatAttr());
  if (spec_.logitSoftcap > 0)
    logits = llm::SoftcapOp::create(builder_, named("head"), logits, f32(spec_.logitSoftcap));
  func::ReturnOp::create(builder_, named("step"), logits);
}

} // namespace

OwningOpRef<ModuleOp> buildModule(MLIRContext &context, const ModelSpec &spec, int64_t positions,
                                  const StorageTypeOf &storageTypeOf) {
  return ModuleBuilder(context, spec, positions, storageTypeOf).build();
}

} // namespace llmc
