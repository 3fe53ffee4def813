// Runs a module of the llm dialect straight from the formulas of its ops, in f32: the oracle. Knows ops, no models.
#pragma once
#include "dialects/llm/LlmDialect.h"
#include "lib/reference/Matrix.h"
#include "mlir/IR/BuiltinOps.h"
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace llmc {
class Collectives;
class Transport;
} // namespace llmc

namespace llmc::reference {

/// Where weights come from: their numbers as the model defines them, sources, transforms and sum applied. A weight [C]
/// is a matrix of one row, a weight [E, N, K] one of E * N rows: row e * N + n is row n of matrix e. Asked again for
/// the same weight in every step, so a provider that reads files keeps what it read.
class WeightProvider {
public:
  virtual ~WeightProvider() = default;
  /// Fails after an error at the op.
  virtual mlir::FailureOr<std::shared_ptr<const Matrix>> weight(llm::WeightOp op) = 0;
};

/// Weights by symbol name, in memory.
class MemoryWeights : public WeightProvider {
public:
  void add(std::string name, Matrix matrix) {
    weights[std::move(name)] = std::make_shared<const Matrix>(std::move(matrix));
  }
  mlir::FailureOr<std::shared_ptr<const Matrix>> weight(llm::WeightOp op) override;

private:
  std::map<std::string, std::shared_ptr<const Matrix>> weights;
};

struct StepInput {
  std::vector<std::vector<int32_t>> sequences; // new tokens of every sequence; none for one that rests in this step
  bool records = false;                        // whether llm.record keeps its values
};

struct StepOutput {
  std::vector<Matrix> logits;               // per sequence, of every new token
  std::vector<std::vector<Matrix>> records; // [sequence][index], when asked for
};

/// Sequence i of every step is the same sequence: its cache stays from step to step, so a prompt may come whole, in
/// chunks or token by token.
class LlmInterpreter {
public:
  /// Keeps references to all; the module must not change while the interpreter lives. The module of one of several
  /// ranks needs the transport by which it reaches the others, each an interpreter on a thread of its own.
  static mlir::FailureOr<LlmInterpreter> create(mlir::ModuleOp module, WeightProvider &weights,
                                                Transport *transport = nullptr);

  /// Runs @step. After a failure (an error at the op that caused it) the sequences are as before.
  mlir::FailureOr<StepOutput> step(const StepInput &input);
  void forgetSequences() { sequences.clear(); }
  /// What is kept of a sequence, by name: a recurrent state "NAME" [1][heads * keys * values], of a cache "NAME.keys"
  /// and "NAME.values" [position][heads * channels].
  std::map<std::string, Matrix> stateOf(size_t sequence) const;

private:
  friend class LlmStep;
  /// Keys and values of one sequence in one state, [position][heads * channels].
  struct Cache {
    std::vector<float> keys, values;
  };
  /// [heads][keys][values]. In f64, so that the oracle does not drift over a long sequence, whatever its chunks.
  using Recurrent = std::vector<double>;
  struct Sequence {
    int64_t length = 0; // positions before this step
    std::map<std::string, Cache> caches;
    std::map<std::string, Recurrent> recurrent;
  };

  LlmInterpreter(mlir::ModuleOp module, WeightProvider &weights) : module(module), weights(&weights) {}

  mlir::ModuleOp module;
  WeightProvider *weights;
  std::shared_ptr<Collectives> collectives; // null where there is one rank
  std::vector<Sequence> sequences;
};

} // namespace llmc::reference
