// RUN: llmc-opt %s --llmc-shard-model="tensor=2 rank=1" | FileCheck %s

// One convolution over queries, keys and values: of each kind the rank has the channels of its heads, one kind behind the
// other. Its part of the recurrent state is that of its heads.
// CHECK-DAG: llm.weight @w : !llm.weight<48x16> {{.*}} {of = array<i64: 96, 16>, parts = [array<i64: [[P:[0-9]]], 0, 32, [[P]], 32, 32, [[P]], 64, 32>, array<i64: -1, 0, 16>]}
// CHECK-DAG: llm.weight @c : !llm.weight<48x4>
// CHECK-DAG: llm.state @conv : !llm.recurrent<1x48x3>
// CHECK-DAG: llm.state @memory : !llm.recurrent<1x16x16>
llm.weight @w : !llm.weight<96x16> from [{tensor = "w"}]
llm.weight @c : !llm.weight<96x4> from [{tensor = "c"}]
llm.state @conv : !llm.recurrent<1x96x3>
llm.state @memory : !llm.recurrent<2x16x16>
// CHECK-LABEL: func.func private @layer
func.func private @layer(%x: tensor<?x16xf32>, %batch: !llm.batch, %w: !llm.weight<96x16>, %c: !llm.weight<96x4>, %conv: !llm.recurrent<1x96x3>,
                         %memory: !llm.recurrent<2x16x16>) -> tensor<?x32xf32> {
  %y = llm.linear %x, %w : tensor<?x16xf32>, !llm.weight<96x16> -> tensor<?x96xf32>
  // CHECK: %[[C:.+]] = llm.short_conv {{.*}} : tensor<?x48xf32>, <48x4>, <1x48x3>
  %z = llm.short_conv %y, %c, %conv, %batch : tensor<?x96xf32>, !llm.weight<96x4>, !llm.recurrent<1x96x3>
  // CHECK-NEXT: llm.slice %[[C]] at 0 : tensor<?x48xf32> -> tensor<?x16xf32>
  // CHECK: llm.slice %[[C]] at 16 : tensor<?x48xf32> -> tensor<?x16xf32>
  // CHECK: llm.slice %[[C]] at 32 : tensor<?x48xf32> -> tensor<?x16xf32>
  %q = llm.slice %z at 0 : tensor<?x96xf32> -> tensor<?x32xf32>
  %qh = llm.split_heads %q : tensor<?x32xf32> -> tensor<?x2x16xf32>
  %k = llm.slice %z at 32 : tensor<?x96xf32> -> tensor<?x32xf32>
  %kh = llm.split_heads %k : tensor<?x32xf32> -> tensor<?x2x16xf32>
  %v = llm.slice %z at 64 : tensor<?x96xf32> -> tensor<?x32xf32>
  %vh = llm.split_heads %v : tensor<?x32xf32> -> tensor<?x2x16xf32>
  // CHECK: llm.linear_attention {{.*}} : tensor<?x1x16xf32>, tensor<?x1x16xf32>, <1x16x16>
  %o = llm.linear_attention %qh, %kh, %vh, %memory, %batch : tensor<?x2x16xf32>, tensor<?x2x16xf32>, !llm.recurrent<2x16x16>
  %m = llm.merge_heads %o : tensor<?x2x16xf32> -> tensor<?x32xf32>
  return %m : tensor<?x32xf32>
}
func.func @step(%batch: !llm.batch) -> tensor<?x32xf32> {
  %x = llm.fill %batch {value = 1.0 : f32} : tensor<?x16xf32>
  %w = llm.use_weight @w : !llm.weight<96x16>
  %c = llm.use_weight @c : !llm.weight<96x4>
  %conv = llm.use_state @conv : !llm.recurrent<1x96x3>
  %memory = llm.use_state @memory : !llm.recurrent<2x16x16>
  %y = call @layer(%x, %batch, %w, %c, %conv, %memory) : (tensor<?x16xf32>, !llm.batch, !llm.weight<96x16>, !llm.weight<96x4>, !llm.recurrent<1x96x3>, !llm.recurrent<2x16x16>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
