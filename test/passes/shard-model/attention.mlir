// RUN: llmc-opt %s --llmc-shard-model="tensor=3 rank=2" | FileCheck %s

// Two key heads, read by two queries each, over three ranks: the last rank has all queries of the second key head. Ranks 0
// and 1 share the first. Sinks and slopes go with the queries; the output's product is a term of a sum.
llm.weight @q : !llm.weight<32x16> from [{tensor = "q"}]
llm.weight @k : !llm.weight<16x16> from [{tensor = "k"}]
llm.weight @v : !llm.weight<16x16> from [{tensor = "v"}]
llm.weight @o : !llm.weight<16x32> from [{tensor = "o"}]
llm.weight @s : !llm.weight<4> from [{tensor = "s"}]
llm.state @kv : !llm.kv<2x8xf32>
// CHECK: llmc.partitions = [array<i64: 0, 8, 8, 16, 16, 32>, array<i64: 0, 8, 0, 8, 8, 16>, array<i64: 0, 1, 1, 2, 2, 4>]
// CHECK: shard.grid @ranks(shape = 1x3)
// CHECK-DAG: llm.weight @q : !llm.weight<16x16> from [{tensor = "q"}] {of = array<i64: 32, 16>, parts = [array<i64: 0, 0, 32>, array<i64: -1, 0, 16>]}
// CHECK-DAG: llm.weight @k : !llm.weight<8x16> from [{tensor = "k"}] {of = array<i64: 16, 16>, parts = [array<i64: 1, 0, 16>, array<i64: -1, 0, 16>]}
// CHECK-DAG: llm.weight @o : !llm.weight<16x16> from [{tensor = "o"}] {of = array<i64: 16, 32>, parts = [array<i64: -1, 0, 16>, array<i64: 0, 0, 32>]}
// CHECK-DAG: llm.weight @s : !llm.weight<2> from [{tensor = "s"}] {of = array<i64: 4>, parts = [array<i64: 2, 0, 4>]}
// CHECK-DAG: llm.state @kv : !llm.kv<1x8xf32>

// CHECK-LABEL: func.func private @layer
func.func private @layer(%x: tensor<?x16xf32>, %batch: !llm.batch, %kv: !llm.kv<2x8xf32>, %wq: !llm.weight<32x16>, %wk: !llm.weight<16x16>,
                         %wv: !llm.weight<16x16>, %wo: !llm.weight<16x32>, %s: !llm.weight<4>) -> tensor<?x16xf32> {
  %q = llm.linear %x, %wq : tensor<?x16xf32>, !llm.weight<32x16> -> tensor<?x32xf32>
  %k = llm.linear %x, %wk : tensor<?x16xf32>, !llm.weight<16x16> -> tensor<?x16xf32>
  %v = llm.linear %x, %wv : tensor<?x16xf32>, !llm.weight<16x16> -> tensor<?x16xf32>
  %qh = llm.split_heads %q : tensor<?x32xf32> -> tensor<?x4x8xf32>
  %kh = llm.split_heads %k : tensor<?x16xf32> -> tensor<?x2x8xf32>
  %vh = llm.split_heads %v : tensor<?x16xf32> -> tensor<?x2x8xf32>
  // CHECK: llm.kv_append {{.*}} : !llm.kv<1x8xf32>, tensor<?x1x8xf32>
  %g = llm.kv_append %kv, %kh, %vh, %batch : !llm.kv<2x8xf32>, tensor<?x2x8xf32>
  // CHECK: llm.attention {{.*}} sinks {{.*}} : !llm.weight<2> {alibi = array<f32: 3.000000e+00, 4.000000e+00>, {{.*}}} : tensor<?x2x8xf32>, <1x8xf32>
  %a = llm.attention %qh, %g, %batch sinks %s : !llm.weight<4> {scale = 0.25 : f32, softcap = 0.0 : f32, window = 0 : i64, alibi = array<f32: 1.0, 2.0, 3.0, 4.0>} : tensor<?x4x8xf32>, !llm.kv<2x8xf32>
  %m = llm.merge_heads %a : tensor<?x4x8xf32> -> tensor<?x32xf32>
  // CHECK: %[[TERM:.+]] = llm.linear %{{.+}}, %{{.+}} : tensor<?x16xf32>, <16x16> -> tensor<?x16xf32>
  // CHECK-NEXT: %[[SUM:.+]] = shard.all_reduce %[[TERM]] on @ranks grid_axes = [1] : tensor<?x16xf32> -> tensor<?x16xf32>
  // CHECK-NEXT: llm.add %{{.+}}, %[[SUM]]
  %y = llm.linear %m, %wo : tensor<?x32xf32>, !llm.weight<16x32> -> tensor<?x16xf32>
  %z = llm.add %x, %y : tensor<?x16xf32>
  return %z : tensor<?x16xf32>
}
func.func @step(%batch: !llm.batch) -> tensor<?x16xf32> {
  %x = llm.fill %batch {value = 1.0 : f32} : tensor<?x16xf32>
  %kv = llm.use_state @kv : !llm.kv<2x8xf32>
  %q = llm.use_weight @q : !llm.weight<32x16>
  %k = llm.use_weight @k : !llm.weight<16x16>
  %v = llm.use_weight @v : !llm.weight<16x16>
  %o = llm.use_weight @o : !llm.weight<16x32>
  %s = llm.use_weight @s : !llm.weight<4>
  %y = call @layer(%x, %batch, %kv, %q, %k, %v, %o, %s) : (tensor<?x16xf32>, !llm.batch, !llm.kv<2x8xf32>, !llm.weight<32x16>, !llm.weight<16x16>, !llm.weight<16x16>, !llm.weight<16x32>, !llm.weight<4>) -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
