// OpCall: one call of a wiring's function: its arguments by parameter, and what an op needs of them.
#pragma once
#include "lib/importer/GraphOps.h"
#include <cmath>
#include <map>
#include <set>

namespace llmc {

using Attributes = std::map<std::string, GraphAttribute>;

inline constexpr int64_t maxRowWidth = int64_t(1) << 28; // as the dialect bounds a row

// One call: its arguments by parameter, and what its op needs of them.
class OpCall {
public:
  OpCall(GraphScope &scope, std::string name) : scope(scope), name(std::move(name)) {}
  GraphScope &scope;
  std::string name;
  std::map<std::string, Operand> arguments;

  bool has(const std::string &parameter) const { return arguments.count(parameter) != 0; }

  Status fail(const std::string &parameter, const std::string &why) const {
    return Status::error(name + ": '" + parameter + "' " + why);
  }

  StatusOr<int> rows(const std::string &parameter) const {
    const Operand &operand = arguments.at(parameter);
    if (operand.kind != Operand::Kind::Rows)
      return fail(parameter, "is no activation");
    return operand.rows;
  }
  const GraphValue &value(int id) const { return scope.value(id); }

  StatusOr<int> headed(const std::string &parameter) const {
    LLMC_ASSIGN_OR_RETURN(int id, rows(parameter));
    if (value(id).heads == 0)
      return fail(parameter, "has no heads; use heads(x, count)");
    return id;
  }
  // With heads, they are put side by side.
  StatusOr<int> flat(const std::string &parameter) const {
    LLMC_ASSIGN_OR_RETURN(int id, rows(parameter));
    return value(id).heads == 0 ? id : one("merge_heads", {id}, {0, value(id).rowElements()});
  }

  StatusOr<Scalar> scalar(const std::string &parameter) const {
    const Operand &operand = arguments.at(parameter);
    if (operand.kind != Operand::Kind::Scalar)
      return fail(parameter, "is no number or word");
    return operand.scalar;
  }
  StatusOr<double> number(const std::string &parameter, std::optional<double> fallback = {}) const {
    if (!has(parameter) && fallback)
      return *fallback;
    LLMC_ASSIGN_OR_RETURN(Scalar value, scalar(parameter));
    if (value.kind != Scalar::Kind::Number)
      return fail(parameter, "is " + value.print() + ", expected a number");
    return value.number;
  }
  StatusOr<int64_t> integer(const std::string &parameter, std::optional<int64_t> fallback = {},
                            int64_t least = 0) const {
    if (!has(parameter) && fallback)
      return *fallback;
    LLMC_ASSIGN_OR_RETURN(double value, number(parameter));
    if (value != std::floor(value) || value < static_cast<double>(least) || value > static_cast<double>(maxRowWidth))
      return fail(parameter, "is " + printNumber(value) + ", expected a whole number from " + std::to_string(least) +
                                 " to " + std::to_string(maxRowWidth));
    return static_cast<int64_t>(value);
  }
  StatusOr<bool> flag(const std::string &parameter) const {
    if (!has(parameter))
      return false;
    LLMC_ASSIGN_OR_RETURN(Scalar value, scalar(parameter));
    return value.isTrue();
  }
  StatusOr<std::string> word(const std::string &parameter, const std::string &fallback,
                             const std::set<std::string> &known) const {
    if (!has(parameter))
      return fallback;
    LLMC_ASSIGN_OR_RETURN(Scalar value, scalar(parameter));
    if (value.kind == Scalar::Kind::Word && (known.empty() || known.count(value.word)))
      return value.word;
    std::string list;
    for (const std::string &each : known)
      list += (list.empty() ? "" : ", ") + each;
    return fail(parameter, "is " + value.print() + " (known = " + list + ")");
  }

  // A weight may be named by the description or by a word that was put together.
  StatusOr<std::string> weightName(const std::string &parameter) const {
    const Operand &operand = arguments.at(parameter);
    if (operand.kind == Operand::Kind::Weight)
      return operand.weight;
    if (operand.kind == Operand::Kind::Scalar && operand.scalar.kind == Scalar::Kind::Word)
      return operand.scalar.word;
    return fail(parameter, "is no weight");
  }
  StatusOr<int> weight(const std::string &parameter, std::vector<int64_t> shape, double add = 0.0) {
    LLMC_ASSIGN_OR_RETURN(std::string weightName, this->weightName(parameter));
    for (int64_t size : shape)
      if (size < 1 || size > maxRowWidth)
        return Status::error("weight '" + weightName + "' has a dimension of " + std::to_string(size) +
                             ", expected 1 to " + std::to_string(maxRowWidth));
    if (label.empty())
      label = weightName;
    return scope.weight(weightName, std::move(shape), add);
  }
  bool hasWeight(const std::string &parameter) const {
    return has(parameter) && !(arguments.at(parameter).kind == Operand::Kind::Scalar &&
                               arguments.at(parameter).scalar.kind != Scalar::Kind::Word);
  }
  // The bias beside the weight of `parameter`, or a weight of its own; -1 when there is none.
  StatusOr<int> bias(const std::string &parameter, std::vector<int64_t> shape) {
    if (hasWeight("bias"))
      return weight("bias", std::move(shape));
    LLMC_ASSIGN_OR_RETURN(bool wanted, flag("bias"));
    if (!wanted)
      return -1;
    LLMC_ASSIGN_OR_RETURN(std::string weightName, this->weightName(parameter));
    return scope.weight(weightName + ".bias", std::move(shape), 0.0);
  }

  // Emits an op with one result. Operands of -1 are absent optional ones; `segmented` says that several may be.
  int one(const std::string &op, const std::vector<int> &operands, RowShape shape, Attributes attributes = {},
          bool segmented = false) const {
    return scope.emit(node(op, operands, std::move(attributes), segmented), {shape}).front();
  }
  GraphNode node(const std::string &op, const std::vector<int> &operands, Attributes attributes, bool segmented) const {
    GraphNode node;
    node.op = op;
    node.name = label.empty() ? op : label;
    node.attributes = std::move(attributes);
    for (int operand : operands) {
      if (segmented)
        node.segments.push_back(operand >= 0);
      if (operand >= 0)
        node.operands.push_back(operand);
    }
    return node;
  }
  RowShape shapeOf(int id) const { return {value(id).heads, value(id).channels}; }
  // "9 x 64" with heads, "576" without.
  std::string print(int id) const {
    return (value(id).heads ? std::to_string(value(id).heads) + " x " : "") + std::to_string(value(id).channels);
  }
  bool sameShape(int a, int b) const {
    return value(a).heads == value(b).heads && value(a).channels == value(b).channels;
  }

private:
  std::string label; // the first weight
};

// What a function takes, and what makes the nodes of a call. Parameters are "name" or "name?"; the first may be
// "parts...".
struct FunctionRule {
  std::vector<std::string> parameters;
  StatusOr<Operand> (*build)(OpCall &);
};
using FunctionTable = std::map<std::string, FunctionRule>;

void addRowFunctions(FunctionTable &table);     // of rows alone
void addProductFunctions(FunctionTable &table); // with matrices, and experts
void addStateFunctions(FunctionTable &table);   // with what a layer keeps of a sequence

// Those that are called by their own names too.
inline const std::set<std::string> &activationNames() {
  static const std::set<std::string> names = {"silu",    "gelu", "gelu_tanh", "gelu_sigmoid", "relu", "relu2",
                                              "sigmoid", "tanh", "exp",       "softplus",     "sqrt"};
  return names;
}

} // namespace llmc
