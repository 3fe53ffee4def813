// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @head_linear_c1(%x: tensor<?x2x8xf32>, %w: !llm.weight<3x4x8>) {
  // expected-error@+1 {{'llm.head_linear' op has a weight of [3, 4, 8], expected [2, 4, 8]}}
  %y = llm.head_linear %x, %w : tensor<?x2x8xf32>, !llm.weight<3x4x8> -> tensor<?x2x4xf32>
  return
}

// -----

func.func @head_linear_c1_result(%x: tensor<?x2x8xf32>, %w: !llm.weight<2x4x8>) {
  // expected-error@+1 {{'llm.head_linear' op makes 'tensor<?x3x4xf32>' of 'tensor<?x2x8xf32>', expected as many heads}}
  %y = llm.head_linear %x, %w : tensor<?x2x8xf32>, !llm.weight<2x4x8> -> tensor<?x3x4xf32>
  return
}
