// RUN: llmc-opt %s --llmc-fuse-linears | FileCheck %s

// Gate and up may have any width, here the prime 37: task formation interleaves them, and pads.
// CHECK: llm.weight @"mlp.gate+up" : !llm.weight<74x16> from [{tensor = "gate"}, {tensor = "up"}]
llm.weight @mlp.gate : !llm.weight<37x16> from [{tensor = "gate"}]
llm.weight @mlp.up : !llm.weight<37x16> from [{tensor = "up"}]

// CHECK-LABEL: func.func private @prime_width
// CHECK-NEXT: %[[Y:.+]]:2 = llm.fused_linear
// CHECK-NEXT: llm.gated_activation silu %[[Y]]#0, %[[Y]]#1
func.func private @prime_width(%x: tensor<?x16xf32>, %gate: !llm.weight<37x16>, %up: !llm.weight<37x16>) -> tensor<?x37xf32> {
  // Up comes first in the text: the order of the halves is that of the activation's operands.
  %u = llm.linear %x, %up : tensor<?x16xf32>, !llm.weight<37x16> -> tensor<?x37xf32>
  %g = llm.linear %x, %gate : tensor<?x16xf32>, !llm.weight<37x16> -> tensor<?x37xf32>
  %y = llm.gated_activation silu %g, %u : tensor<?x37xf32>
  return %y : tensor<?x37xf32>
}

func.func @step(%x: tensor<?x16xf32>) {
  %gate = llm.use_weight @mlp.gate : !llm.weight<37x16>
  %up = llm.use_weight @mlp.up : !llm.weight<37x16>
  %y = call @prime_width(%x, %gate, %up) : (tensor<?x16xf32>, !llm.weight<37x16>, !llm.weight<37x16>) -> tensor<?x37xf32>
  return
}
