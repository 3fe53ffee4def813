// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @multiply_c1(%a: tensor<?x8xf32>, %b: tensor<?x4xf32>) {
  // expected-error@+1 {{'llm.multiply' op multiplies 'tensor<?x8xf32>' by 'tensor<?x4xf32>', expected the same type or one number per head or row}}
  %y = llm.multiply %a, %b : tensor<?x8xf32>, tensor<?x4xf32>
  return
}

// -----

func.func @multiply_c1_heads(%a: tensor<?x2x4xf32>, %b: tensor<?x4xf32>) {
  // expected-error@+1 {{'llm.multiply' op multiplies 'tensor<?x2x4xf32>' by 'tensor<?x4xf32>', expected the same type or one number per head or row}}
  %y = llm.multiply %a, %b : tensor<?x2x4xf32>, tensor<?x4xf32>
  return
}

// -----

func.func @multiply_c1_merged(%a: tensor<?x2x4xf32>, %b: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.multiply' op multiplies 'tensor<?x2x4xf32>' by 'tensor<?x8xf32>', expected the same type or one number per head or row}}
  %y = llm.multiply %a, %b : tensor<?x2x4xf32>, tensor<?x8xf32>
  return
}
