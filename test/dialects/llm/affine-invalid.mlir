// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @affine_c1(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.affine' op has neither weight nor bias}}
  %y = llm.affine %x : tensor<?x8xf32>
  return
}

// -----

func.func @affine_c2(%x: tensor<?x2x4xf32>, %w: !llm.weight<2>) {
  // expected-error@+1 {{'llm.affine' op has a weight or bias of [2] for 'tensor<?x2x4xf32>', expected a number per channel}}
  %y = llm.affine %x gain %w : tensor<?x2x4xf32> gain !llm.weight<2>
  return
}

// -----

func.func @affine_c2_heads(%x: tensor<?x2x4xf32>, %w: !llm.weight<2>, %b: !llm.weight<4>) {
  // expected-error@+1 {{'llm.affine' op has a weight or bias of [4] for 'tensor<?x2x4xf32>', expected a number per head}}
  %y = llm.affine %x gain %w bias %b {per_head} : tensor<?x2x4xf32> gain !llm.weight<2> bias !llm.weight<4>
  return
}

// -----

func.func @affine_c2_matrix(%x: tensor<?x8xf32>, %w: !llm.weight<1x8>) {
  // expected-error@+1 {{'llm.affine' op has a weight or bias of [1, 8] for 'tensor<?x8xf32>', expected a number per channel}}
  %y = llm.affine %x gain %w : tensor<?x8xf32> gain !llm.weight<1x8>
  return
}

// -----

func.func @affine_c3(%x: tensor<?x8xf32>, %w: !llm.weight<8>) {
  // expected-error@+1 {{'llm.affine' op is per head, but 'tensor<?x8xf32>' has no heads}}
  %y = llm.affine %x gain %w {per_head} : tensor<?x8xf32> gain !llm.weight<8>
  return
}
