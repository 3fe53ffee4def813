// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @rms_norm_c1(%x: tensor<?x2x4xf32>, %w: !llm.weight<3>) {
  // expected-error@+1 {{'llm.rms_norm' op has a weight of [3], expected [4], or [8] for heads with their own}}
  %y = llm.rms_norm %x, %w {eps = 1.0e-6 : f32} : tensor<?x2x4xf32>, !llm.weight<3>
  return
}

// -----

func.func @rms_norm_c2(%x: tensor<?x8xf32>, %w: !llm.weight<8>) {
  // expected-error@+1 {{'llm.rms_norm' op has eps 0.000000e+00, expected more than 0}}
  %y = llm.rms_norm %x, %w {eps = 0.0 : f32} : tensor<?x8xf32>, !llm.weight<8>
  return
}

// -----

func.func @rms_norm_c2_nan(%x: tensor<?x8xf32>, %w: !llm.weight<8>) {
  // expected-error@+1 {{'llm.rms_norm' op has eps nan, expected more than 0}}
  %y = llm.rms_norm %x, %w {eps = 0x7FC00000 : f32} : tensor<?x8xf32>, !llm.weight<8>
  return
}
