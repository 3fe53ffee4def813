// The functions that a wiring may call for rows: one per op of the llm dialect, some with what usually goes with it (a state,
// a bias). docs/adding-a-model.md lists them for people.
#pragma once
#include "lib/importer/Graph.h"
#include "lib/importer/Scalar.h"
#include <optional>
#include <string>
#include <vector>

namespace llmc {

// What an expression of a wiring stands for.
struct Operand {
  enum class Kind { Scalar, Rows, Weight, Several };
  Kind kind = Kind::Scalar;
  Scalar scalar;
  int rows = -1;       // value of the function that is being built
  std::string weight;  // name in the description
  std::vector<Operand> several;

  static Operand of(Scalar scalar) { return {Kind::Scalar, std::move(scalar), -1, "", {}}; }
  static Operand ofRows(int value) { return {Kind::Rows, {}, value, "", {}}; }
  static Operand ofWeight(std::string name) { return {Kind::Weight, {}, -1, std::move(name), {}}; }
};

struct RowShape {
  int64_t heads = 0, channels = 0; // heads 0: none
};

// The function that is being built, as ops see it.
class GraphScope {
public:
  virtual ~GraphScope() = default;
  virtual const GraphValue &value(int id) const = 0;
  virtual int batch() = 0;
  virtual StatusOr<int> weight(const std::string &name, std::vector<int64_t> shape, double add) = 0;
  // The state `name` of this layer, or of `layer` where that is not negative.
  virtual StatusOr<int> state(const std::string &name, const StateShape &shape, int64_t layer) = 0;
  virtual StatusOr<int> ropeTable(const std::string &name, int64_t every) = 0;
  // Number of the next record.
  virtual int64_t nextRecord() = 0;
  // Adds the node and a value per result; that of a kv_append is its state.
  virtual std::vector<int> emit(GraphNode node, const std::vector<RowShape> &results) = 0;
};

struct CallArguments {
  std::vector<Operand> positional;
  std::vector<std::pair<std::string, Operand>> named;
};

// Nothing when no op has the name.
std::optional<StatusOr<Operand>> callGraphOp(GraphScope &scope, const std::string &name, const CallArguments &arguments);

// Rows combined by an operator: + - * / with rows or a number on either side, and a sign.
StatusOr<Operand> applyRowOperator(GraphScope &scope, const std::string &op, const std::vector<Operand> &operands);

// Every function with its parameters, for messages: "linear(x, weight, out, bias?)".
std::vector<std::string> graphOpSignatures();

} // namespace llmc
