// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @expert_linear_c1(%x: tensor<?x8xf32>, %w: !llm.weight<4x8>, %e: tensor<?x2xf32>) {
  // expected-error@+1 {{'llm.expert_linear' op has a weight of [4, 8], expected [E, 4, 8]}}
  %y = llm.expert_linear %x, %w, %e : tensor<?x8xf32>, !llm.weight<4x8>, tensor<?x2xf32> -> tensor<?x2x4xf32>
  return
}

// -----

func.func @expert_linear_c1_depth(%x: tensor<?x8xf32>, %w: !llm.weight<16x4x6>, %e: tensor<?x2xf32>) {
  // expected-error@+1 {{'llm.expert_linear' op has a weight of [16, 4, 6], expected [E, 4, 8]}}
  %y = llm.expert_linear %x, %w, %e : tensor<?x8xf32>, !llm.weight<16x4x6>, tensor<?x2xf32> -> tensor<?x2x4xf32>
  return
}

// -----

func.func @expert_linear_c2(%x: tensor<?x8xf32>, %w: !llm.weight<16x4x8>, %e: tensor<?x2xf32>) {
  // expected-error@+1 {{'llm.expert_linear' op makes 'tensor<?x3x4xf32>' of 'tensor<?x8xf32>' for 2 experts a row}}
  %y = llm.expert_linear %x, %w, %e : tensor<?x8xf32>, !llm.weight<16x4x8>, tensor<?x2xf32> -> tensor<?x3x4xf32>
  return
}

// -----

func.func @expert_linear_c2_input(%x: tensor<?x3x8xf32>, %w: !llm.weight<16x4x8>, %e: tensor<?x2xf32>) {
  // expected-error@+1 {{'llm.expert_linear' op makes 'tensor<?x2x4xf32>' of 'tensor<?x3x8xf32>' for 2 experts a row}}
  %y = llm.expert_linear %x, %w, %e : tensor<?x3x8xf32>, !llm.weight<16x4x8>, tensor<?x2xf32> -> tensor<?x2x4xf32>
  return
}

// -----

func.func @expert_linear_c3(%x: tensor<?x8xf32>, %w: !llm.weight<16x4x8>, %e: tensor<?x2xf32>, %b: !llm.weight<4>) {
  // expected-error@+1 {{'llm.expert_linear' op has a bias of [4], expected [16, 4]}}
  %y = llm.expert_linear %x, %w, %e bias %b : tensor<?x8xf32>, !llm.weight<16x4x8>, tensor<?x2xf32>, !llm.weight<4> -> tensor<?x2x4xf32>
  return
}
