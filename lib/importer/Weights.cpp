// The weights of a model in the order of the forward pass, with the published tensors they come from.
#include "lib/importer/ResolveParts.h"

namespace llmc {
namespace {

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  if (size_t at = text.find(from); at != std::string::npos)
    text.replace(at, from.size(), to);
  return text;
}

class WeightList {
public:
  WeightList(ValueReader &values, ModelSpec &spec) : values_(values), spec_(spec) {
    if (auto it = values.rules().nested.find(values.nested()); it != values.rules().nested.end())
      prefixes_ = it->second;
  }

  StatusOr<std::string> published(const std::string &name) {
    LLMC_ASSIGN_OR_RETURN(WeightSource source, sourceOf(name, -1));
    return source.tensor;
  }

  // `layer` is negative for weights outside of the layers.
  Status add(const std::string &name, int64_t layer, std::vector<int64_t> shape, double plus = 0.0) {
    LLMC_ASSIGN_OR_RETURN(WeightSource source, sourceOf(name, layer));
    return push(name, layer, std::move(shape), std::move(source), plus);
  }

  Status addLinear(const std::string &name, int64_t layer, int64_t out, int64_t in, bool bias) {
    LLMC_RETURN_IF_ERROR(add(name, layer, {out, in}));
    if (!bias)
      return {};
    LLMC_ASSIGN_OR_RETURN(WeightSource source, sourceOf(name, layer));
    source.tensor = replaced(source.tensor, ".weight", ".bias");
    return push(name + ".bias", layer, {out}, std::move(source), 0.0);
  }

private:
  Status push(const std::string &name, int64_t layer, std::vector<int64_t> shape, WeightSource source, double plus) {
    if (source.rows && source.rows->second - source.rows->first != shape[0])
      return Status::error("weight '" + name + "' takes rows " + std::to_string(source.rows->first) + " to " +
                           std::to_string(source.rows->second) + " of '" + source.tensor + "', but has " +
                           std::to_string(shape[0]) + " rows");
    std::string full = layer < 0 ? name : "layers." + std::to_string(layer) + "." + name;
    spec_.weights.push_back({full, std::move(shape), {std::move(source)}, plus});
    return {};
  }

  StatusOr<WeightSource> sourceOf(const std::string &name, int64_t layer) {
    const auto &rules = values_.rules().weights;
    auto rule = rules.find(name), prefix = rules.find("layer_prefix");
    if (rule == rules.end() || prefix == rules.end())
      return Status::error("the description of family '" + spec_.family + "' has no name for weight '" + name + "'");
    WeightSource source;
    source.tensor = rule->second.tensor;
    if (layer >= 0)
      source.tensor = replaced(prefix->second.tensor, "{layer}", std::to_string(layer)) + source.tensor;
    for (const auto &[plain, nested] : prefixes_)
      if (source.tensor.rfind(plain, 0) == 0) {
        source.tensor.replace(0, plain.size(), nested);
        break;
      }
    if (rule->second.rows) {
      std::pair<int64_t, int64_t> rows;
      LLMC_ASSIGN_OR_RETURN(rows.first, values_.evaluateInteger(rule->second.rows->first, source.tensor));
      LLMC_ASSIGN_OR_RETURN(rows.second, values_.evaluateInteger(rule->second.rows->second, source.tensor));
      source.rows = rows;
    }
    if (!rule->second.unpermute.empty()) {
      LLMC_ASSIGN_OR_RETURN(source.unpermuteHeadRows, values_.evaluateInteger(rule->second.unpermute, source.tensor));
    }
    return source;
  }

  ValueReader &values_;
  ModelSpec &spec_;
  std::map<std::string, std::string> prefixes_;
};

Status addAttention(WeightList &list, const LayerSpec &layer, int64_t i, int64_t hidden, double plus) {
  const AttentionSpec &a = layer.attention;
  int64_t queries = a.heads * a.headDim, keys = a.kvHeads * a.headDim;
  if (layer.preAttentionNorm)
    LLMC_RETURN_IF_ERROR(list.add("attention_norm", i, {hidden}, plus));
  LLMC_RETURN_IF_ERROR(list.addLinear("attention.query", i, queries, hidden, a.qkvBias));
  LLMC_RETURN_IF_ERROR(list.addLinear("attention.key", i, keys, hidden, a.qkvBias));
  LLMC_RETURN_IF_ERROR(list.addLinear("attention.value", i, keys, hidden, a.qkvBias));
  if (a.qkNorm != QkNorm::None) {
    bool whole = a.qkNorm == QkNorm::WholeWidth;
    LLMC_RETURN_IF_ERROR(list.add("attention.query_norm", i, {whole ? queries : a.headDim}, plus));
    LLMC_RETURN_IF_ERROR(list.add("attention.key_norm", i, {whole ? keys : a.headDim}, plus));
  }
  LLMC_RETURN_IF_ERROR(list.addLinear("attention.output", i, hidden, queries, a.outputBias));
  if (layer.postAttentionNorm)
    LLMC_RETURN_IF_ERROR(list.add("attention_post_norm", i, {hidden}, plus));
  return {};
}

Status addMlp(WeightList &list, const LayerSpec &layer, int64_t i, int64_t hidden, double plus) {
  const GatedMlpSpec &mlp = layer.mlp;
  if (layer.preMlpNorm)
    LLMC_RETURN_IF_ERROR(list.add("mlp_norm", i, {hidden}, plus));
  LLMC_RETURN_IF_ERROR(list.addLinear("mlp.gate", i, mlp.intermediate, hidden, mlp.bias));
  LLMC_RETURN_IF_ERROR(list.addLinear("mlp.up", i, mlp.intermediate, hidden, mlp.bias));
  LLMC_RETURN_IF_ERROR(list.addLinear("mlp.down", i, hidden, mlp.intermediate, mlp.bias));
  if (layer.postMlpNorm)
    LLMC_RETURN_IF_ERROR(list.add("mlp_post_norm", i, {hidden}, plus));
  return {};
}

} // namespace

Status resolveWeights(const ModelDescription &description, ValueReader &values, ModelSpec &spec) {
  for (const auto &[prefix, others] : values.rules().otherPrefixes)
    for (const std::string &other : others)
      spec.otherPrefixes.emplace_back(prefix, other);
  for (const auto &ignored : values.rules().ignoredTensors)
    spec.ignorableTensors.push_back(ignored.first);
  LLMC_ASSIGN_OR_RETURN(double plus, values.number("norm_add"));
  WeightList list(values, spec);
  LLMC_RETURN_IF_ERROR(list.add("embedding", -1, {spec.vocabulary, spec.hidden}));
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    auto index = static_cast<int64_t>(i);
    LLMC_RETURN_IF_ERROR(addAttention(list, spec.layers[i], index, spec.hidden, plus));
    LLMC_RETURN_IF_ERROR(addMlp(list, spec.layers[i], index, spec.hidden, plus));
  }
  LLMC_RETURN_IF_ERROR(list.add("final_norm", -1, {spec.hidden}, plus));
  if (!spec.tiedHead)
    return list.add("head", -1, {spec.vocabulary, spec.hidden});
  // A head that is stored all the same is compared with the embedding, not refused.
  LLMC_ASSIGN_OR_RETURN(spec.tiedHeadTensor, list.published("head"));
  return {};
}

} // namespace llmc
