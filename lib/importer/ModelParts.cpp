// A part's values are read as the model's are, from the object of the config that its key names.
#include "lib/importer/ModelParts.h"
#include "lib/importer/CheckWeights.h"
#include "lib/importer/files/TensorType.h"
#include <cmath>

namespace llmc {
namespace {

constexpr size_t maxPartTensors = 1 << 20;
constexpr int64_t maxPartSize = int64_t(1) << 40;

bool saysNothing(const Json &value) {
  return value.is_null() || value == Json(false) || (value.is_number() && value == 0) ||
         ((value.is_string() || value.is_structured()) && value.empty());
}

// The description's values and the part's own, whose keys lie in its object.
FormatRules rulesOf(const FormatRules &model, const PartRule &part) {
  FormatRules rules = model;
  for (auto [name, rule] : part.values) {
    if (!part.key.empty())
      for (std::string &key : rule.keys)
        key = part.key + "/" + key;
    rules.values[name] = std::move(rule);
  }
  return rules;
}

class PartReader {
public:
  PartReader(ValueReader &values, ModelPart &part) : values_(values), part_(part) {}

  Status add(const std::string &name, const PartRule::Tensor &tensor) {
    PartTensor made;
    made.type = tensor.type;
    for (const std::string &expression : tensor.shape) {
      LLMC_ASSIGN_OR_RETURN(double size, values_.evaluate(expression));
      if (size != std::floor(size) || size < 0 || size > static_cast<double>(maxPartSize))
        return Status::error("'" + name + "' has a dimension " + expression + " of " + printNumber(size));
      if (size == 0) // a size of 0 says that this model has no such tensor
        return {};
      made.shape.push_back(static_cast<int64_t>(size));
    }
    return addNumbered(name, made);
  }

private:
  // "blocks.{depth}.norm": one for each number below depth; {a..b}: from a on; a list stands for its entries.
  Status addNumbered(const std::string &name, PartTensor &tensor) {
    size_t open = name.find('{'), close = name.find('}', open);
    if (open == std::string::npos || close == std::string::npos) {
      if (part_.tensors.size() >= maxPartTensors)
        return Status::error("a part has more than " + std::to_string(maxPartTensors) + " tensors");
      tensor.name = name;
      part_.tensors.push_back(tensor);
      return {};
    }
    std::string range = name.substr(open + 1, close - open - 1);
    int64_t first = 0;
    if (size_t dots = range.find(".."); dots != std::string::npos) {
      LLMC_ASSIGN_OR_RETURN(double begin, values_.evaluate(range.substr(0, dots)));
      first = static_cast<int64_t>(begin);
      range = range.substr(dots + 2);
    }
    LLMC_ASSIGN_OR_RETURN(Scalar numbers, values_.evaluateAny(range));
    auto with = [&](int64_t number) {
      return addNumbered(name.substr(0, open) + std::to_string(number) + name.substr(close + 1), tensor);
    };
    if (numbers.kind == Scalar::Kind::List) {
      for (const Json &entry : numbers.list) {
        LLMC_ASSIGN_OR_RETURN(int64_t number, asInteger(entry, "'" + name + "'", 0, maxPartSize));
        LLMC_RETURN_IF_ERROR(with(number));
      }
      return {};
    }
    for (int64_t i = first; static_cast<double>(i) < numbers.number; ++i)
      LLMC_RETURN_IF_ERROR(with(i));
    return {};
  }

  ValueReader &values_;
  ModelPart &part_;
};

Status addPart(const std::string &name, const PartRule &rule, ValueReader &values, ModelSpec &spec) {
  if (!rule.key.empty())
    if (Stated stated = values.stated(rule.key); !stated.json || saysNothing(*stated.json))
      return {};
  const FormatRules rules = rulesOf(values.rules(), rule);
  std::vector<Fact> facts;
  ValueReader own(rules, values.source(), facts);
  if (!rule.when.empty()) {
    LLMC_ASSIGN_OR_RETURN(double present, own.evaluate(rule.when));
    if (present == 0)
      return {};
  }
  ModelPart part;
  part.name = name;
  part.prefix = rule.prefix;
  PartReader reader(own, part);
  for (const auto &[tensor, shape] : rule.tensors)
    LLMC_RETURN_IF_ERROR(reader.add(rule.prefix + tensor, shape));
  for (const Fact &fact : facts)
    if (rule.values.count(fact.name))
      spec.facts.push_back({name + "." + fact.name, fact.value, fact.origin});
  for (const auto &[op, what] : rule.operators)
    spec.missing.push_back({name + ": " + op, what});
  spec.parts.push_back(std::move(part));
  return {};
}

} // namespace

Status resolveParts(ValueReader &values, ModelSpec &spec) {
  for (const auto &[name, rule] : values.rules().parts)
    if (Status status = addPart(name, rule, values, spec); !status.ok())
      return status.inside("part '" + name + "'");
  return {};
}

bool belongsToPart(const ModelSpec &spec, std::string_view tensor) {
  for (const ModelPart &part : spec.parts) {
    if (!part.prefix.empty() && tensor.rfind(part.prefix, 0) == 0)
      return true;
    for (const PartTensor &known : part.tensors)
      if (known.name == tensor)
        return true;
  }
  return false;
}

} // namespace llmc
