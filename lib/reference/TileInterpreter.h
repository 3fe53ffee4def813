// Runs a module of the tile dialect: every task for every row and column tile, on packed weights and a paged cache, in
// the arithmetic that the ops' descriptions fix. What compiled code must reproduce.
#pragma once
#include "dialects/tile/TileDialect.h"
#include "lib/reference/Matrix.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/collective/Collectives.h"
#include "runtime/llmc_abi.h"
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace llmc::reference {

class TileTask;

/// Where packed weights come from, in the layout of the op's type. The bytes stay where they are while the provider
/// lives.
class PackedWeightProvider {
public:
  virtual ~PackedWeightProvider() = default;
  /// Fails after an error at the op.
  virtual mlir::FailureOr<std::span<const uint8_t>> bytes(llm::WeightOp op) = 0;
};

/// Packed weights by symbol name, in memory.
class MemoryPackedWeights : public PackedWeightProvider {
public:
  void add(std::string name, std::vector<uint8_t> bytes) { weights[std::move(name)] = std::move(bytes); }
  mlir::FailureOr<std::span<const uint8_t>> bytes(llm::WeightOp op) override;

private:
  std::map<std::string, std::vector<uint8_t>> weights;
};

/// A recurrent state as its op counts it, [1][heads * keys * values], from its part of a slot.
Matrix plainState(llm::RecurrentType type, const uint8_t *part);

struct TileOutput {
  Matrix logits;               // [R][vocabulary]
  std::vector<Matrix> records; // [index], of every row; when asked for
};

/// Owns `numPages` cache pages and `numSlots` slots of recurrent state, zero at first; the caller's batches say which
/// sequence uses which.
class TileInterpreter {
public:
  /// Keeps references to all; the module must not change while the interpreter lives. The program of one of several
  /// ranks needs the transport by which it reaches the others, each an interpreter on a thread of its own.
  static mlir::FailureOr<std::unique_ptr<TileInterpreter>> create(mlir::ModuleOp module, PackedWeightProvider &weights,
                                                                  int64_t numPages, int64_t numSlots = 0,
                                                                  Transport *transport = nullptr);
  ~TileInterpreter();

  /// Runs @step. A batch that contradicts itself or names a missing page is an error at the module.
  mlir::FailureOr<TileOutput> step(const llmc_batch &batch, bool records);

  int64_t pagePositions() const { return positionsPerPage; }
  int64_t bytesPerPage() const { return pageBytes; }
  std::span<const uint8_t> cache() const { return kv; }
  std::span<const uint8_t> states() const { return slots; }
  /// The recurrent states of a slot, by name.
  std::map<std::string, Matrix> statesOf(int64_t slot) const;

private:
  friend class TileStep;
  TileInterpreter(mlir::ModuleOp module, PackedWeightProvider &weights);
  mlir::LogicalResult placeStates(int64_t numPages, int64_t numSlots);
  mlir::LogicalResult compileTasks();
  mlir::LogicalResult checkBatch(const llmc_batch &batch);

  mlir::ModuleOp module;
  PackedWeightProvider *weights;
  std::map<std::string, int64_t> stateOffsets;
  std::map<std::string, std::unique_ptr<TileTask>> tasks;
  int64_t positionsPerPage = 0, pageBytes = 0, numPages = 0, slotBytes = 0, numSlots = 0;
  std::vector<uint8_t> kv, slots;
  std::optional<Collectives> collectives;
};

} // namespace llmc::reference
