// RUN: llmc-opt %s --llmc-form-tile-tasks --cse | FileCheck %s

// A block of 32 values of a head is a column tile; two heads share each query and key.
// CHECK-LABEL: tile.task @delta.0
// CHECK-SAME: rows(%[[ROW:.+]], %[[COLUMN:.+]] of 8)
// CHECK: %[[C32:.+]] = arith.constant 32 : index
// CHECK: %[[AT:.+]] = arith.muli %[[COLUMN]], %[[C32]]
// CHECK: %[[C64:.+]] = arith.constant 64 : index
// CHECK: %[[HEAD:.+]] = arith.divui %[[AT]], %[[C64]]
// CHECK: %[[PAIR:.+]] = arith.divui %[[HEAD]]
// CHECK: %[[KEYS:.+]] = arith.muli %[[PAIR]]
// CHECK: %[[Q:.+]] = tile.load %{{.+}}[%[[ROW]], %[[KEYS]]] : <32> -> tensor<16xf32>
// CHECK: %[[K:.+]] = tile.load %{{.+}}[%[[ROW]], %[[KEYS]]] : <32> -> tensor<16xf32>
// CHECK: %[[V:.+]] = tile.load %{{.+}}[%[[ROW]], %[[AT]]] : <256> -> tensor<32xf32>
// CHECK: %[[DECAYS:.+]] = arith.muli %[[HEAD]]
// CHECK: %[[A:.+]] = tile.load %{{.+}}[%[[ROW]], %[[DECAYS]]] : <64> -> tensor<16xf32>
// CHECK: %[[B:.+]] = tile.load %{{.+}}[%[[ROW]], %[[HEAD]]] : <4> -> tensor<1xf32>
// CHECK: %[[O:.+]] = tile.recur %[[Q]], %[[K]], %[[V]] decay %[[A]] beta %[[B]], %{{.+}}[%[[COLUMN]]], %{{.+}}[%[[ROW]]]
// CHECK: tile.store %[[O]], %{{.+}}[%[[ROW]], %[[AT]]]
func.func private @delta(%q: tensor<?x2x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x4x64xf32>, %a: tensor<?x4x16xf32>, %b: tensor<?x4xf32>, %s: !llm.recurrent<4x16x64>, %batch: !llm.batch) -> tensor<?x4x64xf32> {
  %o = llm.linear_attention %q, %k, %v decay %a beta %b, %s, %batch : tensor<?x2x16xf32>, tensor<?x4x64xf32> decay tensor<?x4x16xf32> beta tensor<?x4xf32>, !llm.recurrent<4x16x64>
  return %o : tensor<?x4x64xf32>
}

// Heads of one value share a column tile where they share a query: 48 of 96.
// CHECK-LABEL: tile.task @scan.0 rows(%{{.+}}, %{{.+}} of 2)
// CHECK: tile.recur {{.+}} : tensor<16xf32>, tensor<48xf32> decay tensor<768xf32>, <96x16x1>
func.func private @scan(%q: tensor<?x1x16xf32>, %k: tensor<?x1x16xf32>, %v: tensor<?x96x1xf32>, %a: tensor<?x96x16xf32>, %s: !llm.recurrent<96x16x1>, %batch: !llm.batch) -> tensor<?x96x1xf32> {
  %o = llm.linear_attention %q, %k, %v decay %a, %s, %batch : tensor<?x1x16xf32>, tensor<?x96x1xf32> decay tensor<?x96x16xf32>, !llm.recurrent<96x16x1>
  return %o : tensor<?x96x1xf32>
}

// The taps are packed in tiles of the channels that the state has in a block; 100 channels are two.
// CHECK-LABEL: tile.task @convolution.0 rows(%{{.+}}, %{{.+}} of 2)
// CHECK: %[[Y:.+]] = tile.convolve {{.+}} : tensor<64xf32>, <100x4, f32, tile = 64, panel = 64>, <1x100x3>
// CHECK: arith.addf %[[Y]]
func.func private @convolution(%x: tensor<?x100xf32>, %w: !llm.weight<100x4, f32>, %bias: !llm.weight<100, plain>, %s: !llm.recurrent<1x100x3>, %batch: !llm.batch) -> tensor<?x100xf32> {
  %y = llm.short_conv %x, %w bias %bias, %s, %batch : tensor<?x100xf32>, !llm.weight<100x4, f32> bias !llm.weight<100, plain>, !llm.recurrent<1x100x3>
  return %y : tensor<?x100xf32>
}

// Both parts of 32 channels are loaded side by side; 64 channels are two tiles.
// CHECK-LABEL: tile.task @pool.0
// CHECK-SAME: rows(%[[ROW:.+]], %[[COLUMN:.+]] of 2)
// CHECK: %[[AT:.+]] = arith.muli %[[COLUMN]]
// CHECK: %[[V0:.+]] = tile.load %[[V:.+]][%[[ROW]], %[[AT]]] : <128> -> tensor<32xf32>
// CHECK: %[[V1:.+]] = tile.load %[[V]][%[[ROW]], %{{.+}}] : <128> -> tensor<32xf32>
// CHECK: %[[VALUE:.+]] = tile.concat %[[V0]], %[[V1]]
// CHECK: %[[Y:.+]] = tile.pool %[[VALUE]], %{{.+}}, %{{.+}}[%[[COLUMN]]], %{{.+}}[%[[ROW]]] {window = 4 : i64} : tensor<64xf32>, <1x9x64> -> tensor<32xf32>
// CHECK: tile.store %[[Y]], %{{.+}}[%[[ROW]], %[[AT]]]
func.func private @pool(%v: tensor<?x128xf32>, %g: tensor<?x128xf32>, %s: !llm.recurrent<1x9x64>, %batch: !llm.batch) -> tensor<?x64xf32> {
  %y = llm.window_pool %v, %g, %s, %batch {window = 4 : i64} : tensor<?x128xf32>, !llm.recurrent<1x9x64> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
