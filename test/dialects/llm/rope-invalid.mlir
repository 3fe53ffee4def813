// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @rope_c1(%x: tensor<?x8xf32>, %r: tensor<?x4xf32>) {
  // expected-error@+1 {{'llm.rope' op has 'tensor<?x8xf32>', expected 3 dimensions: rows, heads and channels}}
  %y = llm.rope %x, %r : tensor<?x8xf32>, tensor<?x4xf32>
  return
}

// -----

func.func @rope_c2(%x: tensor<?x2x4xf32>, %r: tensor<?x6xf32>) {
  // expected-error@+1 {{'llm.rope' op turns 6 channels from 0 on, but a head has 4}}
  %y = llm.rope %x, %r : tensor<?x2x4xf32>, tensor<?x6xf32>
  return
}

// -----

func.func @rope_c2_first(%x: tensor<?x2x4xf32>, %r: tensor<?x2xf32>) {
  // expected-error@+1 {{'llm.rope' op turns 2 channels from 3 on, but a head has 4}}
  %y = llm.rope %x, %r {first = 3 : i64} : tensor<?x2x4xf32>, tensor<?x2xf32>
  return
}

// -----

func.func @rope_c3(%x: tensor<?x2x4xf32>, %r: tensor<?x3xf32>) {
  // expected-error@+1 {{'llm.rope' op has a table of 3 channels, expected as many cosines as sines}}
  %y = llm.rope %x, %r : tensor<?x2x4xf32>, tensor<?x3xf32>
  return
}
