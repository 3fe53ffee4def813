// RUN: llmc-opt %s --llmc-form-tile-tasks --cse | FileCheck %s

// How a task rounds what it multiplies follows from the form of the weight. 37 columns: one tile of 48, padded to panels.

// CHECK-LABEL: tile.task @f32.0
// CHECK-SAME: rows(%[[ROW:.+]], %[[COLUMN:.+]] of 1)
// CHECK-SAME: %[[W:[^:]+]]: !llm.weight<37x64, f32, tile = 48
// CHECK: %[[X:.+]] = tile.load {{.+}} -> tensor<64xf32>
// CHECK: tile.dot %[[X]], %[[W]][%[[COLUMN]]] : tensor<64xf32>, {{.+}} -> tensor<48xf32>
func.func private @f32(%x: tensor<?x64xf32>, %w: !llm.weight<37x64, f32>) -> tensor<?x37xf32> {
  %y = llm.linear %x, %w : tensor<?x64xf32>, !llm.weight<37x64, f32> -> tensor<?x37xf32>
  return %y : tensor<?x37xf32>
}

// CHECK-LABEL: tile.task @bf16.0
// CHECK: %[[X:.+]] = tile.load {{.+}} -> tensor<64xf32>
// CHECK-NEXT: %[[ROUNDED:.+]] = arith.truncf %[[X]] : tensor<64xf32> to tensor<64xbf16>
// CHECK-NEXT: tile.dot %[[ROUNDED]], {{.+}} : tensor<64xbf16>
func.func private @bf16(%x: tensor<?x64xf32>, %w: !llm.weight<37x64, bf16>) -> tensor<?x37xf32> {
  %y = llm.linear %x, %w : tensor<?x64xf32>, !llm.weight<37x64, bf16> -> tensor<?x37xf32>
  return %y : tensor<?x37xf32>
}

// 70 elements in groups of 32, an even number of them: 4 groups, 128 codes.
// CHECK-LABEL: tile.task @quantized.0
// CHECK: %[[X:.+]] = tile.load {{.+}} -> tensor<70xf32>
// CHECK-NEXT: %[[CODES:.+]], %[[SCALES:.+]] = tile.quantize %[[X]] : tensor<70xf32> -> tensor<128xi16>, tensor<4xf32>
// CHECK-NEXT: tile.scaled_dot %[[CODES]], %[[SCALES]], {{.+}} -> tensor<16xf32>
func.func private @quantized(%x: tensor<?x70xf32>, %w: !llm.weight<16x70, i4m>) -> tensor<?x16xf32> {
  %y = llm.linear %x, %w : tensor<?x70xf32>, !llm.weight<16x70, i4m> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
