#include "lib/importer/FunctionScope.h"
#include <sstream>

namespace llmc {

using ValueKind = GraphValue::Kind;

int FunctionScope::parameter(const GraphValue &shape, int outerRows) {
  int id = graph.add(shape);
  outer[id] = {outerRows, ""};
  parameters_.push_back(id);
  return id;
}

int FunctionScope::capture(int outerRows) {
  auto [known, isNew] = captured_.emplace(outerRows, -1);
  if (isNew) {
    known->second = graph.add(step->value(outerRows));
    outer[known->second] = {outerRows, ""};
  }
  return known->second;
}

int FunctionScope::named(GraphValue value, const std::string &full) {
  NamedValues &all = value.kind == ValueKind::Weight ? weights_ : states_;
  auto [known, isNew] = all.byName.emplace(value.name, -1);
  if (isNew) {
    known->second = graph.add(std::move(value));
    outer[known->second] = {-1, full};
    all.inOrder.push_back(known->second);
  }
  return known->second;
}

void FunctionScope::orderInputs() {
  graph.inputs = parameters_;
  if (batch_ >= 0)
    graph.inputs.push_back(batch_);
  graph.inputs.insert(graph.inputs.end(), states_.inOrder.begin(), states_.inOrder.end());
  for (const auto &each : captured_)
    graph.inputs.push_back(each.second);
  graph.inputs.insert(graph.inputs.end(), weights_.inOrder.begin(), weights_.inOrder.end());
}

int FunctionScope::batch() {
  if (batch_ < 0) {
    GraphValue value;
    value.kind = ValueKind::Batch;
    batch_ = graph.add(value);
  }
  return batch_;
}

StatusOr<int> FunctionScope::weight(const std::string &name, std::vector<int64_t> shape, double add) {
  LLMC_ASSIGN_OR_RETURN(std::string full, catalog_.declare(name, layer_, shape, add, lookup_));
  GraphValue value;
  value.kind = ValueKind::Weight;
  value.name = step ? name : full;
  value.shape = std::move(shape);
  return named(std::move(value), full);
}

StatusOr<int> FunctionScope::state(const std::string &name, const StateShape &shape, int64_t layer) {
  if (!step)
    return Status::error("state '" + name + "' is used outside of the layers");
  bool isOwn = layer < 0 || layer == layer_;
  GraphValue value;
  value.kind = ValueKind::State;
  value.name = isOwn ? name : "earlier." + name;
  value.state = shape;
  if (isOwn) {
    auto [known, isNew] = (*states)[layer_].emplace(name, shape);
    if (!isNew && layer < 0 && known->second != shape)
      return Status::error("state '" + name +
                           "' of a layer is used as two different ones: name one of them by 'state'");
  } else {
    auto earlier = states->find(layer);
    if (earlier == states->end() || !earlier->second.count(name))
      return Status::error("layer " + std::to_string(layer) + " has no state '" + name + "' to read");
    value.state = earlier->second[name];
  }
  return named(std::move(value), "layers." + std::to_string(isOwn ? layer_ : layer) + "." + name);
}

StatusOr<int> FunctionScope::ropeTable(const std::string &name, int64_t every) {
  if (!step)
    return makeRopeTable(name, every);
  LLMC_ASSIGN_OR_RETURN(int table, step->makeRopeTable(name, every));
  return capture(table);
}

std::vector<int> FunctionScope::emit(GraphNode node, const std::vector<RowShape> &results) {
  for (const RowShape &shape : results) {
    GraphValue value;
    if (node.op == "kv_append")
      value = this->value(node.operands.front());
    value.name = node.name;
    if (value.kind == ValueKind::Rows)
      value.heads = shape.heads, value.channels = shape.channels;
    node.results.push_back(graph.add(value));
  }
  graph.nodes.push_back(node);
  return node.results;
}

std::string signatureOf(const GraphFunction &function) {
  std::ostringstream text;
  for (const GraphValue &value : function.values) {
    text << static_cast<int>(value.kind) << ' ' << (value.kind == ValueKind::Weight ? value.name : "") << ' '
         << value.heads << ' ' << value.channels << ' ' << value.state.isCache << value.state.latent
         << value.state.every << ' ' << value.state.heads << ' ' << value.state.keys << ' ' << value.state.values;
    for (int64_t size : value.shape)
      text << ' ' << size;
    text << '\n';
  }
  auto list = [&](const std::vector<int> &ids) {
    for (int id : ids)
      text << ' ' << id;
    text << ';';
  };
  list(function.inputs);
  list(function.results);
  for (const GraphNode &node : function.nodes) {
    text << node.op;
    list(node.operands);
    list(node.segments);
    for (const auto &[name, attribute] : node.attributes) {
      text << name << '=';
      std::visit(
          [&](const auto &value) {
            if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::vector<float>>)
              for (float each : value)
                text << std::hexfloat << each << std::defaultfloat << ',';
            else if constexpr (std::is_same_v<std::decay_t<decltype(value)>, double>)
              text << std::hexfloat << value << std::defaultfloat;
            else
              text << value;
          },
          attribute);
      text << ' ';
    }
    text << '\n';
  }
  return text.str();
}

} // namespace llmc
