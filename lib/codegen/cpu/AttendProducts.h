// The two products of attention over one page: queries times keys, and probabilities times values. How they round and
// in which order they add is the cache's (see tile.attend), what computes them the schedule's.
#pragma once
#include "lib/codegen/cpu/CachePages.h"
#include "lib/codegen/cpu/Schedule.h"
#include <memory>

namespace llmc::cpu {

// Vectors of 16 that hold the channels of a value.
inline int64_t valueVectors(llm::KvType kv) { return (kv.getValueDim() + kLanes - 1) / kLanes; }

class AttendProducts {
public:
  // For items of up to `maxRows` query rows: rows of the item times heads of the group.
  static std::unique_ptr<AttendProducts> create(KernelBuilder &kernel, llm::KvType kv, int64_t maxRows,
                                                const Schedule &schedule);
  virtual ~AttendProducts() = default;

  // Where query row r goes, D elements of `queryElement`; where its scores of a page lie, f32; its result, whole
  // vectors of f32.
  mlir::Value queryOf(mlir::Value row);
  mlir::Value scoresOf(mlir::Value row) { return k.at(scores, k.mul(row, page * 4)); }
  mlir::Value resultOf(mlir::Value row) { return k.at(results, k.mul(row, resultBytes)); }
  mlir::Type queryElement() const;
  bool roundsProbabilities() const { return queryElement().isBF16(); }

  // Starts to fetch keys or values of a page that are read next: the first lines of each 4 KiB, where streams of the
  // hardware end.
  void fetch(mlir::Value half, int64_t bytes);

  // Before an item whose queries are in place; after all items of the task.
  virtual void beginItem(mlir::Value queryRows) {}
  virtual void endTask() {}
  // scores[r][j] = query[r] . key[j] for all positions of the page: those that hold nothing yet are selected away
  // later.
  virtual void emitScores(mlir::Value queryRows, const AttendPage &current) = 0;
  // Probabilities of vector v of a row's page; they are rounded already.
  void storeProbabilities(mlir::Value probabilities, mlir::Value row, int64_t v);
  // result[r] += sum_j p[r][j] * value[j]; positions past the last valid one are never read.
  virtual void emitValues(mlir::Value queryRows, const AttendPage &current) = 0;

protected:
  AttendProducts(KernelBuilder &kernel, llm::KvType kv, int64_t maxRows, const Schedule &schedule);
  KernelBuilder &k;
  const llm::KvType kv;
  const int64_t depth, page, kernelRows, maxRows, resultBytes; // of a key: channels; of a row's result: bytes
  const AttendPath path;
  mlir::Value queries, scores, results;
  mlir::Value weights; // probabilities as bf16, where products take pairs of them; else they replace the scores
};

// Both products in f32, one fused multiply-add after the other: keys in panels, values in rows of any element type.
class PlainProducts : public AttendProducts {
public:
  PlainProducts(KernelBuilder &kernel, llm::KvType kv, int64_t maxRows, const Schedule &schedule)
      : AttendProducts(kernel, kv, maxRows, schedule), keyElement(kv.getElementType()),
        valueElement(kv.getElementType()), valueWidth(kv.getValueDim()) {}
  void emitScores(mlir::Value queryRows, const AttendPage &current) override;
  void emitValues(mlir::Value queryRows, const AttendPage &current) override;

protected:
  // The value of position j of the page.
  virtual mlir::Value valueAt(const AttendPage &current, mlir::Value j);
  mlir::Type keyElement, valueElement; // as the products read them
  int64_t valueWidth;                  // elements that may be read from the beginning of a value on
};

// Both products by an instruction that adds pair after pair.
std::unique_ptr<AttendProducts> makeDotAttendProducts(KernelBuilder &kernel, llm::KvType kv, int64_t maxRows,
                                                      const Schedule &schedule);

// Both products by matrix tiles.
std::unique_ptr<AttendProducts> makeTiledAttendProducts(KernelBuilder &kernel, llm::KvType kv, int64_t maxRows,
                                                        const Schedule &schedule);

} // namespace llmc::cpu
