// RUN: llmc-opt %s --llmc-shard-model="tensor=2 rank=1" | FileCheck %s

// A norm over the channels of all heads reads whole rows: parts are gathered before it, and sliced behind it.
llm.weight @q : !llm.weight<48x16> from [{tensor = "q"}]
llm.weight @k : !llm.weight<48x16> from [{tensor = "k"}]
llm.weight @g : !llm.weight<48> from [{tensor = "g"}]
llm.state @kv : !llm.kv<3x16xf32>
// CHECK-DAG: llm.weight @q : !llm.weight<16x16>
// CHECK-DAG: llm.weight @g : !llm.weight<48> from [{tensor = "g"}]{{$}}
// CHECK-LABEL: func.func private @layer
func.func private @layer(%x: tensor<?x16xf32>, %batch: !llm.batch, %kv: !llm.kv<3x16xf32>, %wq: !llm.weight<48x16>, %wk: !llm.weight<48x16>,
                         %g: !llm.weight<48>) -> tensor<?x48xf32> {
  // CHECK: %[[Q:.+]] = llm.linear %{{.+}}, %{{.+}} : tensor<?x16xf32>, <16x16> -> tensor<?x16xf32>
  // CHECK-NEXT: %[[WHOLE:.+]] = llm.all_gather %{{.+}}, %[[Q]] : tensor<?x16xf32> {segments = [array<i64: 0, 32, 32, 48>]} -> tensor<?x48xf32>
  // CHECK-NEXT: %[[N:.+]] = llm.rms_norm %[[WHOLE]]
  // CHECK-NEXT: llm.slice %[[N]] at 32 : tensor<?x48xf32> -> tensor<?x16xf32>
  %q = llm.linear %x, %wq : tensor<?x16xf32>, !llm.weight<48x16> -> tensor<?x48xf32>
  %n = llm.rms_norm %q, %g {eps = 1.0e-5 : f32} : tensor<?x48xf32>, !llm.weight<48>
  %qh = llm.split_heads %n : tensor<?x48xf32> -> tensor<?x3x16xf32>
  %k = llm.linear %x, %wk : tensor<?x16xf32>, !llm.weight<48x16> -> tensor<?x48xf32>
  %kh = llm.split_heads %k : tensor<?x48xf32> -> tensor<?x3x16xf32>
  %a = llm.kv_append %kv, %kh, %kh, %batch : !llm.kv<3x16xf32>, tensor<?x3x16xf32>
  %o = llm.attention %qh, %a, %batch {scale = 0.25 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x3x16xf32>, !llm.kv<3x16xf32>
  // The result leaves the layer, and is whole again.
  // CHECK: llm.all_gather
  // CHECK-NEXT: return
  %m = llm.merge_heads %o : tensor<?x3x16xf32> -> tensor<?x48xf32>
  return %m : tensor<?x48xf32>
}
func.func @step(%batch: !llm.batch) -> tensor<?x48xf32> {
  %x = llm.fill %batch {value = 1.0 : f32} : tensor<?x16xf32>
  %kv = llm.use_state @kv : !llm.kv<3x16xf32>
  %q = llm.use_weight @q : !llm.weight<48x16>
  %k = llm.use_weight @k : !llm.weight<48x16>
  %g = llm.use_weight @g : !llm.weight<48>
  %y = call @layer(%x, %batch, %kv, %q, %k, %g) : (tensor<?x16xf32>, !llm.batch, !llm.kv<3x16xf32>, !llm.weight<48x16>, !llm.weight<48x16>, !llm.weight<48>) -> tensor<?x48xf32>
  return %y : tensor<?x48xf32>
}
