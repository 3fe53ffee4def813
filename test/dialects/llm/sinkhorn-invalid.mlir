// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @sinkhorn_c1(%x: tensor<?x4x3xf32>) {
  // expected-error@+1 {{'llm.sinkhorn' op takes 'tensor<?x4x3xf32>', expected a square matrix for every row}}
  %y = llm.sinkhorn %x {iterations = 20 : i64, eps = 1.0e-6 : f32} : tensor<?x4x3xf32>
  return
}

// -----

func.func @sinkhorn_c2(%x: tensor<?x4x4xf32>) {
  // expected-error@+1 {{'llm.sinkhorn' op has 0 iterations, expected at least 1}}
  %y = llm.sinkhorn %x {iterations = 0 : i64, eps = 1.0e-6 : f32} : tensor<?x4x4xf32>
  return
}

// -----

func.func @sinkhorn_c3(%x: tensor<?x4x4xf32>) {
  // expected-error@+1 {{'llm.sinkhorn' op has eps 0}}
  %y = llm.sinkhorn %x {iterations = 20 : i64, eps = 0.0 : f32} : tensor<?x4x4xf32>
  return
}
