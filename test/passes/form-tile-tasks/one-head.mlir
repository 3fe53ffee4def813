// RUN: llmc-opt %s --llmc-form-tile-tasks --cse | FileCheck %s

// One head of the prime size 17 without positions: query, key and value are a column tile each, 17 of 32 places used.
// CHECK-LABEL: tile.task @layer.0
// CHECK-SAME: rows(%{{.+}}, %[[COLUMN:.+]] of 3)
// CHECK-SAME: !llm.weight<51x64, f32, tile = 17
// CHECK: %[[HEAD:.+]] = tile.dot {{.+}} -> tensor<17xf32>
// CHECK-NEXT: tile.when %[[COLUMN]] in 0 to 1 {
// CHECK: tile.store %[[HEAD]], {{.+}} : tensor<17xf32>, <17>
// CHECK: tile.when %[[COLUMN]] in 1 to 2 {
// CHECK: tile.append key %[[HEAD]]
// CHECK: tile.when %[[COLUMN]] in 2 to 3 {
// CHECK: tile.append value %[[HEAD]]
// CHECK-LABEL: tile.task @layer.1 rows(%{{.+}}, %{{.+}} of 1)
// Workers may share a context: result in whole vectors, sixteen sums and maximum of one head, 32 + 32.
// CHECK: tile.attend {{.+}} partials %{{.+}} : !tile.rows<64> {scale = 2.500000e-01 : f32, softcap = 0.000000e+00 : f32, span = 1024 : i64, window = 0 : i64} : tensor<17xf32>
func.func private @layer(%x: tensor<?x64xf32>, %batch: !llm.batch, %kv: !llm.kv<1x17xf32, page = 16, panel = 16>, %w: !llm.weight<51x64, f32>) -> tensor<?x17xf32> {
  %q, %k, %v = llm.fused_linear %x, %w : tensor<?x64xf32>, !llm.weight<51x64, f32> -> tensor<?x17xf32>, tensor<?x17xf32>, tensor<?x17xf32>
  %qh = llm.split_heads %q : tensor<?x17xf32> -> tensor<?x1x17xf32>
  %kh = llm.split_heads %k : tensor<?x17xf32> -> tensor<?x1x17xf32>
  %vh = llm.split_heads %v : tensor<?x17xf32> -> tensor<?x1x17xf32>
  %grown = llm.kv_append %kv, %kh, %vh, %batch : !llm.kv<1x17xf32, page = 16, panel = 16>, tensor<?x1x17xf32>
  %a = llm.attention %qh, %grown, %batch {scale = 0.25 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x1x17xf32>, !llm.kv<1x17xf32, page = 16, panel = 16>
  %m = llm.merge_heads %a : tensor<?x1x17xf32> -> tensor<?x17xf32>
  return %m : tensor<?x17xf32>
}
