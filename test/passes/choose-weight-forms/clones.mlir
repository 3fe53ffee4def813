// RUN: llmc-opt %s --llmc-choose-weight-forms | FileCheck %s

// Three layers of one kind, the second stored otherwise: two functions, not three.
llm.weight @layers.0.w : !llm.weight<16x64> from [{tensor = "a", type = "Q4_0"}]
llm.weight @layers.1.w : !llm.weight<16x64> from [{tensor = "b", type = "Q8_0"}]
llm.weight @layers.2.w : !llm.weight<16x64> from [{tensor = "c", type = "Q4_0"}]

// CHECK: func.func private @layer(%{{.+}}: tensor<?x64xf32>, %{{.+}}: !llm.weight<16x64, i4>)
// CHECK: func.func private @[[OTHER:layer.+]](%{{.+}}: tensor<?x64xf32>, %{{.+}}: !llm.weight<16x64, i8>)
// CHECK-NOT: func.func private
func.func private @layer(%x: tensor<?x64xf32>, %w: !llm.weight<16x64>) -> tensor<?x16xf32> {
  %y = llm.linear %x, %w : tensor<?x64xf32>, !llm.weight<16x64> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
// CHECK: func.func @step
// CHECK: call @layer(
// CHECK: call @[[OTHER]](
// CHECK: call @layer(
func.func @step(%x: tensor<?x64xf32>) {
  %w0 = llm.use_weight @layers.0.w : !llm.weight<16x64>
  %w1 = llm.use_weight @layers.1.w : !llm.weight<16x64>
  %w2 = llm.use_weight @layers.2.w : !llm.weight<16x64>
  %y0 = call @layer(%x, %w0) : (tensor<?x64xf32>, !llm.weight<16x64>) -> tensor<?x16xf32>
  %y1 = call @layer(%x, %w1) : (tensor<?x64xf32>, !llm.weight<16x64>) -> tensor<?x16xf32>
  %y2 = call @layer(%x, %w2) : (tensor<?x64xf32>, !llm.weight<16x64>) -> tensor<?x16xf32>
  return
}
