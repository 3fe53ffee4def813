// RUN: llmc-opt %s --llmc-form-tile-tasks --cse | FileCheck %s

// Everything that a column tile suffices for stands behind the product; a factor for each row is one element of its row.
// CHECK-LABEL: tile.task @behind.0
// CHECK-SAME: rows(%{{.+}}, %[[COLUMN:.+]] of 2)
// CHECK: %[[DOT:.+]] = tile.dot
// CHECK: %[[GAIN:.+]] = tile.load_vector
// CHECK: %[[GAINED:.+]] = arith.mulf %[[DOT]], %[[GAIN]]
// CHECK: %[[MOST:.+]] = arith.maximumf %[[GAINED]]
// CHECK: %[[BOUND:.+]] = arith.minimumf %[[MOST]]
// CHECK: math.exp
// CHECK: %[[FACTOR:.+]] = tile.load {{.+}} -> tensor<1xf32>
// CHECK: tile.repeat %[[FACTOR]] : tensor<1xf32> -> tensor<64xf32>
// CHECK: tile.store
// CHECK-NOT: tile.task @behind.1
// CHECK-LABEL: func.func private @behind
func.func private @behind(%x: tensor<?x32xf32>, %f: tensor<?x1xf32>, %w: !llm.weight<70x32, f32>, %g: !llm.weight<70, plain>) -> tensor<?x70xf32> {
  %p = llm.linear %x, %w : tensor<?x32xf32>, !llm.weight<70x32, f32> -> tensor<?x70xf32>
  %a = llm.affine %p gain %g : tensor<?x70xf32> gain !llm.weight<70, plain>
  %c = llm.clamp %a {low = -2.0 : f32, high = 2.0 : f32} : tensor<?x70xf32>
  %s = llm.activation silu %c : tensor<?x70xf32>
  %y = llm.multiply %s, %f : tensor<?x70xf32>, tensor<?x1xf32>
  return %y : tensor<?x70xf32>
}

// A norm over all channels cannot stand behind the product; before the next one it can.
// CHECK-LABEL: tile.task @between.0
// CHECK: %[[DOT:.+]] = tile.dot
// CHECK: tile.store %[[DOT]]
// CHECK-LABEL: tile.task @between.1
// CHECK: tile.reduce add
// CHECK: tile.reduce add
// CHECK: math.rsqrt
// CHECK: tile.dot
// CHECK-NOT: tile.task @between.2
// CHECK-LABEL: func.func private @between
func.func private @between(%x: tensor<?x32xf32>, %v: !llm.weight<48x32, f32>, %w: !llm.weight<16x48, f32>) -> tensor<?x16xf32> {
  %p = llm.linear %x, %v : tensor<?x32xf32>, !llm.weight<48x32, f32> -> tensor<?x48xf32>
  %n = llm.layer_norm %p {eps = 1.0e-5 : f32} : tensor<?x48xf32>
  %y = llm.linear %n, %w : tensor<?x48xf32>, !llm.weight<16x48, f32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// The sigmoid and what it gates have one reader: one task, in which the row is loaded once.
// CHECK-LABEL: tile.task @gate_of_itself.0
// CHECK: %[[SUM:.+]] = arith.addf
// CHECK: math.exp
// CHECK: arith.mulf %[[SUM]]
// CHECK: tile.store
// CHECK-NOT: tile.task @gate_of_itself.1
// CHECK-LABEL: func.func private @gate_of_itself
func.func private @gate_of_itself(%x: tensor<?x32xf32>, %z: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %s = llm.add %x, %z : tensor<?x32xf32>
  %g = llm.activation sigmoid %s : tensor<?x32xf32>
  %y = llm.multiply %s, %g : tensor<?x32xf32>, tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// Read by two tasks, the sum is kept.
// CHECK-LABEL: tile.task @two_readers.0
// CHECK: arith.addf
// CHECK-LABEL: tile.task @two_readers.1
// CHECK-NOT: arith.addf
// CHECK: tile.dot
// CHECK-LABEL: tile.task @two_readers.2
func.func private @two_readers(%x: tensor<?x32xf32>, %w: !llm.weight<16x32, f32>) -> (tensor<?x16xf32>, tensor<?x32xf32>) {
  %s = llm.add %x, %x : tensor<?x32xf32>
  %y = llm.linear %s, %w : tensor<?x32xf32>, !llm.weight<16x32, f32> -> tensor<?x16xf32>
  %z = llm.activation relu %s : tensor<?x32xf32>
  return %y, %z : tensor<?x16xf32>, tensor<?x32xf32>
}
