// RUN: llmc-opt %s --llmc-form-tile-tasks --cse | FileCheck %s

// CHECK-LABEL: tile.task @one_product.0
// CHECK-SAME: rows(%{{.+}}, %[[COLUMN:.+]] of 2)
// CHECK: %[[DOT:.+]] = tile.dot {{.+}} -> tensor<64xf32>
// CHECK: %[[AT:.+]] = arith.muli %[[COLUMN]], %c64
// CHECK: %[[BIAS:.+]] = tile.load_vector %{{.+}}[%[[AT]]] : <101, plain> -> tensor<64xf32>
// CHECK: arith.addf %[[DOT]], %[[BIAS]]
func.func private @one_product(%x: tensor<?x64xf32>, %w: !llm.weight<101x64, f32>, %b: !llm.weight<101, plain>) -> tensor<?x101xf32> {
  %y = llm.linear %x, %w bias %b : tensor<?x64xf32>, !llm.weight<101x64, f32>, !llm.weight<101, plain> -> tensor<?x101xf32>
  return %y : tensor<?x101xf32>
}

// An interleaved tile takes 32 biases of gate, and those of up 40 further on.
// CHECK-LABEL: tile.task @interleaved.0
// CHECK-SAME: rows(%{{.+}}, %[[COLUMN:.+]] of 2)
// CHECK: %[[DOT:.+]] = tile.dot
// CHECK: %[[AT:.+]] = arith.muli %[[COLUMN]], %c32
// CHECK: %[[UP_AT:.+]] = arith.addi %[[AT]], %c40
// CHECK-DAG: %[[GATE:.+]] = tile.load_vector %{{.+}}[%[[AT]]] : <80, plain> -> tensor<32xf32>
// CHECK-DAG: %[[UP:.+]] = tile.load_vector %{{.+}}[%[[UP_AT]]] : <80, plain> -> tensor<32xf32>
// CHECK: %[[BIAS:.+]] = tile.concat %[[GATE]], %[[UP]]
// CHECK: arith.addf %[[DOT]], %[[BIAS]] : tensor<64xf32>
func.func private @interleaved(%x: tensor<?x64xf32>, %w: !llm.weight<80x64, f32>, %b: !llm.weight<80, plain>) -> tensor<?x40xf32> {
  %g, %u = llm.fused_linear %x, %w bias %b : tensor<?x64xf32>, !llm.weight<80x64, f32>, !llm.weight<80, plain> -> tensor<?x40xf32>, tensor<?x40xf32>
  %y = llm.gated_activation silu %g, %u : tensor<?x40xf32>
  return %y : tensor<?x40xf32>
}
