// Which of a program's tasks share their code.
#include "lib/codegen/cpu/EqualTasks.h"
#include "lib/codegen/cpu/CompileProgram.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

namespace llmc::cpu {
namespace {

// `first` again under another name, and then with another width, function, constant, order of operands and number of
// columns.
constexpr char program[] = R"(
tile.task @first rows(%row, %column of 3) (%x: !tile.rows<96>, %y: !tile.rows<96>) {
  %c32 = arith.constant 32 : index
  %at = arith.muli %column, %c32 : index
  %v = tile.load %x[%row, %at] : !tile.rows<96> -> tensor<32xf32>
  %s = math.exp %v : tensor<32xf32>
  tile.store %s, %y[%row, %at] : tensor<32xf32>, !tile.rows<96>
}
tile.task @same rows(%r, %c of 3) (%x: !tile.rows<96>, %y: !tile.rows<96>) {
  %width = arith.constant 32 : index
  %at = arith.muli %c, %width : index
  %v = tile.load %x[%r, %at] : !tile.rows<96> -> tensor<32xf32>
  %s = math.exp %v : tensor<32xf32>
  tile.store %s, %y[%r, %at] : tensor<32xf32>, !tile.rows<96>
}
tile.task @width rows(%row, %column of 3) (%x: !tile.rows<128>, %y: !tile.rows<96>) {
  %c32 = arith.constant 32 : index
  %at = arith.muli %column, %c32 : index
  %v = tile.load %x[%row, %at] : !tile.rows<128> -> tensor<32xf32>
  %s = math.exp %v : tensor<32xf32>
  tile.store %s, %y[%row, %at] : tensor<32xf32>, !tile.rows<96>
}
tile.task @function rows(%row, %column of 3) (%x: !tile.rows<96>, %y: !tile.rows<96>) {
  %c32 = arith.constant 32 : index
  %at = arith.muli %column, %c32 : index
  %v = tile.load %x[%row, %at] : !tile.rows<96> -> tensor<32xf32>
  %s = math.sqrt %v : tensor<32xf32>
  tile.store %s, %y[%row, %at] : tensor<32xf32>, !tile.rows<96>
}
tile.task @constant rows(%row, %column of 3) (%x: !tile.rows<96>, %y: !tile.rows<96>) {
  %c32 = arith.constant 16 : index
  %at = arith.muli %column, %c32 : index
  %v = tile.load %x[%row, %at] : !tile.rows<96> -> tensor<32xf32>
  %s = math.exp %v : tensor<32xf32>
  tile.store %s, %y[%row, %at] : tensor<32xf32>, !tile.rows<96>
}
tile.task @operands rows(%row, %column of 3) (%x: !tile.rows<96>, %y: !tile.rows<96>) {
  %c32 = arith.constant 32 : index
  %at = arith.muli %column, %c32 : index
  %v = tile.load %y[%row, %at] : !tile.rows<96> -> tensor<32xf32>
  %s = math.exp %v : tensor<32xf32>
  tile.store %s, %x[%row, %at] : tensor<32xf32>, !tile.rows<96>
}
tile.task @columns rows(%row, %column of 2) (%x: !tile.rows<96>, %y: !tile.rows<96>) {
  %c32 = arith.constant 32 : index
  %at = arith.muli %column, %c32 : index
  %v = tile.load %x[%row, %at] : !tile.rows<96> -> tensor<32xf32>
  %s = math.exp %v : tensor<32xf32>
  tile.store %s, %y[%row, %at] : tensor<32xf32>, !tile.rows<96>
}
)";

TEST(EqualTasks, NameAloneIsNoDifference) {
  mlir::DialectRegistry registry;
  registerCodegenDialects(registry);
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(program, &context);
  ASSERT_TRUE(module);
  TaskKey first{module->lookupSymbol<tile::TaskOp>("first"), {false, false}};
  for (auto task : module->getOps<tile::TaskOp>()) {
    bool expected = task.getSymName() == "first" || task.getSymName() == "same";
    TaskKey key{task, first.isLogits};
    EXPECT_EQ(TaskKeyInfo::isEqual(first, key), expected) << task.getSymName().str();
    if (expected) {
      EXPECT_EQ(TaskKeyInfo::getHashValue(first), TaskKeyInfo::getHashValue(key)) << task.getSymName().str();
    }
  }
  TaskKey toLogits{first.task, {false, true}};
  EXPECT_FALSE(TaskKeyInfo::isEqual(first, toLogits)); // whose rows lie otherwise
}

} // namespace
} // namespace llmc::cpu
