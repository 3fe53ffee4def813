// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @clamp_c1(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.clamp' op has bounds 1.000000e+00 and -1.000000e+00, expected low <= high}}
  %y = llm.clamp %x {low = 1.0 : f32, high = -1.0 : f32} : tensor<?x8xf32>
  return
}

// -----

func.func @clamp_c1_nan(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.clamp' op has bounds nan and 1.000000e+00, expected low <= high}}
  %y = llm.clamp %x {low = 0x7FC00000 : f32, high = 1.0 : f32} : tensor<?x8xf32>
  return
}
