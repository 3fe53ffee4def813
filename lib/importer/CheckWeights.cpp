// The weights of a model against the headers of its files.
#include "lib/importer/CheckWeights.h"
#include "lib/importer/ModelParts.h"
#include "lib/importer/files/TensorType.h"
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace llmc {
namespace {

using Stored = std::map<std::string, const StoredTensor *>;

std::string andMore(size_t count) { return count > 1 ? " (and " + std::to_string(count - 1) + " more)" : ""; }

// The name as it is stored: itself, or with the beginning that other writers give it.
std::string spelling(const ModelSpec &spec, const Stored &stored, const std::string &name) {
  if (stored.count(name))
    return name;
  for (const auto &[prefix, other] : spec.otherPrefixes)
    if (name.rfind(prefix, 0) == 0)
      if (std::string candidate = other + name.substr(prefix.size()); stored.count(candidate))
        return candidate;
  return name;
}

// "layer 17 of 24 has no 'self_attn.q_proj.weight'"
std::string missing(const ModelSpec &spec, const WeightSpec &weight, const std::string &tensor) {
  std::string number = weight.name.rfind("layers.", 0) == 0 ? weight.name.substr(7, weight.name.find('.', 7) - 7) : "";
  if (number.empty())
    return "no '" + tensor + "' is stored";
  size_t at = tensor.find("." + number + ".");
  std::string inLayer = at == std::string::npos ? tensor : tensor.substr(at + number.size() + 2);
  return "layer " + number + " of " + std::to_string(spec.layers) + " has no '" + inLayer + "'";
}

// Of a stack the first tensor tells for all.
void settleNames(ModelSpec &spec, const Stored &stored) {
  for (WeightSpec &weight : spec.weights)
    for (WeightSource &source : weight.sources) {
      if (source.isConstant())
        continue;
      std::string first = source.tensorAt(0), settled = spelling(spec, stored, first);
      if (settled == first)
        continue;
      size_t common = 0; // the spellings differ in their beginnings
      while (common < std::min(first.size(), settled.size()) &&
             first[first.size() - 1 - common] == settled[settled.size() - 1 - common])
        ++common;
      source.tensor = settled.substr(0, settled.size() - common) + source.tensor.substr(first.size() - common);
    }
  if (!spec.tiedHeadTensor.empty())
    spec.tiedHeadTensor = spelling(spec, stored, spec.tiedHeadTensor);
}

// The first tensor of a weight outside of the layers, or empty.
std::string tensorOf(const ModelSpec &spec, const char *name) {
  for (const WeightSpec &weight : spec.weights)
    if (weight.name == name && !weight.sources.empty())
      return weight.sources.front().tensor;
  return "";
}

// Makes the embedding the head, in the graph too.
void tieHead(ModelSpec &spec) {
  GraphFunction &step = spec.graph.step;
  auto weight = [&](const char *name) {
    auto found = std::find_if(step.values.begin(), step.values.end(), [&](const GraphValue &value) {
      return value.kind == GraphValue::Kind::Weight && value.name == name;
    });
    return static_cast<int>(found - step.values.begin());
  };
  for (GraphNode &node : step.nodes)
    std::replace(node.operands.begin(), node.operands.end(), weight("head"), weight("embedding"));
  spec.tiedHead = true;
  spec.tiedHeadTensor = tensorOf(spec, "head");
  std::erase_if(spec.weights, [](const WeightSpec &each) { return each.name == "head"; });
}

Status settleHead(ModelSpec &spec, const Stored &stored, const TensorsEqual &equal) {
  const std::string embedding = tensorOf(spec, "embedding");
  if (spec.tiedHead) {
    if (!stored.count(spec.tiedHeadTensor))
      return {};
    std::string both = "the head is tied to '" + embedding + "', and '" + spec.tiedHeadTensor + "' is stored too";
    if (!equal) {
      spec.notes.push_back(both + "; taken to be equal");
      return {};
    }
    LLMC_ASSIGN_OR_RETURN(bool same, equal(embedding, spec.tiedHeadTensor));
    if (!same)
      return Status::error(both + " and differs; tie_word_embeddings has to be false for it to count");
    spec.notes.push_back(both + " and equal");
    return {};
  }
  const std::string tensor = tensorOf(spec, "head");
  if (tensor.empty() || embedding.empty() || stored.count(tensor))
    return {};
  if (spec.tiedHeadStated)
    return Status::error("tie_word_embeddings is false, but no '" + tensor +
                         "' is stored; set it to true if the embedding is the head");
  spec.notes.push_back("no '" + tensor + "' is stored and the config does not say whether the head is tied: it is");
  tieHead(spec);
  return {};
}

Status checkPresent(const ModelSpec &spec, const Stored &stored) {
  std::vector<std::string> lines;
  for (const WeightSpec &weight : spec.weights)
    for (const WeightSource &source : weight.sources)
      for (int64_t i = 0; i < source.numTensors(); ++i)
        if (std::string tensor = source.tensorAt(i); !source.isConstant() && !stored.count(tensor))
          lines.push_back(missing(spec, weight, tensor));
  if (lines.empty())
    return {};
  if (!spec.quantization.empty())
    return Status::error(lines.front() + andMore(lines.size()) + "; the files pack weights as '" + spec.quantization +
                         "', where plain tensors are expected");
  return Status::error(lines.front() + andMore(lines.size()));
}

bool isPacked(const std::string &type) {
  static const std::set<std::string> packed = {"I64",     "I32",     "I16",     "I8",      "U64",
                                               "U32",     "U16",     "U8",      "BOOL",    "F4",
                                               "F8_E4M3", "F8_E5M2", "F8_E8M0", "F6_E2M3", "F6_E3M2"};
  return packed.count(type) != 0;
}

bool isIndex(const std::string &type) { return type == "I64" || type == "I32"; }

Status checkShapes(const ModelSpec &spec, const Stored &stored) {
  const std::string embedding = tensorOf(spec, "embedding");
  for (const ExpectedTensor &expected : expectedTensors(spec)) {
    const StoredTensor &tensor = *stored.at(expected.name);
    if (tensor.shape == expected.shape || (expected.isView && elementsOf(tensor.shape) == elementsOf(expected.shape))) {
      // A table of indices is what it says it is, in integers of either width.
      if (isPacked(tensor.type) && !(isIndex(tensor.type) && isIndex(expected.type)))
        return Status::error("'" + tensor.name + "' is stored as " + tensor.type +
                             ", and no scale beside it says how to read it");
      continue;
    }
    if (expected.name == embedding && tensor.shape.size() == 2 && tensor.shape[1] == expected.shape[1])
      return Status::error("vocab_size is " + std::to_string(spec.vocabulary) + ", '" + tensor.name + "' has " +
                           std::to_string(tensor.shape[0]) + " rows");
    return Status::error("'" + tensor.name + "' has shape " + printShape(tensor.shape) + ", but the config makes it " +
                         printShape(expected.shape) + (expected.isView ? " or as many elements in another shape" : ""));
  }
  return {};
}

Status checkUnused(const ModelSpec &spec, const std::vector<StoredTensor> &stored) {
  std::set<std::string> used = {spec.tiedHeadTensor};
  for (const WeightSpec &weight : spec.weights)
    for (const WeightSource &source : weight.sources)
      for (int64_t i = 0; i < source.numTensors(); ++i)
        used.insert(source.tensorAt(i));
  std::vector<std::string> left;
  for (const StoredTensor &tensor : stored) {
    bool ignorable = std::any_of(spec.ignorableTensors.begin(), spec.ignorableTensors.end(),
                                 [&](const std::string &pattern) { return matchesPattern(pattern, tensor.name); });
    if (!ignorable && !used.count(tensor.name) && !belongsToPart(spec, tensor.name))
      left.push_back(tensor.name);
  }
  if (left.empty())
    return {};
  return Status::error("tensor '" + left.front() + "'" + andMore(left.size()) + " is stored, but nothing in family '" +
                       spec.family + "' reads it");
}

// The tensor of a source that says no dims, as far as the source needs it to reach.
std::vector<int64_t> storedShape(const WeightSpec &weight, const WeightSource &source) {
  std::vector<int64_t> part = weight.shape;
  bool isStackOfMatrices = part.size() == 3;
  if (source.stack > 0)
    part.erase(part.begin());
  if (part.empty()) // a stack of scalars
    part.push_back(1);
  if (weight.sources.size() > 1) // without rows or dims they share what they are joined along
    part[isStackOfMatrices && source.stack == 0 ? 1 : 0] /= static_cast<int64_t>(weight.sources.size());
  std::vector<int64_t> stored = part;
  for (size_t i = 0; i < source.order.size() && source.order.size() == part.size(); ++i)
    if (source.order[i] >= 0 && static_cast<size_t>(source.order[i]) < stored.size())
      stored[static_cast<size_t>(source.order[i])] = part[i];
  for (size_t i = 0; i < source.take.size() && source.take.size() == stored.size(); ++i)
    stored[i] = source.take[i].second;
  if (source.rows)
    stored[0] = source.rows->second;
  return stored;
}

std::vector<int64_t> tensorShape(const WeightSpec &weight, const WeightSource &source) {
  return source.dims.empty() ? storedShape(weight, source) : source.dims;
}

// Ranges of one tensor end where the farthest of them does.
void includePart(std::vector<int64_t> &shape, const std::vector<int64_t> &part) {
  for (size_t i = 0; i < shape.size() && part.size() == shape.size(); ++i)
    shape[i] = std::max(shape[i], part[i]);
}

} // namespace

bool matchesPattern(std::string_view pattern, std::string_view name) {
  size_t star = pattern.find('*');
  if (star == std::string_view::npos)
    return pattern == name;
  if (name.substr(0, star) != pattern.substr(0, star))
    return false;
  std::string_view rest = pattern.substr(star + 1);
  for (size_t begin = star; begin <= name.size(); ++begin)
    if (matchesPattern(rest, name.substr(begin)))
      return true;
  return false;
}

std::vector<ExpectedGroup> expectedGroups(const ModelSpec &spec) {
  std::vector<ExpectedGroup> groups;
  std::unordered_map<std::string, size_t> at;
  for (const WeightSpec &weight : spec.weights)
    for (const WeightSource &source : weight.sources) {
      if (source.isConstant())
        continue;
      const std::vector<int64_t> shape = tensorShape(weight, source);
      auto [it, isNew] = at.emplace(source.tensor, groups.size());
      if (isNew) {
        groups.push_back({source, shape});
        continue;
      }
      // Another weight takes another part of the same tensors.
      ExpectedGroup &known = groups[it->second];
      includePart(known.shape, shape);
      known.source.stack = std::max(known.source.stack, source.stack);
    }
  return groups;
}

std::vector<ExpectedTensor> expectedTensors(const ModelSpec &spec) {
  std::vector<ExpectedTensor> tensors;
  for (const ExpectedGroup &group : expectedGroups(spec))
    for (int64_t i = 0; i < group.source.numTensors(); ++i)
      tensors.push_back({group.source.tensorAt(i), group.shape, !group.source.dims.empty(), group.source.type});
  return tensors;
}

Status checkWeights(ModelSpec &spec, const std::vector<StoredTensor> &stored, const TensorsEqual &equal) {
  Stored byName;
  for (const StoredTensor &tensor : stored)
    byName[tensor.name] = &tensor;
  settleNames(spec, byName);
  LLMC_RETURN_IF_ERROR(settleHead(spec, byName, equal));
  LLMC_RETURN_IF_ERROR(checkPresent(spec, byName));
  LLMC_RETURN_IF_ERROR(checkShapes(spec, byName));
  return checkUnused(spec, stored);
}

} // namespace llmc
