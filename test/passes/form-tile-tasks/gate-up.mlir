// RUN: llmc-opt %s --llmc-form-tile-tasks --cse | FileCheck %s

// Gate and up alternate in blocks of 32 rows: both halves of a block meet in one tile. 37 of each: 2 tiles.
// CHECK-LABEL: tile.task @gate_up.0
// CHECK-SAME: rows(%[[ROW:.+]], %[[COLUMN:.+]] of 2)
// CHECK-SAME: !llm.weight<74x64, f32, tile = 64, panel = {{[0-9]+}}, interleave = 32>
// CHECK: %[[BOTH:.+]] = tile.dot {{.+}} -> tensor<64xf32>
// CHECK: %[[GATE:.+]] = tile.slice %[[BOTH]] at 0 : tensor<64xf32> -> tensor<32xf32>
// CHECK: %[[UP:.+]] = tile.slice %[[BOTH]] at 32 : tensor<64xf32> -> tensor<32xf32>
// CHECK: arith.negf %[[GATE]]
// CHECK: %[[Y:.+]] = arith.mulf %{{.+}}, %[[UP]]
// CHECK: %[[AT:.+]] = arith.muli %[[COLUMN]], %c32
// CHECK: tile.store %[[Y]], %{{.+}}[%[[ROW]], %[[AT]]] : tensor<32xf32>, <37>
func.func private @gate_up(%x: tensor<?x64xf32>, %w: !llm.weight<74x64, f32>) -> tensor<?x37xf32> {
  %g, %u = llm.fused_linear %x, %w : tensor<?x64xf32>, !llm.weight<74x64, f32> -> tensor<?x37xf32>, tensor<?x37xf32>
  %y = llm.gated_activation silu %g, %u : tensor<?x37xf32>
  return %y : tensor<?x37xf32>
}

// The gate has a second reader: it must be whole in memory, so nothing is interleaved.
// CHECK-LABEL: tile.task @gate_is_read_twice.0
// CHECK-NOT: interleave
// CHECK: tile.dot
// CHECK-LABEL: func.func private @gate_is_read_twice
func.func private @gate_is_read_twice(%x: tensor<?x64xf32>, %w: !llm.weight<64x64, f32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  %g, %u = llm.fused_linear %x, %w : tensor<?x64xf32>, !llm.weight<64x64, f32> -> tensor<?x32xf32>, tensor<?x32xf32>
  %y = llm.gated_activation gelu_tanh %g, %u : tensor<?x32xf32>
  return %y, %g : tensor<?x32xf32>, tensor<?x32xf32>
}

// Not fused: gate is computed first, and the task of up loads it.
// CHECK-LABEL: tile.task @apart.0
// CHECK: %[[GATE:.+]] = tile.dot
// CHECK: tile.store %[[GATE]]
// CHECK-LABEL: tile.task @apart.1
// CHECK: %[[UP:.+]] = tile.dot
// CHECK: %[[GATE:.+]] = tile.load {{.+}} -> tensor<32xf32>
// CHECK: math.erf
// CHECK: arith.mulf %{{.+}}, %[[UP]]
func.func private @apart(%x: tensor<?x64xf32>, %wg: !llm.weight<32x64, f32>, %wu: !llm.weight<32x64, f32>) -> tensor<?x32xf32> {
  %g = llm.linear %x, %wg : tensor<?x64xf32>, !llm.weight<32x64, f32> -> tensor<?x32xf32>
  %u = llm.linear %x, %wu : tensor<?x64xf32>, !llm.weight<32x64, f32> -> tensor<?x32xf32>
  %y = llm.gated_activation gelu %g, %u : tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
