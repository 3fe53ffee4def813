// RUN: llmc-opt %s --llmc-form-tile-tasks --cse | FileCheck %s

// The residual is added behind the product, where its column tile is; scaling on the way too.
// CHECK-LABEL: tile.task @scaled.0
// CHECK-SAME: rows(%[[ROW:.+]], %[[COLUMN:.+]] of 1)
// CHECK: %[[DOT:.+]] = tile.dot
// CHECK: %[[H:.+]] = tile.load
// CHECK: %[[SCALED:.+]] = arith.mulf %[[DOT]], %{{.+}}
// CHECK: %[[SUM:.+]] = arith.addf %[[H]], %[[SCALED]]
// CHECK: tile.store %[[SUM]]
// CHECK-NOT: tile.task @scaled.1
// CHECK-LABEL: func.func private @scaled
func.func private @scaled(%x: tensor<?x64xf32>, %h: tensor<?x32xf32>, %w: !llm.weight<32x64, f32>) -> tensor<?x32xf32> {
  %y = llm.linear %x, %w : tensor<?x64xf32>, !llm.weight<32x64, f32> -> tensor<?x32xf32>
  %z = llm.scale %y {factor = 0.22 : f32} : tensor<?x32xf32>
  %s = llm.add %h, %z : tensor<?x32xf32>
  return %s : tensor<?x32xf32>
}

// A norm after the block needs its whole row: product, then a row task with norm and residual.
// CHECK-LABEL: tile.task @normed_after.0
// CHECK: %[[DOT:.+]] = tile.dot
// CHECK-NOT: tile.load
// CHECK: tile.store %[[DOT]]
// CHECK-LABEL: tile.task @normed_after.1 rows(%{{.+}}, %{{.+}} of 1)
// CHECK: tile.reduce add
// CHECK: arith.addf {{.+}} : tensor<32xf32>
// CHECK: tile.store
// CHECK-NOT: tile.task @normed_after.2
// CHECK-LABEL: func.func private @normed_after
func.func private @normed_after(%x: tensor<?x64xf32>, %h: tensor<?x32xf32>, %w: !llm.weight<32x64, f32>, %norm: !llm.weight<32, plain>) -> tensor<?x32xf32> {
  %y = llm.linear %x, %w : tensor<?x64xf32>, !llm.weight<32x64, f32> -> tensor<?x32xf32>
  %n = llm.rms_norm %y, %norm {eps = 1.0e-6 : f32} : tensor<?x32xf32>, !llm.weight<32, plain>
  %s = llm.add %h, %n : tensor<?x32xf32>
  return %s : tensor<?x32xf32>
}

// The sum has a second reader, the next product: it is stored once and loaded by both.
// CHECK-LABEL: tile.task @sum_is_read_twice.0
// CHECK: %[[SUM:.+]] = arith.addf
// CHECK: tile.store %[[SUM]]
// CHECK-LABEL: tile.task @sum_is_read_twice.1
// CHECK: %[[SUM:.+]] = tile.load
// CHECK: %[[DOT:.+]] = tile.dot %[[SUM]]
// CHECK: %[[AGAIN:.+]] = tile.load
// CHECK: arith.addf %[[AGAIN]], %[[DOT]]
func.func private @sum_is_read_twice(%h: tensor<?x64xf32>, %w0: !llm.weight<64x64, f32>, %w1: !llm.weight<64x64, f32>) -> tensor<?x64xf32> {
  %y0 = llm.linear %h, %w0 : tensor<?x64xf32>, !llm.weight<64x64, f32> -> tensor<?x64xf32>
  %s0 = llm.add %h, %y0 : tensor<?x64xf32>
  %y1 = llm.linear %s0, %w1 : tensor<?x64xf32>, !llm.weight<64x64, f32> -> tensor<?x64xf32>
  %s1 = llm.add %s0, %y1 : tensor<?x64xf32>
  return %s1 : tensor<?x64xf32>
}
