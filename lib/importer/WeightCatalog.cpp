#include "lib/importer/WeightCatalog.h"
#include "lib/importer/files/TensorType.h"
#include <algorithm>
#include <cmath>

namespace llmc {
namespace {

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  if (size_t at = text.find(from); at != std::string::npos)
    text.replace(at, from.size(), to);
  return text;
}

// "mlp.up" of "mlp.up.bias", or empty.
std::string withoutBias(const std::string &name) {
  const std::string end = ".bias";
  bool isBias = name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
  return isBias ? name.substr(0, name.size() - end.size()) : "";
}

StatusOr<int64_t> wholeNumber(const std::string &expression, const std::string &tensor, const ScalarLookup &lookup) {
  StatusOr<Scalar> value = evaluateScalar(expression, lookup);
  if (!value.ok())
    return value.status().inside("'" + tensor + "'");
  if (value->kind != Scalar::Kind::Number || value->number != std::floor(value->number) ||
      std::fabs(value->number) > 9e15)
    return Status::error(tensor + ": " + expression + " is " + value->print() + ", expected a whole number");
  return static_cast<int64_t>(value->number);
}

// "constant [1,0] 8"
StatusOr<std::string> constantOf(const WeightRule::Source &rule, const ScalarLookup &lookup) {
  LLMC_ASSIGN_OR_RETURN(Scalar value, evaluateScalar(rule.constant, lookup));
  Json list = value.kind == Scalar::Kind::List ? value.list : Json::array({value.number});
  if (value.kind == Scalar::Kind::Word || list.empty() ||
      !std::all_of(list.begin(), list.end(), [](const Json &each) { return each.is_number(); }))
    return Status::error("constant " + rule.constant + " is " + value.print() + ", expected numbers");
  int64_t times = 1;
  if (!rule.times.empty()) {
    LLMC_ASSIGN_OR_RETURN(times, wholeNumber(rule.times, "constant " + rule.constant, lookup));
  }
  return std::string(constantPrefix) + list.dump() + " " + std::to_string(times);
}

} // namespace

WeightCatalog::WeightCatalog(ValueReader &values, ModelSpec &spec) : values_(values), spec_(spec) {
  if (auto it = values.rules().nested.find(values.nested()); it != values.rules().nested.end())
    prefixes_ = it->second;
}

bool WeightCatalog::knows(const std::string &name) const { return ruleOf(name).ok(); }

StatusOr<const WeightRule *> WeightCatalog::ruleOf(const std::string &name) const {
  const auto &rules = values_.rules().weights;
  if (auto rule = rules.find(name); rule != rules.end())
    return &rule->second;
  if (auto rule = rules.find(withoutBias(name)); rule != rules.end())
    return &rule->second;
  return Status::error("the description of family '" + spec_.family + "' has no name for weight '" + name + "'");
}

StatusOr<std::string> WeightCatalog::published(const std::string &name) {
  LLMC_ASSIGN_OR_RETURN(const WeightRule *rule, ruleOf(name));
  auto lookup = [this](const std::string &value) { return values_.scalar(value); };
  LLMC_ASSIGN_OR_RETURN(std::vector<WeightSource> sources, sourcesOf(name, *rule, -1, lookup));
  return sources.front().tensor;
}

StatusOr<std::string> WeightCatalog::declare(const std::string &name, int64_t layer, const std::vector<int64_t> &shape,
                                             double add, const ScalarLookup &lookup) {
  LLMC_ASSIGN_OR_RETURN(const WeightRule *rule, ruleOf(name));
  if (!rule->inLayer)
    layer = -1;
  std::string full = layer < 0 ? name : "layers." + std::to_string(layer) + "." + name;
  auto [known, isNew] = at_.emplace(full, spec_.weights.size());
  if (!isNew) {
    const WeightSpec &earlier = spec_.weights[known->second];
    if (earlier.shape != shape)
      return Status::error("weight '" + full + "' is used as " + printShape(earlier.shape) + " and as " +
                           printShape(shape));
    return full;
  }
  LLMC_ASSIGN_OR_RETURN(std::vector<WeightSource> sources, sourcesOf(name, *rule, layer, lookup));
  for (const WeightSource &source : sources)
    if (source.rows && sources.size() == 1 && source.rows->second - source.rows->first != shape[0])
      return Status::error("weight '" + name + "' takes rows " + std::to_string(source.rows->first) + " to " +
                           std::to_string(source.rows->second) + " of '" + source.tensor + "', but has " +
                           std::to_string(shape[0]) + " rows");
  spec_.weights.push_back({full, shape, std::move(sources), add});
  return full;
}

StatusOr<std::vector<WeightSource>> WeightCatalog::sourcesOf(const std::string &name, const WeightRule &rule,
                                                             int64_t layer, const ScalarLookup &lookup) const {
  bool ofWeight = !values_.rules().weights.count(name); // a bias beside its weight
  std::vector<WeightSource> sources;
  for (const WeightRule::Source &each : rule.sources) {
    LLMC_ASSIGN_OR_RETURN(WeightSource source, sourceOf(each, layer, lookup));
    if (ofWeight)
      source.tensor = replaced(source.tensor, ".weight", ".bias");
    sources.push_back(std::move(source));
  }
  return sources;
}

StatusOr<WeightSource> WeightCatalog::sourceOf(const WeightRule::Source &rule, int64_t layer,
                                               const ScalarLookup &lookup) const {
  WeightSource source;
  if (!rule.constant.empty()) {
    LLMC_ASSIGN_OR_RETURN(source.tensor, constantOf(rule, lookup));
    return source;
  }
  source.tensor = rule.tensor;
  if (auto prefix = values_.rules().weights.find("layer_prefix");
      layer >= 0 && rule.prefix && prefix != values_.rules().weights.end())
    source.tensor = prefix->second.sources.front().tensor + source.tensor;
  source.tensor = replaced(source.tensor, "{layer}", std::to_string(layer));
  // Other numbers in braces: {layer + 1}.
  while (true) {
    size_t open = source.tensor.find('{'), close = source.tensor.find('}', open);
    if (open == std::string::npos || close == std::string::npos || source.tensor.compare(open, 8, "{expert}") == 0)
      break;
    LLMC_ASSIGN_OR_RETURN(int64_t number,
                          wholeNumber(source.tensor.substr(open + 1, close - open - 1), source.tensor, lookup));
    source.tensor.replace(open, close - open + 1, std::to_string(number));
  }
  for (const auto &[plain, nested] : prefixes_)
    if (source.tensor.rfind(plain, 0) == 0) {
      source.tensor.replace(0, plain.size(), nested);
      break;
    }
  auto whole = [&](const std::string &expression) { return wholeNumber(expression, source.tensor, lookup); };
  if (rule.rows) {
    std::pair<int64_t, int64_t> rows;
    LLMC_ASSIGN_OR_RETURN(rows.first, whole(rule.rows->first));
    LLMC_ASSIGN_OR_RETURN(rows.second, whole(rule.rows->second));
    source.rows = rows;
  }
  if (!rule.unpermute.empty()) {
    LLMC_ASSIGN_OR_RETURN(source.unpermuteHeadRows, whole(rule.unpermute));
  }
  if (!rule.stack.empty()) {
    LLMC_ASSIGN_OR_RETURN(source.stack, whole(rule.stack));
  }
  for (const std::string &expression : rule.dims) {
    LLMC_ASSIGN_OR_RETURN(int64_t size, whole(expression));
    source.dims.push_back(size);
  }
  for (size_t i = 0; i < rule.take.size(); ++i) {
    std::pair<int64_t, int64_t> range(0, i < source.dims.size() ? source.dims[i] : 0);
    if (rule.take[i]) {
      LLMC_ASSIGN_OR_RETURN(range.first, whole(rule.take[i]->first));
      LLMC_ASSIGN_OR_RETURN(range.second, whole(rule.take[i]->second));
    }
    source.take.push_back(range);
  }
  source.order = rule.order;
  source.map = rule.map;
  source.type = rule.type;
  return source;
}

} // namespace llmc
