// The tile dialect: a step program as a list of tasks. One task is one future kernel.
#ifndef LLMC_DIALECTS_TILE_DIALECT_TD
#define LLMC_DIALECTS_TILE_DIALECT_TD
include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::llmc::tile";
  let summary = "tasks over grids of rows and column tiles";
  let description = [{
    A `tile.task` says what happens to **one row** (token) and **one tile of columns**: its values are builtin tensors of
    static shape and one dimension, its arithmetic is `arith` and `math` on them. How many rows a kernel takes at a time,
    what stays in registers, how work is split over workers: that is code generation's, in the `schedule` attribute. Since a
    row never sees another one, results cannot depend on what else is in the batch.

    The program level is a list of `tile.launch`: tasks in order, each after all earlier ones, on buffers made by
    `tile.alloc`. There are no threads, no memory spaces and no target here.

    Where a step computes its rows in blocks (`llmc-overlap-collectives`), `tile.block` on an op of `@step` says which block it is about,
    and `tile.layer` on a call whose part of a layer it is.
  }];
  let hasOperationAttrVerify = 1;
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::llmc::llm::LlmDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

#endif // LLMC_DIALECTS_TILE_DIALECT_TD
