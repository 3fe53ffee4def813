// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @fused_linear_c1(%x: tensor<?x8xf32>, %w: !llm.weight<5x8>) {
  // expected-error@+1 {{'llm.fused_linear' op has a weight of [5, 8], expected [6, 8]: result by input channels}}
  %y:2 = llm.fused_linear %x, %w : tensor<?x8xf32>, !llm.weight<5x8> -> tensor<?x4xf32>, tensor<?x2xf32>
  return
}

// -----

func.func @fused_linear_c2(%x: tensor<?x8xf32>, %w: !llm.weight<6x8>, %b: !llm.weight<4>) {
  // expected-error@+1 {{'llm.fused_linear' op has a bias of [4], expected [6]}}
  %y:2 = llm.fused_linear %x, %w bias %b : tensor<?x8xf32>, !llm.weight<6x8>, !llm.weight<4> -> tensor<?x4xf32>, tensor<?x2xf32>
  return
}

// -----

func.func @fused_linear_c3(%x: tensor<?x8xf32>, %w: !llm.weight<6x8>) {
  // expected-error@+1 {{'llm.fused_linear' op has 1 result, expected at least 2; use llm.linear}}
  %y = llm.fused_linear %x, %w : tensor<?x8xf32>, !llm.weight<6x8> -> tensor<?x6xf32>
  return
}
