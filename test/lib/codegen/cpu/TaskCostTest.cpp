// Costs of small tasks, counted by hand.
#include "lib/codegen/cpu/TaskCost.h"
#include "lib/codegen/cpu/CompileProgram.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

namespace llmc {
namespace {

// Two layers of one kind, each a product of 64 x 64 with its input squared before and a store behind, and attention of
// two key-value heads with three query heads each; then a task over the rows whose logits are wanted.
constexpr char program[] = R"(
tile.task @product rows(%row, %column of 3) (%x: !tile.rows<64>, %w: !llm.weight<96x64, i4, tile = 32, panel = 16>, %y: !tile.rows<96>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %at = arith.muli %column, %c32 : index
  %v = tile.load %x[%row, %c0] : !tile.rows<64> -> tensor<64xf32>
  %s = arith.mulf %v, %v : tensor<64xf32>
  %q, %d = tile.quantize %s : tensor<64xf32> -> tensor<64xi16>, tensor<2xf32>
  %p = tile.scaled_dot %q, %d, %w[%column] : tensor<64xi16>, tensor<2xf32>, !llm.weight<96x64, i4, tile = 32, panel = 16> -> tensor<32xf32>
  %e = math.exp %p : tensor<32xf32>
  tile.store %e, %y[%row, %at] : tensor<32xf32>, !tile.rows<96>
}
tile.task @latent rows(%row, %column of 4) (%x: !tile.rows<1920>, %kv: !llm.kv<1x48xbf16, latent = 32, page = 64, panel = 1>, %batch: !llm.batch, %y: !tile.rows<1280>) {
  %c0 = arith.constant 0 : index
  %c480 = arith.constant 480 : index
  %c320 = arith.constant 320 : index
  %from = arith.muli %column, %c480 : index
  %at = arith.muli %column, %c320 : index
  %q = tile.load %x[%row, %from] : !tile.rows<1920> -> tensor<480xf32>
  %o = tile.attend %q, %kv[%c0], %batch[%row] {scale = 0.125 : f32, softcap = 0.0 : f32, window = 0 : i64, chunk = 256 : i64} : tensor<480xf32>, !llm.kv<1x48xbf16, latent = 32, page = 64, panel = 1>
  tile.store %o, %y[%row, %at] : tensor<320xf32>, !tile.rows<1280>
}
tile.task @attend rows(%row, %column of 2) (%x: !tile.rows<384>, %kv: !llm.kv<2x64xbf16, page = 64, panel = 16>, %batch: !llm.batch, %y: !tile.rows<384>) {
  %c192 = arith.constant 192 : index
  %at = arith.muli %column, %c192 : index
  %q = tile.load %x[%row, %at] : !tile.rows<384> -> tensor<192xf32>
  %o = tile.attend %q, %kv[%column], %batch[%row] {scale = 0.125 : f32, softcap = 0.0 : f32, window = 128 : i64} : tensor<192xf32>, !llm.kv<2x64xbf16, page = 64, panel = 16>
  tile.store %o, %y[%row, %at] : tensor<192xf32>, !tile.rows<384>
}
tile.task @recur rows(%row, %column of 4) (%x: !tile.rows<64>, %s: !llm.recurrent<2x16x64>, %batch: !llm.batch) {
  %k = tile.load %x[%row, %column] : !tile.rows<64> -> tensor<16xf32>
  %v = tile.load %x[%row, %column] : !tile.rows<64> -> tensor<32xf32>
  %b = tile.load %x[%row, %column] : !tile.rows<64> -> tensor<1xf32>
  %o = tile.recur %k, %k, %v decay %b beta %b, %s[%column], %batch[%row] : tensor<16xf32>, tensor<32xf32> decay tensor<1xf32> beta tensor<1xf32>, !llm.recurrent<2x16x64>
  tile.store %o, %x[%row, %column] : tensor<32xf32>, !tile.rows<64>
}
tile.task @copy logit_rows(%row, %column of 1) (%x: !tile.rows<64>, %y: !tile.rows<64>) {
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%row, %c0] : !tile.rows<64> -> tensor<64xf32>
  tile.store %v, %y[%row, %c0] : tensor<64xf32>, !tile.rows<64>
}
func.func @layer(%x: !tile.rows<64>, %w: !llm.weight<96x64, i4, tile = 32, panel = 16>, %y: !tile.rows<96>) {
  tile.launch @product(%x, %w, %y) : !tile.rows<64>, !llm.weight<96x64, i4, tile = 32, panel = 16>, !tile.rows<96>
  return
}
llm.weight @w : !llm.weight<96x64, i4, tile = 32, panel = 16> from [{tensor = "w"}]
func.func @step(%batch: !llm.batch) {
  %x = tile.alloc : !tile.rows<64>
  %y = tile.alloc : !tile.rows<96>
  %w = llm.use_weight @w : !llm.weight<96x64, i4, tile = 32, panel = 16>
  tile.launch @copy(%x, %x) : !tile.rows<64>, !tile.rows<64>
  call @layer(%x, %w, %y) : (!tile.rows<64>, !llm.weight<96x64, i4, tile = 32, panel = 16>, !tile.rows<96>) -> ()
  call @layer(%x, %w, %y) : (!tile.rows<64>, !llm.weight<96x64, i4, tile = 32, panel = 16>, !tile.rows<96>) -> ()
  tile.launch @copy(%x, %x) recording : !tile.rows<64>, !tile.rows<64>
  return
}
)";

class TaskCost : public ::testing::Test {
protected:
  TaskCost() {
    mlir::DialectRegistry registry;
    cpu::registerCodegenDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    module = mlir::parseSourceString<mlir::ModuleOp>(program, &context);
  }
  tile::TaskOp task(const char *name) { return module->lookupSymbol<tile::TaskOp>(name); }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

TEST_F(TaskCost, OfAProduct) {
  ASSERT_TRUE(module);
  KernelCost cost = cpu::costOf(task("product"));
  EXPECT_FALSE(cost.logitRows);
  EXPECT_EQ(cost.products, 2 * 96 * 64);
  EXPECT_EQ(cost.passes, 2); // codes of 16 bits
  // Once per row: the square and four per element to quantise; for each of three tiles: exp of 32.
  EXPECT_EQ(cost.otherOperations, 64 + 4 * 64 + 3 * 32 * 10);
  EXPECT_EQ(cost.weightBytes, 3 * 2 * 576); // three tiles of two panels, one block of 64 along K each
  EXPECT_EQ(cost.rowBytes, 4 * 64 + 4 * 96);
  EXPECT_EQ(cost.positionProducts, 0);
}

TEST_F(TaskCost, OfAttention) {
  ASSERT_TRUE(module);
  KernelCost cost = cpu::costOf(task("attend"));
  EXPECT_EQ(cost.products, 0);
  EXPECT_EQ(cost.positionProducts, 4 * 64 * 6);  // six query heads
  EXPECT_EQ(cost.positionBytes, 2 * 64 * 2 * 2); // keys and values of two heads in bf16
  EXPECT_EQ(cost.window, 128);
  EXPECT_EQ(cost.rowBytes, 2 * 4 * 384);
}

TEST_F(TaskCost, OfARecurrence) {
  ASSERT_TRUE(module);
  KernelCost cost = cpu::costOf(task("recur"));
  EXPECT_EQ(cost.otherOperations, 4 * 7 * 16 * 32); // two sums, decay and update of a quarter of the state
  EXPECT_EQ(cost.sequenceBytes, 2 * 4 * 2 * 16 * 64);
  EXPECT_EQ(cost.rowBytes, 4 * 4 * (16 + 32 + 1 + 32));
}

TEST_F(TaskCost, OfLatentAttention) {
  ASSERT_TRUE(module);
  KernelCost cost = cpu::costOf(task("latent"));
  EXPECT_EQ(cost.positionProducts, 2 * 40 * (48 + 32)); // forty query heads in four columns
  EXPECT_EQ(cost.positionBytes, 48 * 2);                // read once for all columns
  EXPECT_EQ(cost.window, 256);
}

TEST_F(TaskCost, OfRowsWhoseLogitsAreWanted) {
  ASSERT_TRUE(module);
  EXPECT_TRUE(cpu::costOf(task("copy")).logitRows);
}

TEST_F(TaskCost, LaunchesKnowTheirLayers) {
  ASSERT_TRUE(module);
  auto layers = cpu::layersOfLaunches(*module);
  EXPECT_EQ(layers.lookup(task("product")), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(layers.lookup(task("copy")), (std::vector<int32_t>{-1})); // the recording launch does not count
  EXPECT_TRUE(layers.lookup(task("attend")).empty());
}

} // namespace
} // namespace llmc
