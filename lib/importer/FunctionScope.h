// FunctionScope: the step or a layer while its wiring builds it. In a layer, weights and states go by their names
// inside the layer, and rows of the step become inputs when they are used.
#pragma once
#include "lib/importer/GraphOps.h"
#include "lib/importer/WeightCatalog.h"
#include <functional>

namespace llmc {

class FunctionScope final : public GraphScope {
public:
  FunctionScope(WeightCatalog &catalog, const ScalarLookup &lookup, int64_t layer)
      : catalog_(catalog), lookup_(lookup), layer_(layer) {}

  GraphFunction graph;
  FunctionScope *step = nullptr;                                          // of a layer
  std::map<int64_t, std::map<std::string, StateShape>> *states = nullptr; // of a layer: those of all, by layer
  std::function<StatusOr<int>(const std::string &, int64_t)> makeRopeTable; // in the step

  // What a call passes for an input of this function: a value of the step by number, or a weight or state by its full
  // name.
  struct Outer {
    int rows = -1;
    std::string name;
  };
  std::map<int, Outer> outer; // by input

  int parameter(const GraphValue &shape, int outerRows);
  // Rows of the step, seen from this layer.
  int capture(int outerRows);
  // The weight or state `value` under its name in this function, which is `full` outside; made when it is first used.
  int named(GraphValue value, const std::string &full);
  // Inputs in the order of a signature: parameters, batch, states, captured rows, weights.
  void orderInputs();

  const GraphValue &value(int id) const override { return graph.values[static_cast<size_t>(id)]; }
  int batch() override;
  StatusOr<int> weight(const std::string &name, std::vector<int64_t> shape, double add) override;
  StatusOr<int> state(const std::string &name, const StateShape &shape, int64_t layer) override;
  StatusOr<int> ropeTable(const std::string &name, int64_t every) override;
  int64_t nextRecord() override { return records_++; }
  std::vector<int> emit(GraphNode node, const std::vector<RowShape> &results) override;

private:
  struct NamedValues {
    std::map<std::string, int> byName;
    std::vector<int> inOrder;
  };

  WeightCatalog &catalog_;
  const ScalarLookup &lookup_;
  int64_t layer_;
  int64_t records_ = 0;
  int batch_ = -1;
  std::vector<int> parameters_;
  std::map<int, int> captured_;
  NamedValues weights_, states_;
};

// All that tells two functions apart, as text.
std::string signatureOf(const GraphFunction &function);

} // namespace llmc
