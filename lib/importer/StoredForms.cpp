// Packings are keyed by the words of quantization_config. Which weights they take: what the classes of published models
// make a linear layer of, less the modules that the config skips.
#include "lib/importer/StoredForms.h"
#include "lib/importer/Inspect.h"
#include "lib/importer/files/TensorType.h"
#include <algorithm>
#include <unordered_map>

namespace llmc {
namespace {

constexpr std::string_view weightEnding = ".weight";

bool endsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

std::string word(const Json &json, const char *key) {
  const Json *value = find(json, key);
  return value && value->is_string() ? value->get<std::string>() : "";
}

int64_t number(const Json &json, const char *key, int64_t fallback) {
  const Json *value = find(json, key);
  return value && value->is_number_integer() && *value > 0 ? value->get<int64_t>() : fallback;
}

std::vector<std::string> words(const Json &json, const char *key) {
  std::vector<std::string> list;
  if (const Json *value = find(json, key); value && value->is_array())
    for (const Json &each : *value)
      if (each.is_string())
        list.push_back(each.get<std::string>());
  return list;
}

// Names, without their layer, of the weights that products multiply by. A router's is a parameter of its own in most
// classes, and published plain in all.
std::set<std::string> linearWeights(const ModelSpec &spec) {
  std::set<std::string> names;
  auto collect = [&](const GraphFunction &function) {
    std::set<int> scores;
    for (const GraphNode &node : function.nodes)
      if (node.op == "router")
        scores.insert(node.operands.front());
    for (const GraphNode &node : function.nodes)
      if ((node.op == "linear" || node.op == "expert_linear" || node.op == "head_linear") &&
          !scores.count(node.results.front()))
        names.insert(function.values[static_cast<size_t>(node.operands[1])].name);
  };
  for (const GraphFunction &kind : spec.graph.kinds)
    collect(kind);
  return names;
}

std::string withoutLayer(const std::string &name) {
  size_t dot = name.rfind("layers.", 0) == 0 ? name.find('.', 7) : std::string::npos;
  return dot == std::string::npos ? name : name.substr(dot + 1);
}

std::string moduleOf(const std::string &tensor) {
  return endsWith(tensor, weightEnding) ? tensor.substr(0, tensor.size() - weightEnding.size()) : tensor;
}

// Polynomial, because a file of unknown origin wrote it; nothing when it is none.
std::optional<std::regex> expressionOf(const std::string &text) {
  constexpr size_t longest = 512;
  if (text.size() > longest || text.find('{') != std::string::npos)
    return {};
  try {
    return std::regex(text, std::regex::ECMAScript | std::regex_constants::__polynomial);
  } catch (const std::regex_error &) {
    return {};
  }
}

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

} // namespace

uint64_t StoredPiece::bytes() const {
  std::optional<TensorType> known = safetensorsType(type);
  std::vector<uint64_t> sizes(shape.begin(), shape.end());
  StatusOr<uint64_t> bytes = known ? tensorBytes(*known, sizes) : StatusOr<uint64_t>(Status::error("unknown"));
  return bytes.ok() ? *bytes : 0;
}

StoredForms::StoredForms(const ModelSpec &spec) : plainType_(plainTypeOf(spec)) {
  if (spec.quantization.empty())
    return;
  if (StatusOr<Json> parsed = parseJson(spec.quantizationDetails, "quantization_config"); parsed.ok())
    config_ = std::move(*parsed);
  format_ = spec.quantization == "compressed-tensors" ? word(config_, "format") : spec.quantization;
  if (spec.quantization == "modelopt")
    format_ = word(config_, "quant_algo");
  static const std::set<std::string> known = {"mxfp4-pack-quantized", "float-quantized", "fp8",  "gptq",
                                              "awq",                  "mxfp4",           "NVFP4"};
  if (!known.count(format_)) {
    unknown_ = "weights that the files pack as '" + format_ + "' count as " + plainType_;
    return;
  }
  group_ = number(config_, "group_size", 128);
  bits_ = number(config_, "bits", 4);
  for (const char *key : {"ignore", "modules_to_not_convert", "exclude_modules"})
    for (const std::string &each : words(config_, key)) {
      if (each.rfind("re:", 0) != 0)
        skipped_.push_back(each);
      else if (std::optional<std::regex> expression = expressionOf(each.substr(3)))
        expressions_.push_back(std::move(*expression));
    }
  const std::set<std::string> linear = linearWeights(spec);
  for (const WeightSpec &weight : spec.weights)
    if (linear.count(withoutLayer(weight.name)) && weight.shape.size() >= 2)
      for (const WeightSource &source : weight.sources)
        if (source.type.empty() && !isSkipped(moduleOf(source.tensor)) &&
            (format_ != "mxfp4" || !endsWith(source.tensor, weightEnding))) // OpenAI's packs its fused experts only
          packed_.insert(source.tensor);
}

bool StoredForms::isSkipped(const std::string &module) const {
  for (const std::regex &expression : expressions_)
    if (std::regex_search(module, expression, std::regex_constants::match_continuous))
      return true;
  return std::any_of(skipped_.begin(), skipped_.end(), [&](const std::string &pattern) {
    return pattern.find('*') != std::string::npos ? matchesPattern(pattern + "*", module)
                                                  : module.find(pattern) != std::string::npos;
  });
}

std::vector<StoredPiece> StoredForms::of(const ExpectedGroup &group) const {
  const std::vector<int64_t> &shape = group.shape;
  if (!packed_.count(group.source.tensor) || shape.size() < 2)
    return {{"", group.source.type.empty() ? plainType_ : group.source.type, shape}};
  int64_t in = shape.back(), out = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i)
    out *= shape[i];
  if (format_ == "mxfp4-pack-quantized")
    return {{".weight_packed", "U8", {out, in / 2}}, {".weight_scale", "U8", {out, in / 32}}};
  if (format_ == "mxfp4")
    return {{"_blocks", "U8", {out * in / 2}}, {"_scales", "U8", {out * in / 32}}};
  if (format_ == "NVFP4")
    return {{".weight", "U8", {out, in / 2}},
            {".weight_scale", "F8_E4M3", {out, in / 16}},
            {".weight_scale_2", "F32", {1}},
            {".input_scale", "F32", {1}}};
  if (format_ == "float-quantized")
    return {{".weight", "F8_E4M3", {out, in}}, {".weight_scale", "BF16", {out, 1}}};
  if (format_ == "gptq")
    return {{".qweight", "I32", {ceilDiv(in * bits_, 32), out}},
            {".qzeros", "I32", {ceilDiv(in, group_), ceilDiv(out * bits_, 32)}},
            {".scales", "F16", {ceilDiv(in, group_), out}},
            {".g_idx", "I32", {in}}};
  if (format_ == "awq")
    return {{".qweight", "I32", {in, ceilDiv(out, 8)}},
            {".qzeros", "I32", {ceilDiv(in, group_), ceilDiv(out, 8)}},
            {".scales", "F16", {ceilDiv(in, group_), out}}};
  std::vector<StoredPiece> pieces = {{".weight", "F8_E4M3", {out, in}}, {".weight_scale_inv", "F32", {1}}};
  if (const Json *block = find(config_, "weight_block_size"); block && block->is_array() && block->size() == 2)
    pieces[1].shape = {ceilDiv(out, std::max<int64_t>(1, (*block)[0].is_number_integer() ? (*block)[0].get<int64_t>() : 1)),
                       ceilDiv(in, std::max<int64_t>(1, (*block)[1].is_number_integer() ? (*block)[1].get<int64_t>() : 1))};
  return pieces;
}

std::string StoredForms::nameOf(const std::string &weight, const StoredPiece &piece) {
  return piece.ending.empty() ? weight : moduleOf(weight) + piece.ending;
}

static double elementsTaken(const WeightSource &source, const ExpectedGroup &group) {
  auto elements = static_cast<double>(elementsOf(group.shape)) * static_cast<double>(source.numTensors());
  if (source.rows)
    return elements / static_cast<double>(group.shape.front()) *
           static_cast<double>(source.rows->second - source.rows->first);
  if (source.take.empty())
    return elements;
  double taken = static_cast<double>(source.numTensors());
  for (auto [begin, end] : source.take)
    taken *= static_cast<double>(end - begin);
  return taken;
}

std::vector<double> storedWeightBytes(const ModelSpec &spec, const std::vector<StoredTensor> &stored) {
  const StoredForms forms(spec);
  std::unordered_map<std::string, uint64_t> byName;
  for (const StoredTensor &tensor : stored)
    byName[tensor.name] = tensor.bytes;
  struct Stored {
    ExpectedGroup group;
    double bytes = 0;
  };
  std::unordered_map<std::string, Stored> groups; // by the source's name
  for (const ExpectedGroup &group : expectedGroups(spec)) {
    Stored known{group};
    const std::vector<StoredPiece> pieces = forms.of(group);
    auto add = [&](const std::string &tensor) {
      if (auto whole = byName.find(tensor); whole != byName.end() && pieces.size() == 1) {
        known.bytes += static_cast<double>(whole->second);
        return;
      }
      for (const StoredPiece &piece : pieces) {
        auto own = byName.find(StoredForms::nameOf(tensor, piece));
        known.bytes += static_cast<double>(own == byName.end() ? piece.bytes() : own->second);
      }
    };
    if (byName.empty()) // a model may have hundreds of thousands of equal ones
      for (const StoredPiece &piece : pieces)
        known.bytes += static_cast<double>(piece.bytes()) * static_cast<double>(group.source.numTensors());
    else
      for (int64_t i = 0; i < group.source.numTensors(); ++i)
        add(group.source.tensorAt(i));
    groups.emplace(group.source.tensor, std::move(known));
  }
  std::vector<double> bytes;
  for (const WeightSpec &weight : spec.weights) {
    double sum = 0;
    for (const WeightSource &source : weight.sources) {
      auto known = groups.find(source.tensor);
      if (known == groups.end()) { // numbers that the description states
        if (source.isConstant() && weight.sources.size() == 1)
          sum += 4 * static_cast<double>(elementsOf(weight.shape));
        continue;
      }
      const ExpectedGroup &group = known->second.group;
      double all = static_cast<double>(elementsOf(group.shape)) * static_cast<double>(group.source.numTensors());
      sum += known->second.bytes * elementsTaken(source, group) / all;
    }
    bytes.push_back(sum);
  }
  return bytes;
}

StoredTotals storedTotals(const ModelSpec &spec) {
  const StoredForms forms(spec);
  StoredTotals totals;
  for (const ExpectedGroup &group : expectedGroups(spec))
    for (const StoredPiece &piece : forms.of(group)) {
      totals.tensors += static_cast<uint64_t>(group.source.numTensors());
      totals.bytes += static_cast<uint64_t>(group.source.numTensors()) * piece.bytes();
    }
  for (const ModelPart &part : spec.parts)
    for (const PartTensor &tensor : part.tensors) {
      ++totals.tensors;
      totals.bytes += StoredPiece{"", tensor.type.empty() ? plainTypeOf(spec) : tensor.type, tensor.shape}.bytes();
    }
  return totals;
}

} // namespace llmc
