// What each rank of a grid holds and does, from the sharding rules alone: no IR is rewritten, so that a search may ask
// about many grids.
#pragma once
#include "lib/sharding/GridCosts.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include <array>
#include <memory>

namespace llmc {

class RankCosts {
public:
  /// `module`: as the importer made it; weights of several uses get a use for each. `weightBytes`: of every weight, as
  /// ranks hold it; f32 where it says nothing. `contexts`: positions that a row of each phase sees.
  RankCosts(mlir::ModuleOp module, llvm::StringMap<double> weightBytes,
            std::array<int64_t, sharding::numPhases> contexts);
  ~RankCosts();

  /// Why the model cannot be shared so, or what every rank has. Groups that were asked for before are remembered.
  mlir::FailureOr<sharding::GridCosts> of(const sharding::Grid &grid);

  int64_t layers() const;
  int64_t experts() const; // of a layer, at most; 0: none

private:
  struct Function;
  struct Model;
  std::unique_ptr<Model> model_;
};

} // namespace llmc
