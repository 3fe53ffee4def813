// RUN: llmc-opt %s --llmc-fuse-linears | FileCheck %s

// Biases are joined in the order of the rows.
// CHECK: llm.weight @"q+k" : !llm.weight<48x16>
// CHECK: llm.weight @"q.bias+k.bias" : !llm.weight<48> from [{tensor = "qb"}, {tensor = "kb"}]
llm.weight @q : !llm.weight<32x16> from [{tensor = "q"}]
llm.weight @k : !llm.weight<16x16> from [{tensor = "k"}]
llm.weight @q.bias : !llm.weight<32> from [{tensor = "qb"}]
llm.weight @k.bias : !llm.weight<16> from [{tensor = "kb"}]

// CHECK-LABEL: func.func private @all_have_one
// CHECK-SAME: %[[W:[^:]+]]: !llm.weight<48x16>, %[[B:[^:]+]]: !llm.weight<48>
// CHECK-NEXT: llm.fused_linear %{{.+}}, %[[W]] bias %[[B]]
func.func private @all_have_one(%x: tensor<?x16xf32>, %wq: !llm.weight<32x16>, %wk: !llm.weight<16x16>, %bq: !llm.weight<32>,
                                %bk: !llm.weight<16>) -> (tensor<?x32xf32>, tensor<?x16xf32>) {
  %q = llm.linear %x, %wq bias %bq : tensor<?x16xf32>, !llm.weight<32x16>, !llm.weight<32> -> tensor<?x32xf32>
  %k = llm.linear %x, %wk bias %bk : tensor<?x16xf32>, !llm.weight<16x16>, !llm.weight<16> -> tensor<?x16xf32>
  return %q, %k : tensor<?x32xf32>, tensor<?x16xf32>
}

func.func @step(%x: tensor<?x16xf32>) {
  %q = llm.use_weight @q : !llm.weight<32x16>
  %k = llm.use_weight @k : !llm.weight<16x16>
  %qb = llm.use_weight @q.bias : !llm.weight<32>
  %kb = llm.use_weight @k.bias : !llm.weight<16>
  %y:2 = call @all_have_one(%x, %q, %k, %qb, %kb) : (tensor<?x16xf32>, !llm.weight<32x16>, !llm.weight<16x16>, !llm.weight<32>, !llm.weight<16>) -> (tensor<?x32xf32>, tensor<?x16xf32>)
  return
}
