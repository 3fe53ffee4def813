// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @linear_c1(%x: tensor<?x8xf32>, %w: !llm.weight<4x6>) {
  // expected-error@+1 {{'llm.linear' op has a weight of [4, 6], expected [4, 8]: result by input channels}}
  %y = llm.linear %x, %w : tensor<?x8xf32>, !llm.weight<4x6> -> tensor<?x4xf32>
  return
}

// -----

func.func @linear_c1_vector(%x: tensor<?x8xf32>, %w: !llm.weight<4>) {
  // expected-error@+1 {{'llm.linear' op has a weight of [4], expected [4, 8]: result by input channels}}
  %y = llm.linear %x, %w : tensor<?x8xf32>, !llm.weight<4> -> tensor<?x4xf32>
  return
}

// -----

func.func @linear_c2(%x: tensor<?x8xf32>, %w: !llm.weight<4x8>, %b: !llm.weight<8>) {
  // expected-error@+1 {{'llm.linear' op has a bias of [8], expected [4]}}
  %y = llm.linear %x, %w bias %b : tensor<?x8xf32>, !llm.weight<4x8>, !llm.weight<8> -> tensor<?x4xf32>
  return
}
