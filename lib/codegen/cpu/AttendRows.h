// Products of attention whose keys lie in rows: latent caches, and positions that a list selects. Each position of a
// page is found by a pointer; sixteen keys at a time are turned into a panel of f32, which plain products then read.
#pragma once
#include "lib/codegen/cpu/AttendProducts.h"
#include "lib/codegen/cpu/CachePages.h"

namespace llmc::cpu {

class RowProducts : public PlainProducts {
public:
  RowProducts(KernelBuilder &kernel, llm::KvType kv, int64_t maxRows, const Schedule &schedule);
  void emitScores(mlir::Value queryRows, const AttendPage &current) override;

  // A page of those of `count` entries (f32 at `list`) that name a position from `oldest` to `position`.
  struct Selection {
    mlir::Value sequence, head, list, count, oldest, position;
  };
  AttendPage gather(CachePages &pages, const Selection &selection);
  // Page `index` of a cache that keeps one row of several positions, up to row `last`: its rows lie in several pages.
  AttendPage gatherRows(CachePages &pages, mlir::Value sequence, mlir::Value head, mlir::Value index, mlir::Value last);

protected:
  mlir::Value valueAt(const AttendPage &current, mlir::Value j) override;

private:
  // Keys that are no rows, and their values, are copied into some.
  bool copies() const { return kv.getPanel() != 1; }
  // Makes place `to` of the page that of the position `slot` of a page of the cache.
  void point(CachePages &pages, mlir::Value page, mlir::Value head, mlir::Value slot, mlir::Value to);
  mlir::Value copyKey(mlir::Value keys, mlir::Value slot, mlir::Value to);
  mlir::Value copyValue(mlir::Value values, mlir::Value slot, mlir::Value to);
  void pointRows(const AttendPage &current);
  void makePanels(mlir::Value valid);
  void makePanelBlock(llvm::ArrayRef<mlir::Value> rows, mlir::Value firstChannel, int64_t channels, mlir::Value to);

  mlir::Type rowElement;                         // of a key's row
  mlir::Value keyRows, valueRows, panels;        // pointers to each position of the page; keys as f32 in panels
  mlir::Value positions, keyScales, valueScales; // of selected positions
  mlir::Value copiedKeys, copiedValues;
};

} // namespace llmc::cpu
