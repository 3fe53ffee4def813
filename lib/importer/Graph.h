// ModelGraph: what a model computes, as plain data: nodes that are ops of the llm dialect, before any IR exists. The layers of
// a kind share a function; the step calls one function per layer. BuildModule writes it down as IR, reports count it.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace llmc {

// What a layer keeps of every sequence.
struct StateShape {
  bool isCache = true;                // keys and values per position; else one matrix per head
  int64_t heads = 0, keys = 0;        // channels of a key; keys of a recurrent state
  int64_t values = 0;                 // channels of a value; of a recurrent state likewise
  bool latent = false;                // the value is the beginning of the key
  bool inputs = false;                // past inputs of a convolution: activations, not sums
  int64_t every = 1;                  // positions that a cache keeps one row of
  bool operator==(const StateShape &) const = default;
  // Numbers kept per position, or per sequence.
  int64_t elements() const { return heads * (isCache ? keys + (latent ? 0 : values) : keys * values); }
};

struct GraphValue {
  enum class Kind { Batch, State, Rows, Weight };
  Kind kind = Kind::Rows;
  std::string name;                   // of a weight or state; for rows, what made them
  int64_t heads = 0, channels = 0;    // rows; heads 0: [T, C]
  std::vector<int64_t> shape;         // weight
  StateShape state;
  int64_t rowElements() const { return (heads ? heads : 1) * channels; }
};

using GraphAttribute = std::variant<bool, int64_t, double, std::string, std::vector<float>>;

struct GraphNode {
  std::string op;                     // mnemonic in the llm dialect, or "call"
  std::string name;                   // where it comes from, for locations: a weight's name, or the op
  std::vector<int> operands;          // values of the function
  std::vector<int> segments;          // operands per argument, when several are optional
  std::vector<int> results;
  std::map<std::string, GraphAttribute> attributes;
};

struct GraphFunction {
  std::string name;
  std::vector<GraphValue> values;
  std::vector<int> inputs, results;
  std::vector<GraphNode> nodes;
  // What the wiring calls its values, in its order: "block.variable", and "block" for the value of a block. Layers of one
  // kind share the names of the first.
  std::vector<std::pair<std::string, int>> variables;
  int add(GraphValue value) {
    values.push_back(std::move(value));
    return static_cast<int>(values.size()) - 1;
  }
};

struct ModelGraph {
  std::vector<GraphFunction> kinds;
  std::vector<int> kindOfLayer;
  GraphFunction step; // its inputs are the batch; weights and states of all layers are values of it, by name
};

} // namespace llmc
