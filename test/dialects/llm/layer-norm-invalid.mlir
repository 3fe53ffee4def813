// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @layer_norm_c1(%x: tensor<?x8xf32>, %w: !llm.weight<4>) {
  // expected-error@+1 {{'llm.layer_norm' op has a weight of [4], expected [8]}}
  %y = llm.layer_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x8xf32>, !llm.weight<4>
  return
}

// -----

func.func @layer_norm_c1_bias(%x: tensor<?x2x4xf32>, %w: !llm.weight<4>, %b: !llm.weight<2>) {
  // expected-error@+1 {{'llm.layer_norm' op has a bias of [2], expected [4], or [8] for heads with their own}}
  %y = llm.layer_norm %x, %w bias %b {eps = 1.0e-5 : f32} : tensor<?x2x4xf32>, !llm.weight<4>, !llm.weight<2>
  return
}

// -----

func.func @layer_norm_c2(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.layer_norm' op has eps 0.000000e+00, expected more than 0}}
  %y = llm.layer_norm %x {eps = 0.0 : f32} : tensor<?x8xf32>
  return
}

// -----

func.func @layer_norm_c3(%x: tensor<?x8xf32>, %b: !llm.weight<8>) {
  // expected-error@+1 {{'llm.layer_norm' op has a bias without a weight}}
  %y = "llm.layer_norm"(%x, %b) <{eps = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 0, 1>}> : (tensor<?x8xf32>, !llm.weight<8>) -> tensor<?x8xf32>
  return
}
