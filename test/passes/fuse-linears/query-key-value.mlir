// RUN: llmc-opt %s --llmc-fuse-linears | FileCheck %s

// Two layers of one kind: the kind changes once, the symbols of both calls are joined under their common prefix.
// CHECK-NOT: llm.weight @layers.0.attention.query :
// CHECK: llm.weight @"layers.0.attention.query+key+value" : !llm.weight<64x48> from [{tensor = "q0"}, {tensor = "k0"}, {tensor = "v0"}]
// CHECK: llm.weight @"layers.1.attention.query+key+value" : !llm.weight<64x48> from [{tensor = "q1"}, {tensor = "k1"}, {tensor = "v1"}]
llm.weight @layers.0.attention.query : !llm.weight<32x48> from [{tensor = "q0"}]
llm.weight @layers.0.attention.key : !llm.weight<16x48> from [{tensor = "k0"}]
llm.weight @layers.0.attention.value : !llm.weight<16x48> from [{tensor = "v0"}]
llm.weight @layers.1.attention.query : !llm.weight<32x48> from [{tensor = "q1"}]
llm.weight @layers.1.attention.key : !llm.weight<16x48> from [{tensor = "k1"}]
llm.weight @layers.1.attention.value : !llm.weight<16x48> from [{tensor = "v1"}]

// Grouped heads: query is wider than key and value, results keep their widths.
// CHECK-LABEL: func.func private @layer
// CHECK-SAME: (%[[X:.+]]: tensor<?x48xf32>, %[[W:.+]]: !llm.weight<64x48>)
// CHECK-NEXT: %[[Y:.+]]:3 = llm.fused_linear %[[X]], %[[W]] : {{.+}} -> tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>
// CHECK-NEXT: return %[[Y]]#0, %[[Y]]#1, %[[Y]]#2
func.func private @layer(%x: tensor<?x48xf32>, %wq: !llm.weight<32x48>, %wk: !llm.weight<16x48>, %wv: !llm.weight<16x48>)
    -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>) {
  %q = llm.linear %x, %wq : tensor<?x48xf32>, !llm.weight<32x48> -> tensor<?x32xf32>
  %k = llm.linear %x, %wk : tensor<?x48xf32>, !llm.weight<16x48> -> tensor<?x16xf32>
  %v = llm.linear %x, %wv : tensor<?x48xf32>, !llm.weight<16x48> -> tensor<?x16xf32>
  return %q, %k, %v : tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>
}

// CHECK-LABEL: func.func @step
// CHECK-DAG: %[[W0:.+]] = llm.use_weight @"layers.0.attention.query+key+value"
// CHECK-DAG: %[[W1:.+]] = llm.use_weight @"layers.1.attention.query+key+value"
// CHECK-DAG: call @layer(%{{.+}}, %[[W0]])
// CHECK-DAG: call @layer(%{{.+}}, %[[W1]])
func.func @step(%x: tensor<?x48xf32>) {
  %q0 = llm.use_weight @layers.0.attention.query : !llm.weight<32x48>
  %k0 = llm.use_weight @layers.0.attention.key : !llm.weight<16x48>
  %v0 = llm.use_weight @layers.0.attention.value : !llm.weight<16x48>
  %q1 = llm.use_weight @layers.1.attention.query : !llm.weight<32x48>
  %k1 = llm.use_weight @layers.1.attention.key : !llm.weight<16x48>
  %v1 = llm.use_weight @layers.1.attention.value : !llm.weight<16x48>
  %a:3 = call @layer(%x, %q0, %k0, %v0) : (tensor<?x48xf32>, !llm.weight<32x48>, !llm.weight<16x48>, !llm.weight<16x48>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  %b:3 = call @layer(%x, %q1, %k1, %v1) : (tensor<?x48xf32>, !llm.weight<32x48>, !llm.weight<16x48>, !llm.weight<16x48>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  return
}
