// The two products of attention over one page: queries times keys, and probabilities times values. How they round and
// in which order they add is the cache's (see tile.attend), what computes them the schedule's.
#pragma once
#include "dialects/tile/TileDialect.h"
#include "lib/codegen/cpu/KernelBuilder.h"
#include "lib/codegen/cpu/Schedule.h"
#include <memory>

namespace llmc::cpu {

// One page as the query heads of one key-value head see it.
struct AttendPage {
  mlir::Value keys, values;
  mlir::Value nextKeys;               // of the page to come, or the same again
  mlir::Value keyScales, valueScales; // of the codes of i8, f32 for each position; null otherwise
  mlir::Value base;                   // position of its first key
  mlir::Value valid;                  // positions that hold something by the end of this step
};

class AttendProducts {
public:
  // For items of up to `maxRows` query rows: rows of the item times heads of the group.
  static std::unique_ptr<AttendProducts> create(KernelBuilder &kernel, llm::KvType kv, int64_t maxRows,
                                                const Schedule &schedule);
  virtual ~AttendProducts() = default;

  // Where query row r goes, D elements of `queryElement`; where its scores of a page lie, f32; its result, D of f32.
  mlir::Value queryOf(mlir::Value row);
  mlir::Value scoresOf(mlir::Value row) { return k.at(scores, k.mul(row, page * 4)); }
  mlir::Value resultOf(mlir::Value row) { return k.at(results, k.mul(row, depth * 4)); }
  mlir::Type queryElement();
  bool roundsProbabilities() const { return pairs; }

  // Starts to fetch keys or values of a page that are read next: the first lines of each 4 KiB, where streams of the
  // hardware end.
  void fetch(mlir::Value half);

  // Before an item whose queries are in place; after all items of the task.
  virtual void beginItem(mlir::Value queryRows) {}
  virtual void endTask() {}
  // scores[r][j] = query[r] . key[j] for all positions of the page: those that hold nothing yet are selected away
  // later.
  virtual void emitScores(mlir::Value queryRows, const AttendPage &current) = 0;
  // Probabilities of vector v of a row's page; they are rounded already.
  virtual void storeProbabilities(mlir::Value probabilities, mlir::Value row, int64_t v) {
    k.store(probabilities, scoresOf(row), v * 64);
  }
  // result[r] += sum_j p[r][j] * value[j]; positions past the last valid one are never read.
  virtual void emitValues(mlir::Value queryRows, const AttendPage &current) = 0;

protected:
  AttendProducts(KernelBuilder &kernel, llm::KvType kv, int64_t maxRows, const Schedule &schedule);
  KernelBuilder &k;
  const int64_t depth, page, elementBytes, kernelRows, maxRows;
  const bool pairs;
  mlir::Value queries, scores, results;
};

// Both products by matrix tiles.
std::unique_ptr<AttendProducts> makeTiledAttendProducts(KernelBuilder &kernel, llm::KvType kv, int64_t maxRows,
                                                        const Schedule &schedule);

} // namespace llmc::cpu
