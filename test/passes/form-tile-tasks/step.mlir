// RUN: llmc-opt %s --llmc-form-tile-tasks --cse | FileCheck %s

// A tied head: embedding and head read one packed symbol, in the head's tiles.
// CHECK: llm.weight @embedding : !llm.weight<320x64, i8, tile = 64, panel = 16>
llm.weight @embedding : !llm.weight<320x64, i8> from [{tensor = "e"}]
llm.weight @norm : !llm.weight<64, plain> from [{tensor = "n"}]
llm.weight @gain : !llm.weight<1, plain> from [{tensor = "g"}]

// CHECK-LABEL: tile.task @step.0
// CHECK-SAME: rows(%[[ROW:.+]], %{{.+}} of 1) (%[[BATCH:.+]]: !llm.batch, %[[W:.+]]: !llm.weight
// CHECK: %[[TOKEN:.+]] = tile.batch token %[[BATCH]][%[[ROW]]]
// CHECK: %[[X:.+]] = tile.gather %[[W]][%[[TOKEN]]]
// CHECK: %[[SCALED:.+]] = arith.mulf %[[X]], %{{.+}}
// CHECK: tile.store %[[SCALED]]

// A table that several layers load is computed once per row.
// CHECK-LABEL: tile.task @step.1 rows
// CHECK: tile.batch position
// CHECK: math.cos
// CHECK: math.sin
// CHECK: tile.store

// CHECK-LABEL: tile.task @step.2 rows
// CHECK: tile.record {{.+}} at 0

// Only wanted rows reach the head: their number in T comes from the batch, norm, gain and softcap are inlined, the gain although
// its weight is used behind the product first.
// CHECK-LABEL: tile.task @step.3
// CHECK-SAME: logit_rows(%[[ROW:.+]], %{{.+}} of 5)
// CHECK: %[[SOURCE:.+]] = tile.batch logit_row %{{.+}}[%[[ROW]]]
// CHECK: tile.load %{{.+}}[%[[SOURCE]],
// CHECK: tile.reduce add
// CHECK: tile.quantize
// CHECK: tile.scaled_dot
// CHECK: tile.load_vector {{.+}} : <1, plain>
// CHECK: math.tanh
// CHECK: tile.store

// CHECK-LABEL: func.func @step
// CHECK: %[[LOGITS:.+]] = tile.logits : <320>
// CHECK: tile.launch @step.2({{.+}}) recording
// CHECK: tile.launch @step.3({{.*}}%[[LOGITS]]
func.func private @layer(%h: tensor<?x64xf32>, %rope: tensor<?x16xf32>) -> tensor<?x64xf32> {
  %y = llm.scale %h {factor = 2.0 : f32} : tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
func.func @step(%batch: !llm.batch) -> tensor<?x320xf32> {
  %e = llm.use_weight @embedding : !llm.weight<320x64, i8>
  %norm = llm.use_weight @norm : !llm.weight<64, plain>
  %h = llm.embedding %batch, %e {scale = 8.0 : f32} : !llm.weight<320x64, i8> -> tensor<?x64xf32>
  %rope = llm.rope_table %batch {frequencies = array<f32: 1.0, 0.5, 0.25, 0.125, 0.1, 0.05, 0.02, 0.01>, magnitude = 1.0 : f32} : tensor<?x16xf32>
  llm.record %h, %batch {index = 0 : i64} : tensor<?x64xf32>
  %h1 = call @layer(%h, %rope) : (tensor<?x64xf32>, tensor<?x16xf32>) -> tensor<?x64xf32>
  %s = llm.select_rows %h1, %batch : tensor<?x64xf32>
  %f = llm.rms_norm %s, %norm {eps = 1.0e-6 : f32} : tensor<?x64xf32>, !llm.weight<64, plain>
  %l = llm.linear %f, %e : tensor<?x64xf32>, !llm.weight<320x64, i8> -> tensor<?x320xf32>
  %g = llm.use_weight @gain : !llm.weight<1, plain>
  %a = llm.affine %l gain %g : tensor<?x320xf32> gain !llm.weight<1, plain>
  %c = llm.softcap %a {cap = 30.0 : f32} : tensor<?x320xf32>
  return %c : tensor<?x320xf32>
}
