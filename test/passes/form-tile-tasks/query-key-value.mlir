// RUN: llmc-opt %s --llmc-form-tile-tasks --cse | FileCheck %s

// 4 query heads over 2 key-value heads of 16: a column tile is a head, 4 + 2 + 2 of them.

// The norm comes before the product, once per row.
// CHECK-LABEL: tile.task @layer.0
// CHECK-SAME: rows(%[[ROW:.+]], %[[COLUMN:.+]] of 8)
// CHECK: tile.reduce add
// CHECK: math.rsqrt
// CHECK: arith.truncf
// CHECK: %[[HEAD:.+]] = tile.dot {{.+}} -> tensor<16xf32>

// Queries: turned and stored where attention finds them.
// CHECK: tile.when %[[COLUMN]] in 0 to 4 {
// CHECK: arith.subf
// CHECK: %[[QUERY:.+]] = tile.concat
// CHECK: %[[AT:.+]] = arith.muli %[[COLUMN]], %c16
// CHECK: tile.store %[[QUERY]], %{{.+}}[%[[ROW]], %[[AT]]] : tensor<16xf32>, <64>
// CHECK-NEXT: }

// Keys: turned and appended; they are nowhere else.
// CHECK: tile.when %[[COLUMN]] in 4 to 6 {
// CHECK: %[[KEY:.+]] = tile.concat
// CHECK-NOT: tile.store
// CHECK: tile.append key %[[KEY]]
// CHECK-NEXT: }

// Values: appended as they come.
// CHECK: tile.when %[[COLUMN]] in 6 to 8 {
// CHECK-NOT: tile.concat
// CHECK: tile.append value %[[HEAD]]
// CHECK-NEXT: }
// CHECK-NEXT: }

// Attention: a column per key-value head, the two query heads that share it side by side. The window sees two spans at
// most, so nobody needs room for partial results.
// CHECK-LABEL: tile.task @layer.1
// CHECK-SAME: rows(%[[ROW:.+]], %[[GROUP:.+]] of 2)
// CHECK: %[[Q:.+]] = tile.load {{.+}} -> tensor<32xf32>
// CHECK: %[[O:.+]] = tile.attend %[[Q]], %{{.+}}[%[[GROUP]]], %{{.+}}[%[[ROW]]] {scale = 2.500000e-01 : f32, softcap = 5.000000e+01 : f32, span = 1024 : i64, window = 8 : i64}
// CHECK: tile.store %[[O]]

// CHECK-LABEL: func.func private @layer
// CHECK: tile.launch @layer.0
// CHECK: tile.launch @layer.1
func.func private @layer(%h: tensor<?x64xf32>, %batch: !llm.batch, %kv: !llm.kv<2x16xbf16, page = 64, panel = 16>, %rope: tensor<?x16xf32>,
    %norm: !llm.weight<64, plain>, %qkv: !llm.weight<128x64, bf16>) -> tensor<?x4x16xf32> {
  %n = llm.rms_norm %h, %norm {eps = 1.0e-6 : f32} : tensor<?x64xf32>, !llm.weight<64, plain>
  %q, %k, %v = llm.fused_linear %n, %qkv : tensor<?x64xf32>, !llm.weight<128x64, bf16> -> tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>
  %qh = llm.split_heads %q : tensor<?x64xf32> -> tensor<?x4x16xf32>
  %kh = llm.split_heads %k : tensor<?x32xf32> -> tensor<?x2x16xf32>
  %vh = llm.split_heads %v : tensor<?x32xf32> -> tensor<?x2x16xf32>
  %qr = llm.rope %qh, %rope : tensor<?x4x16xf32>, tensor<?x16xf32>
  %kr = llm.rope %kh, %rope : tensor<?x2x16xf32>, tensor<?x16xf32>
  %grown = llm.kv_append %kv, %kr, %vh, %batch : !llm.kv<2x16xbf16, page = 64, panel = 16>, tensor<?x2x16xf32>
  %a = llm.attention %qr, %grown, %batch {scale = 0.25 : f32, softcap = 50.0 : f32, window = 8 : i64} : tensor<?x4x16xf32>, !llm.kv<2x16xbf16, page = 64, panel = 16>
  return %a : tensor<?x4x16xf32>
}
