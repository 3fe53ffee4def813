// RUN: llmc-opt %s --llmc-overlap-collectives | FileCheck %s

// Where the rows whose logits are wanted are all that is exchanged, nothing can be computed meanwhile.
// CHECK-NOT: llmc.row_blocks
tile.task @t rows(%row, %column of 1) (%x: !tile.rows<64>) {
}
// CHECK-LABEL: func.func private @layer(
func.func private @layer(%x: !tile.rows<64>) {
  tile.launch @t(%x) : !tile.rows<64>
  return
}
// CHECK-LABEL: func.func @step
func.func @step(%batch: !llm.batch) {
  %x = tile.alloc : !tile.rows<64>
  // CHECK: call @layer(%{{.+}}) : (!tile.rows<64>) -> ()
  call @layer(%x) : (!tile.rows<64>) -> ()
  // CHECK: tile.all_reduce logit_rows %{{.+}} to %{{.+}} : <64>
  tile.all_reduce logit_rows %x to %x : !tile.rows<64>
  return
}
