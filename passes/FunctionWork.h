// What the ranks of a group hold and do of one function: the decisions of ShardModel, counted instead of carried out.
#pragma once
#include "dialects/llm/LlmDialect.h"
#include "lib/sharding/GridCosts.h"
#include "passes/ShardingRules.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include <map>
#include <memory>
#include <set>

namespace llmc {

// A weight as one function uses it.
struct WeightUse {
  mlir::Value value;                             // argument of a layer, use_weight of the step
  std::vector<double> elements;                  // by rank of the group
  std::vector<sharding::Dimensions::Part> parts; // of all its dimensions, one behind the other
  bool isMatrix = false, isExperts = false;
};

// A product with a weight.
struct Product {
  size_t use;
  bool isExperts;
  std::vector<double> flops; // by rank; of a row, or of a row's slot
};

// Operations of a step that run on rows of the same kind.
struct Work {
  std::vector<Product> products;
  std::vector<sharding::RankWork> ranks; // but for weights
  std::vector<sharding::Collective> collectives;
  int64_t kernels = 0, experts = 0, chosen = 0, expertRanks = 1;
  bool isEmpty() const { return products.empty() && collectives.empty() && kernels == 0; }
};

// A function as the ranks of one group share it.
class FunctionWork {
public:
  /// `rules`: of the function, nothing decided yet. `stages`: of the operations of the step, else null.
  FunctionWork(mlir::func::FuncOp function, FunctionDimensions &rules, const sharding::Group &group,
               mlir::ArrayRef<int64_t> contexts, const llvm::DenseMap<mlir::Operation *, int64_t> *stages);

  // Of a layer there is one; of the step, by stage and whether it runs on the rows of logits.
  std::map<std::pair<int64_t, bool>, Work> work;
  std::vector<WeightUse> uses;
  // By argument or use_state: of a position in a cache, of a sequence otherwise.
  llvm::MapVector<mlir::Value, std::vector<double>> states;
  std::vector<double> rowsAtOnce; // elements of a row
  double collectiveElements = 0;

private:
  bool isCut(mlir::Value value) {
    return llvm::any_of(rules.of(value), [&](const sharding::Dimension &dimension) { return axes.isCut(dimension); });
  }
  // Elements that a rank has, of a row where the value is rows.
  double local(mlir::Value value, size_t rank) { return elementsByRank(value)[rank]; }
  const std::vector<double> &elementsByRank(mlir::Value value);
  double whole(mlir::Value value) {
    double elements = 1;
    for (const sharding::Dimension &dimension : rules.of(value))
      elements *= static_cast<double>(axes.sizeOf(dimension));
    return elements;
  }
  size_t useOfWeight(mlir::Value value);
  bool hasNothingOf(mlir::Operation *op, mlir::Value weight, size_t rank);
  void countOperation(mlir::Operation &op, Work &work);
  void countCollectives(mlir::Operation &op, Work &work);
  void reduce(mlir::Value value, Work &work);
  void gather(mlir::Value value, Work &work);
  void countRowsAtOnce(mlir::Block &body);
  std::vector<double> sizesByRank(const sharding::Dimension &dimension);

  FunctionDimensions &rules;
  sharding::Dimensions axes; // with what is cut
  llvm::DenseMap<mlir::Value, size_t> useOf;
  llvm::DenseMap<mlir::Value, std::unique_ptr<std::vector<double>>> elements;
  sharding::Group group;
  size_t ranks;
  mlir::ArrayRef<int64_t> contexts;
  enum class Holds { Part, Sum, Slots };
  llvm::DenseMap<mlir::Value, Holds> holds;
  llvm::DenseSet<mlir::Value> reduced, gathered;
  std::set<std::pair<void *, void *>> kernelInputs; // products of one input are one kernel
};

} // namespace llmc
