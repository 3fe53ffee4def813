// Products of attention by bf16 matrix tiles: 16 query rows, 16 positions or channels, and 32 of what is summed at
// once.
#include "lib/codegen/cpu/AttendProducts.h"
#include "lib/codegen/cpu/MatrixTiles.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

constexpr int64_t kTileBytes = kTileRows * 64;

int64_t wholeTiles(int64_t rows) { return (rows + kTileRows - 1) / kTileRows * kTileRows; }

class TiledProducts : public AttendProducts {
public:
  TiledProducts(KernelBuilder &kernel, llm::KvType kv, int64_t maxRows, const Schedule &schedule)
      : AttendProducts(kernel, kv, wholeTiles(maxRows), schedule), columnBytes(kLanes * page * 2) {
    lastValues = k.allocate(kTileDepth * depth * 2);
  }
  // Rows past the item's are computed where they fill a tile up, and never looked at.
  void beginItem(Value queryRows) override { beginPairTiles(k, k.min(queryRows, k.i64(kTileRows))); }
  void endTask() override { endTiles(k); }
  void emitScores(Value queryRows, const AttendPage &current) override;
  void emitValues(Value queryRows, const AttendPage &current) override;

private:
  // Products of `rowTiles` x `columnTiles` tiles are registers 0 .. 3, left factors 4 and 5, right ones 6 and 7.
  struct Step {
    int64_t rowTiles, columnTiles;
    Value left;
    int64_t leftStride; // bytes from row to row
    Value right;
    int64_t rightStride, rightStep; // bytes from row to row, from column tile to column tile
  };
  void multiply(const Step &step);
  // Calls `body(tiles, first)` for one or two tiles of rows at a time.
  void tileRows(Value queryRows, llvm::function_ref<void(int64_t, Value)> body);
  void copyLastValues(const AttendPage &current, Value block);

  const int64_t columnBytes; // of 16 channels of all values of a page
  Value lastValues;
};

} // namespace

std::unique_ptr<AttendProducts> llmc::cpu::makeTiledAttendProducts(KernelBuilder &kernel, llm::KvType kv,
                                                                   int64_t maxRows, const Schedule &schedule) {
  return std::make_unique<TiledProducts>(kernel, kv, maxRows, schedule);
}

void TiledProducts::tileRows(Value queryRows, llvm::function_ref<void(int64_t, Value)> body) {
  Value whole = k.mul(k.div(queryRows, 2 * kTileRows), 2 * kTileRows), left = k.sub(queryRows, whole);
  k.loop(k.i64(0), whole, 2 * kTileRows, [&](Value first) { body(2, first); });
  k.when(k.less(k.i64(kTileRows), left), [&] { body(2, whole); });
  k.when(arith::AndIOp::create(k.b, k.less(k.i64(0), left), k.less(left, k.i64(kTileRows + 1))),
         [&] { body(1, whole); });
}

void TiledProducts::multiply(const Step &step) {
  for (int64_t r = 0; r < step.rowTiles; ++r)
    loadTile(k, 4 + r, k.at(step.left, r * kTileRows * step.leftStride), step.leftStride);
  for (int64_t c = 0; c < step.columnTiles; ++c) {
    loadTile(k, 6 + c % 2, k.at(step.right, c * step.rightStep), step.rightStride);
    for (int64_t r = 0; r < step.rowTiles; ++r)
      dotTiles(k, r * step.columnTiles + c, 4 + r, 6 + c % 2);
  }
}

void TiledProducts::emitScores(Value queryRows, const AttendPage &current) {
  int64_t panelBytes = depth * kLanes * 2, panels = page / kLanes;
  tileRows(queryRows, [&](int64_t tiles, Value first) {
    // Pages are whole pairs of panels.
    int64_t columns = tiles == 1 && panels % 4 == 0 ? 4 : 2;
    k.loop(k.i64(0), k.i64(panels), columns, [&](Value panel) {
      Value keys = k.mul(panel, panelBytes);
      for (int64_t product = 0; product < tiles * columns; ++product)
        zeroTile(k, product);
      for (int64_t step = 0; step < depth / kTileDepth; ++step) {
        multiply({tiles, columns, k.at(queryOf(first), step * 64), depth * 2,
                  k.at(k.at(current.keys, keys), step * kTileBytes), 64, panelBytes});
      }
      Value to = k.at(scoresOf(first), k.mul(panel, 64));
      for (int64_t r = 0; r < tiles; ++r)
        for (int64_t c = 0; c < columns; ++c)
          storeTile(k, r * columns + c, k.at(to, r * kTileRows * page * 4 + c * 64), page * 4);
    });
  });
}

// The block that holds the last valid position, zero past it: what was never written may be no number.
void TiledProducts::copyLastValues(const AttendPage &current, Value block) {
  Value from = k.at(current.values, k.mul(block, kTileBytes)), valid = k.sub(current.valid, k.mul(block, kTileDepth));
  k.loop(k.i64(0), k.i64(kTileDepth / 2), 1, [&](Value pair) {
    Value left = k.sub(valid, k.mul(pair, 2)), line = k.mul(pair, 64);
    Value one = k.select(k.less(k.i64(0), left), k.i32(0xffff), k.i32(0));
    Value mask = k.broadcast(k.select(k.less(k.i64(1), left), k.i32(-1), one));
    for (int64_t column = 0; column < depth / kLanes; ++column) {
      Value word = k.load(k.vi, k.at(from, line), column * columnBytes);
      k.store(arith::AndIOp::create(k.b, word, mask), k.at(lastValues, line), column * kTileBytes);
    }
  });
}

void TiledProducts::emitValues(Value queryRows, const AttendPage &current) {
  Value whole = k.div(current.valid, kTileDepth), blocks = k.ceilDiv(current.valid, kTileDepth);
  k.when(k.less(whole, blocks), [&] { copyLastValues(current, whole); });
  tileRows(queryRows, [&](int64_t tiles, Value first) {
    constexpr int64_t columns = 2;
    Value factors = k.at(weights, k.mul(first, page * 2));
    k.loop(k.i64(0), k.i64(depth / kLanes), columns, [&](Value column) {
      Value to = k.at(resultOf(first), k.mul(column, 64)), values = k.at(current.values, k.mul(column, columnBytes));
      auto forProducts = [&](llvm::function_ref<void(int64_t, Value)> body) {
        for (int64_t r = 0; r < tiles; ++r)
          for (int64_t c = 0; c < columns; ++c)
            body(r * columns + c, k.at(to, r * kTileRows * depth * 4 + c * 64));
      };
      forProducts([&](int64_t product, Value pointer) { loadTile(k, product, pointer, depth * 4); });
      k.loop(k.i64(0), whole, 1, [&](Value block) {
        multiply({tiles, columns, k.at(factors, k.mul(block, 64)), page * 2, k.at(values, k.mul(block, kTileBytes)), 64,
                  columnBytes});
      });
      k.when(k.less(whole, blocks), [&] {
        multiply({tiles, columns, k.at(factors, k.mul(whole, 64)), page * 2,
                  k.at(lastValues, k.mul(column, kTileBytes)), 64, kTileBytes});
      });
      forProducts([&](int64_t product, Value pointer) { storeTile(k, product, pointer, depth * 4); });
    });
  });
}
