#include "lib/importer/RecordVariables.h"
#include <algorithm>
#include <charconv>

namespace llmc {
namespace {

struct VariableName {
  int64_t layer = -1; // -1: the step
  std::string variable;
  int64_t occurrence = 1;
};

bool parseNumber(std::string_view text, int64_t &number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

StatusOr<VariableName> parseName(const std::string &name, int64_t layers) {
  VariableName parsed;
  std::string_view rest = name;
  if (size_t at = rest.rfind('@'); at != std::string_view::npos) {
    if (!parseNumber(rest.substr(at + 1), parsed.occurrence) || parsed.occurrence < 1)
      return Status::error("'" + name + "' has no number from 1 on behind its @");
    rest = rest.substr(0, at);
  }
  size_t dot = rest.find('.');
  if (dot != std::string_view::npos && parseNumber(rest.substr(0, dot), parsed.layer)) {
    rest = rest.substr(dot + 1);
    if (parsed.layer < 0 || parsed.layer >= layers)
      return Status::error("'" + name + "' is of layer " + std::to_string(parsed.layer) + ", but there are " +
                           std::to_string(layers));
  }
  parsed.variable = rest;
  return parsed;
}

// "attention.q, attention.k, ...": each once, in the order of the wiring.
std::string listOf(const GraphFunction &function) {
  std::vector<std::string> known;
  for (const auto &[name, value] : function.variables)
    if (std::find(known.begin(), known.end(), name) == known.end())
      known.push_back(name);
  std::string list;
  for (const std::string &name : known)
    list += (list.empty() ? "" : ", ") + name;
  return list;
}

StatusOr<int> findVariable(const GraphFunction &function, const VariableName &wanted, const std::string &name) {
  int64_t found = 0;
  for (const auto &[variable, value] : function.variables)
    if (variable == wanted.variable && ++found == wanted.occurrence)
      return value;
  if (found > 0)
    return Status::error("'" + name + "' asks for value " + std::to_string(wanted.occurrence) + ", but there are " +
                         std::to_string(found) + " of that name");
  return Status::error("the wiring has no '" + name + "' (known " +
                       (wanted.layer < 0 ? "outside of layers" : "in layer " + std::to_string(wanted.layer)) + " = " +
                       listOf(function) + ")");
}

// Records hold rows without heads: those are put side by side.
void addRecord(GraphFunction &function, int value, int64_t index) {
  int batch = *std::find_if(function.inputs.begin(), function.inputs.end(), [&](int input) {
    return function.values[static_cast<size_t>(input)].kind == GraphValue::Kind::Batch;
  });
  GraphValue rows = function.values[static_cast<size_t>(value)];
  if (rows.heads != 0) {
    GraphNode merge;
    merge.op = merge.name = "merge_heads";
    merge.operands = {value};
    rows.channels = rows.rowElements();
    rows.heads = 0;
    value = function.add(rows);
    merge.results = {value};
    function.nodes.push_back(std::move(merge));
  }
  GraphNode record;
  record.op = record.name = "record";
  record.operands = {value, batch};
  record.attributes["index"] = index;
  function.nodes.push_back(std::move(record));
}

const GraphFunction &kindOf(const ModelGraph &graph, int64_t layer) {
  return graph.kinds[static_cast<size_t>(graph.kindOfLayer[static_cast<size_t>(layer)])];
}

// The function of `layer`, for itself alone from now on.
GraphFunction &ownFunction(ModelGraph &graph, int64_t layer) {
  int &kind = graph.kindOfLayer[static_cast<size_t>(layer)];
  if (std::count(graph.kindOfLayer.begin(), graph.kindOfLayer.end(), kind) > 1) {
    GraphFunction copy = graph.kinds[static_cast<size_t>(kind)];
    copy.name += "_of_layer_" + std::to_string(layer);
    kind = static_cast<int>(graph.kinds.size());
    graph.kinds.push_back(std::move(copy));
    for (GraphNode &node : graph.step.nodes)
      if (node.op == "call" && node.name == "layers." + std::to_string(layer))
        node.attributes["kind"] = static_cast<int64_t>(kind);
  }
  return graph.kinds[static_cast<size_t>(kind)];
}

} // namespace

StatusOr<std::vector<std::string>> recordVariables(ModelSpec &spec, const std::vector<std::string> &names) {
  std::vector<std::string> recorded;
  for (const std::string &name : names) {
    if (name.rfind("*.", 0) != 0) {
      recorded.push_back(name);
      continue;
    }
    const size_t before = recorded.size();
    for (int64_t layer = 0; layer < spec.layers; ++layer) {
      const std::string here = std::to_string(layer) + name.substr(1);
      LLMC_ASSIGN_OR_RETURN(VariableName wanted, parseName(here, spec.layers));
      if (findVariable(kindOf(spec.graph, layer), wanted, here).ok())
        recorded.push_back(here);
    }
    if (recorded.size() == before)
      return Status::error("no layer has '" + name + "'");
  }
  for (size_t i = 0; i < recorded.size(); ++i) {
    LLMC_ASSIGN_OR_RETURN(VariableName wanted, parseName(recorded[i], spec.layers));
    GraphFunction &function = wanted.layer < 0 ? spec.graph.step : ownFunction(spec.graph, wanted.layer);
    LLMC_ASSIGN_OR_RETURN(int value, findVariable(function, wanted, recorded[i]));
    addRecord(function, value, streamRecords(spec) + static_cast<int64_t>(i));
  }
  return recorded;
}

} // namespace llmc
