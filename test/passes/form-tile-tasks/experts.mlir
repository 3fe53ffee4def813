// RUN: llmc-opt %s --llmc-form-tile-tasks --cse --split-input-file | FileCheck %s

// 2 slots of 96 channels: 3 tiles of 32 each, so that no tile reaches into the next slot. The bias is the expert's; what
// follows elementwise stands behind the product, a factor for each slot too.
// CHECK: llm.weight @up : !llm.weight<4x96x64, f32, tile = 32
// CHECK-LABEL: tile.task @experts.0
// CHECK-SAME: rows(%[[ROW:.+]], %[[COLUMN:.+]] of 6)
// CHECK: %[[C3:.+]] = arith.constant 3 : index
// CHECK: %[[SLOT:.+]] = arith.divui %[[COLUMN]], %[[C3]]
// CHECK: %[[TILE:.+]] = arith.remui %[[COLUMN]], %[[C3]]
// CHECK: %[[X:.+]] = tile.load %{{.+}} -> tensor<64xf32>
// CHECK: tile.load %{{.+}}[%[[ROW]], %[[SLOT]]] : <2> -> tensor<1xf32>
// CHECK: %[[EXPERT:.+]] = arith.index_cast
// CHECK: %[[DOT:.+]] = tile.dot %[[X]], %{{.+}}[%[[TILE]]] of %[[EXPERT]]
// CHECK: %[[FIRST:.+]] = arith.muli %[[EXPERT]], %{{.+}}
// CHECK: tile.load_vector {{.+}} : <4x96, plain> -> tensor<32xf32>
// CHECK: arith.maximumf
// CHECK: tile.load %{{.+}}[%[[ROW]], %[[SLOT]]] : <2> -> tensor<1xf32>
// CHECK: tile.store
// CHECK-NOT: tile.task @experts.1
llm.weight @up : !llm.weight<4x96x64, f32> from [{tensor = "up"}]
llm.weight @bias : !llm.weight<4x96, plain> from [{tensor = "bias"}]
func.func private @experts(%x: tensor<?x64xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xf32>, %up: !llm.weight<4x96x64, f32>, %bias: !llm.weight<4x96, plain>) -> tensor<?x2x96xf32> {
  %u = llm.expert_linear %x, %up, %e bias %bias : tensor<?x64xf32>, !llm.weight<4x96x64, f32>, tensor<?x2xf32>, !llm.weight<4x96, plain> -> tensor<?x2x96xf32>
  %a = llm.activation relu %u : tensor<?x2x96xf32>
  %y = llm.multiply %a, %w : tensor<?x2x96xf32>, tensor<?x2xf32>
  return %y : tensor<?x2x96xf32>
}
func.func private @caller(%x: tensor<?x64xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xf32>) -> tensor<?x2x96xf32> {
  %up = llm.use_weight @up : !llm.weight<4x96x64, f32>
  %bias = llm.use_weight @bias : !llm.weight<4x96, plain>
  %y = func.call @experts(%x, %w, %e, %up, %bias) : (tensor<?x64xf32>, tensor<?x2xf32>, tensor<?x2xf32>, !llm.weight<4x96x64, f32>, !llm.weight<4x96, plain>) -> tensor<?x2x96xf32>
  return %y : tensor<?x2x96xf32>
}

// -----

// Every head has its matrix, and its input. 17 channels: a tile each, of which nothing is shared.
// CHECK-LABEL: tile.task @heads.0
// CHECK-SAME: rows(%[[ROW:.+]], %[[COLUMN:.+]] of 51)
// CHECK: %[[HEAD:.+]] = arith.divui %[[COLUMN]], %{{.+}}
// CHECK: %[[AT:.+]] = arith.muli %[[HEAD]], %{{.+}}
// CHECK: %[[X:.+]] = tile.load %{{.+}}[%[[ROW]], %[[AT]]] : <192> -> tensor<64xf32>
// CHECK: tile.dot %[[X]], %{{.+}}[%{{.+}}] of %[[HEAD]]
func.func private @heads(%x: tensor<?x3x64xf32>, %w: !llm.weight<3x17x64, f32>) -> tensor<?x3x17xf32> {
  %y = llm.head_linear %x, %w : tensor<?x3x64xf32>, !llm.weight<3x17x64, f32> -> tensor<?x3x17xf32>
  return %y : tensor<?x3x17xf32>
}

// -----

// CHECK-LABEL: tile.task @router.0
// CHECK: %[[SCORES:.+]] = arith.divf
// CHECK: %[[COUNTED:.+]] = arith.addf %[[SCORES]]
// CHECK: %[[EXPERTS:.+]] = tile.choose %[[COUNTED]] {group_sum = 2 : i64, groups = 4 : i64, top_groups = 2 : i64}
// CHECK: tile.pick %[[SCORES]] at %[[EXPERTS]]
// CHECK: tile.reduce add
// CHECK: tile.store
// CHECK: tile.store %[[EXPERTS]]
func.func private @router(%x: tensor<?x16xf32>, %b: !llm.weight<16, plain>) -> (tensor<?x3xf32>, tensor<?x3xf32>) {
  %w, %e = llm.router sigmoid %x bias %b {top_k = 3 : i64, groups = 4 : i64, top_groups = 2 : i64, group_sum = 2 : i64, normalize = true, norm_eps = 1.0e-20 : f32, scale = 2.5 : f32, jitter = 0.0 : f32} : tensor<?x16xf32>, !llm.weight<16, plain> -> tensor<?x3xf32>
  return %w, %e : tensor<?x3xf32>, tensor<?x3xf32>
}
