// RUN: llmc-opt %s --llmc-shard-model="tensor=4 rank=3" | FileCheck %s

// Three channels inside for four ranks: the last one adds nothing, and holds no weight. A bias is added once, to the sum.
// CHECK-NOT: llm.weight @up
// CHECK-NOT: llm.weight @down
// CHECK: llm.weight @bias : !llm.weight<16>
llm.weight @up : !llm.weight<3x16> from [{tensor = "up"}]
llm.weight @down : !llm.weight<16x3> from [{tensor = "down"}]
llm.weight @bias : !llm.weight<16> from [{tensor = "bias"}]
// CHECK-LABEL: func.func private @layer
func.func private @layer(%x: tensor<?x16xf32>, %up: !llm.weight<3x16>, %down: !llm.weight<16x3>, %bias: !llm.weight<16>) -> tensor<?x16xf32> {
  // CHECK-NEXT: %[[ZERO:.+]] = llm.fill %{{.+}} {value = 0.000000e+00 : f32} : tensor<?x16xf32>
  // CHECK-NEXT: %[[SUM:.+]] = shard.all_reduce %[[ZERO]]
  // CHECK-NEXT: %[[Y:.+]] = llm.affine %[[SUM]] bias %{{.+}}
  // CHECK-NEXT: return %[[Y]]
  %h = llm.linear %x, %up : tensor<?x16xf32>, !llm.weight<3x16> -> tensor<?x3xf32>
  %a = llm.activation silu %h : tensor<?x3xf32>
  %y = llm.linear %a, %down bias %bias : tensor<?x3xf32>, !llm.weight<16x3>, !llm.weight<16> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
func.func @step(%batch: !llm.batch) -> tensor<?x16xf32> {
  %x = llm.fill %batch {value = 1.0 : f32} : tensor<?x16xf32>
  %u = llm.use_weight @up : !llm.weight<3x16>
  %d = llm.use_weight @down : !llm.weight<16x3>
  %b = llm.use_weight @bias : !llm.weight<16>
  %y = call @layer(%x, %u, %d, %b) : (tensor<?x16xf32>, !llm.weight<3x16>, !llm.weight<16x3>, !llm.weight<16>) -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
