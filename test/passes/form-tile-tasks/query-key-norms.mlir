// RUN: llmc-opt %s --llmc-form-tile-tasks --cse | FileCheck %s

// A norm per head fits into the head's tile; the one over the whole width needs every head and waits for a row task.

// CHECK-LABEL: tile.task @per_head.0
// CHECK-SAME: rows(%{{.+}}, %[[COLUMN:.+]] of 4)
// CHECK: %[[HEAD:.+]] = tile.dot {{.+}} -> tensor<16xf32>
// CHECK: %[[SQUARE:.+]] = arith.mulf %[[HEAD]], %[[HEAD]]
// CHECK: tile.reduce add %[[SQUARE]] : tensor<16xf32>
// CHECK: tile.store
// CHECK-NOT: tile.task @per_head.1
// CHECK-LABEL: func.func private @per_head
func.func private @per_head(%x: tensor<?x64xf32>, %w: !llm.weight<64x64, f32>, %norm: !llm.weight<16, plain>) -> tensor<?x4x16xf32> {
  %q = llm.linear %x, %w : tensor<?x64xf32>, !llm.weight<64x64, f32> -> tensor<?x64xf32>
  %qh = llm.split_heads %q : tensor<?x64xf32> -> tensor<?x4x16xf32>
  %n = llm.rms_norm %qh, %norm {eps = 1.0e-6 : f32} : tensor<?x4x16xf32>, !llm.weight<16, plain>
  return %n : tensor<?x4x16xf32>
}

// CHECK-LABEL: tile.task @whole_width.0
// CHECK: %[[TILE:.+]] = tile.dot
// CHECK-NOT: tile.reduce
// CHECK: tile.store %[[TILE]]
// CHECK-LABEL: tile.task @whole_width.1 rows(%{{.+}}, %{{.+}} of 1)
// CHECK: %[[ROW:.+]] = tile.load {{.+}} -> tensor<64xf32>
// CHECK: tile.reduce add {{.+}} : tensor<64xf32>
// CHECK: tile.store
func.func private @whole_width(%x: tensor<?x64xf32>, %w: !llm.weight<64x64, f32>, %norm: !llm.weight<64, plain>) -> tensor<?x64xf32> {
  %q = llm.linear %x, %w : tensor<?x64xf32>, !llm.weight<64x64, f32> -> tensor<?x64xf32>
  %n = llm.rms_norm %q, %norm {eps = 1.0e-6 : f32} : tensor<?x64xf32>, !llm.weight<64, plain>
  return %n : tensor<?x64xf32>
}

// After the whole-width norm of the keys, the cache write is a task of its own: rope and append, head by head.
// CHECK-LABEL: tile.task @appended_late.0
// CHECK-NOT: tile.append
// CHECK-LABEL: tile.task @appended_late.1
// CHECK-NOT: tile.dot
// CHECK: tile.append key {{.+}}[%c0]
// CHECK: tile.append key {{.+}}[%c1]
// CHECK: tile.append value {{.+}}[%c0]
// CHECK: tile.append value {{.+}}[%c1]
func.func private @appended_late(%x: tensor<?x64xf32>, %w: !llm.weight<64x64, f32>, %norm: !llm.weight<32, plain>, %rope: tensor<?x16xf32>,
    %batch: !llm.batch, %kv: !llm.kv<2x16xf32, page = 16, panel = 16>) {
  %k, %v = llm.fused_linear %x, %w : tensor<?x64xf32>, !llm.weight<64x64, f32> -> tensor<?x32xf32>, tensor<?x32xf32>
  %n = llm.rms_norm %k, %norm {eps = 1.0e-6 : f32} : tensor<?x32xf32>, !llm.weight<32, plain>
  %kh = llm.split_heads %n : tensor<?x32xf32> -> tensor<?x2x16xf32>
  %vh = llm.split_heads %v : tensor<?x32xf32> -> tensor<?x2x16xf32>
  %kr = llm.rope %kh, %rope : tensor<?x2x16xf32>, tensor<?x16xf32>
  %grown = llm.kv_append %kv, %kr, %vh, %batch : !llm.kv<2x16xf32, page = 16, panel = 16>, tensor<?x2x16xf32>
  return
}
