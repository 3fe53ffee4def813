// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @rope_table_c1(%batch: !llm.batch) {
  // expected-error@+1 {{'llm.rope_table' op has no frequencies}}
  %r = llm.rope_table %batch {frequencies = array<f32>, magnitude = 1.0 : f32} : tensor<?x4xf32>
  return
}

// -----

func.func @rope_table_c2(%batch: !llm.batch) {
  // expected-error@+1 {{'llm.rope_table' op has 4 channels, expected 2: cosines and sines of 1 frequencies}}
  %r = llm.rope_table %batch {frequencies = array<f32: 1.0>, magnitude = 1.0 : f32} : tensor<?x4xf32>
  return
}

// -----

func.func @rope_table_c3(%batch: !llm.batch) {
  // expected-error@+1 {{'llm.rope_table' op has step 0, expected at least 1 position}}
  %r = llm.rope_table %batch {frequencies = array<f32: 1.0>, magnitude = 1.0 : f32, step = 0 : i64} : tensor<?x2xf32>
  return
}
