// RUN: llmc-opt %s --llmc-form-tile-tasks --cse | FileCheck %s

// A latent cache takes keys only. 24 query heads over its one head: two columns of 12 (the largest part of at most 16), each
// with its sinks; the list of selected positions is the row's own for both. A list of 8 sees too little to share.
// CHECK-LABEL: tile.task @latent.0
// CHECK: tile.append key
// CHECK-NOT: tile.append value
// CHECK-LABEL: tile.task @latent.1
// CHECK-SAME: rows(%[[ROW:.+]], %[[COLUMN:.+]] of 2)
// CHECK-DAG: %[[Q:.+]] = tile.load {{.+}} -> tensor<288xf32>
// CHECK-DAG: %[[HEAD:.+]] = arith.divui %[[COLUMN]], %c2
// CHECK-DAG: %[[LIST:.+]] = tile.load {{.+}}[%[[ROW]], %c0] : <8> -> tensor<8xf32>
// CHECK-DAG: %[[SINKS:.+]] = tile.load_vector {{.+}} -> tensor<12xf32>
// CHECK: %[[O:.+]] = tile.attend %[[Q]], %{{.+}}[%[[HEAD]]], %{{.+}}[%[[ROW]]] sinks %[[SINKS]] : tensor<12xf32> selected %[[LIST]] : tensor<8xf32>
// CHECK: tile.store %[[O]], {{.+}} : tensor<192xf32>
func.func private @latent(%q: tensor<?x24x24xf32>, %c: tensor<?x1x24xf32>, %batch: !llm.batch, %kv: !llm.kv<1x24xbf16, latent = 16, page = 64, panel = 1>, %s: !llm.weight<24, plain>, %p: tensor<?x8xf32>) -> tensor<?x24x16xf32> {
  %grown = llm.kv_append %kv, %c, %batch : !llm.kv<1x24xbf16, latent = 16, page = 64, panel = 1>, tensor<?x1x24xf32>
  %o = llm.attention %q, %grown, %batch sinks %s : !llm.weight<24, plain> selected %p : tensor<?x8xf32> {scale = 0.25 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x24x24xf32>, !llm.kv<1x24xbf16, latent = 16, page = 64, panel = 1>
  return %o : tensor<?x24x16xf32>
}

// Values of another width than keys; a chunk of more than a span is worth sharing: 4 heads of 32 + 32 elements.
// CHECK-LABEL: tile.task @wide.0
// CHECK-DAG: tile.append key {{.+}} : tensor<16xf32>
// CHECK-DAG: tile.append value {{.+}} : tensor<24xf32>
// CHECK-LABEL: tile.task @wide.1
// CHECK: tile.attend {{.+}} partials %{{.+}} : !tile.rows<256> {alibi = array<f32: 5.000000e-01, 2.500000e-01, 1.250000e-01, 6.250000e-02>, chunk = 8192 : i64,
// CHECK: tile.store {{.+}} : tensor<48xf32>, <96>
func.func private @wide(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x24xf32>, %batch: !llm.batch, %kv: !llm.kv<2x16xf32, value = 24, page = 64, panel = 16>) -> tensor<?x4x24xf32> {
  %grown = llm.kv_append %kv, %k, %v, %batch : !llm.kv<2x16xf32, value = 24, page = 64, panel = 16>, tensor<?x2x16xf32>
  %o = llm.attention %q, %grown, %batch {scale = 0.25 : f32, softcap = 0.0 : f32, window = 0 : i64, chunk = 8192 : i64, alibi = array<f32: 0.5, 0.25, 0.125, 0.0625>} : tensor<?x4x16xf32>, !llm.kv<2x16xf32, value = 24, page = 64, panel = 16>
  return %o : tensor<?x4x24xf32>
}

// An indexer's positions become a buffer, with room for what each span finds: 2 * 8.
// CHECK-LABEL: tile.task @indexer.0
// CHECK: %[[P:.+]] = tile.select_positions {{.+}} partials %{{.+}} : !tile.rows<16> {span = 1024 : i64} : tensor<32xf32>, tensor<2xf32>, <1x16xbf16, latent = 16, page = 64, panel = 1> -> tensor<8xf32>
// CHECK: tile.store %[[P]], {{.+}} : tensor<8xf32>, <8>
// The cache was grown by an earlier layer: nothing is appended here.
// CHECK-LABEL: func.func private @indexer
// CHECK: tile.launch @indexer.0
// CHECK: tile.launch @indexer.1
func.func private @indexer(%q: tensor<?x2x16xf32>, %w: tensor<?x2xf32>, %batch: !llm.batch, %keys: !llm.kv<1x16xbf16, latent = 16, page = 64, panel = 1>) -> tensor<?x2x16xf32> {
  %p = llm.select_positions %q, %w, %keys, %batch : tensor<?x2x16xf32>, tensor<?x2xf32>, !llm.kv<1x16xbf16, latent = 16, page = 64, panel = 1> -> tensor<?x8xf32>
  %o = llm.attention %q, %keys, %batch selected %p : tensor<?x8xf32> {scale = 0.25 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x2x16xf32>, !llm.kv<1x16xbf16, latent = 16, page = 64, panel = 1>
  return %o : tensor<?x2x16xf32>
}
