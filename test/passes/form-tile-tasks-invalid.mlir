// RUN: llmc-opt %s --llmc-form-tile-tasks --split-input-file --verify-diagnostics

// expected-error @+1 {{a matrix product reads '!llm.weight<16x64>'; run llmc-choose-weight-forms first}}
func.func private @no_form(%x: tensor<?x64xf32>, %w: !llm.weight<16x64>) -> tensor<?x16xf32> {
  %y = llm.linear %x, %w : tensor<?x64xf32>, !llm.weight<16x64> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

func.func private @returns_an_operand(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @+1 {{returns an operand, or one value twice; llm.scale makes a copy}}
  return %x : tensor<?x64xf32>
}

// -----

func.func private @layer(%x: tensor<?x64xf32>, %w: !llm.weight<16x64, f32>) -> tensor<?x16xf32> {
  %y = llm.linear %x, %w : tensor<?x64xf32>, !llm.weight<16x64, f32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
func.func @weight_is_no_symbol(%x: tensor<?x64xf32>, %w: !llm.weight<16x64, f32>) {
  // expected-error @+1 {{passes a weight that is no llm.use_weight}}
  %y = call @layer(%x, %w) : (tensor<?x64xf32>, !llm.weight<16x64, f32>) -> tensor<?x16xf32>
  return
}

// -----

// One error for each cause, however often it appears.
func.func private @no_kernel(%x: tensor<?x8xf32>, %kv: !llm.kv<1x8xf32, latent = 8>, %batch: !llm.batch) {
  %k = llm.split_heads %x : tensor<?x8xf32> -> tensor<?x1x8xf32>
  // expected-error @+1 {{no kernel for llm.kv_append of a latent cache yet}}
  %grown = llm.kv_append %kv, %k, %batch : !llm.kv<1x8xf32, latent = 8>, tensor<?x1x8xf32>
  // expected-error @+1 {{no kernel for llm.attention of a latent cache yet}}
  %o = llm.attention %k, %grown, %batch {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x1x8xf32>, !llm.kv<1x8xf32, latent = 8>
  return
}

// -----

func.func private @no_kernel_for_variants(%x: tensor<?x2x8xf32>, %t: tensor<?x8xf32>, %u: tensor<?x4xf32>, %w: !llm.weight<16>,
                                          %s: !llm.weight<2>, %p: tensor<?x3xf32>, %kv: !llm.kv<2x8xf32>,
                                          %wide: !llm.kv<2x8xf32, value = 4>, %batch: !llm.batch) {
  // expected-error @+1 {{no kernel for llm.attention with sinks yet}}
  %d = llm.attention %x, %kv, %batch sinks %s : !llm.weight<2> {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x2x8xf32>, !llm.kv<2x8xf32>
  // expected-error @+1 {{no kernel for llm.attention at selected positions yet}}
  %e = llm.attention %x, %kv, %batch selected %p : tensor<?x3xf32> {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x2x8xf32>, !llm.kv<2x8xf32>
  // expected-error @+1 {{no kernel for llm.attention in chunks yet}}
  %f = llm.attention %x, %kv, %batch {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64, chunk = 8 : i64} : tensor<?x2x8xf32>, !llm.kv<2x8xf32>
  // expected-error @+1 {{no kernel for llm.attention with alibi yet}}
  %g = llm.attention %x, %kv, %batch {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64, alibi = array<f32: 0.5, 0.25>} : tensor<?x2x8xf32>, !llm.kv<2x8xf32>
  // expected-error @+1 {{no kernel for llm.attention of a cache whose values are not as wide as its keys yet}}
  %h = llm.attention %x, %wide, %batch {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x2x8xf32>, !llm.kv<2x8xf32, value = 4>
  return
}

// -----

func.func private @taps(%x: tensor<?x64xf32>, %w: !llm.weight<64x17, f32>, %s: !llm.recurrent<1x64x16>, %batch: !llm.batch) -> tensor<?x64xf32> {
  // expected-error @+1 {{'llm.short_conv' op has 17 taps, but kernels take at most 16}}
  %y = llm.short_conv %x, %w, %s, %batch : tensor<?x64xf32>, !llm.weight<64x17, f32>, !llm.recurrent<1x64x16>
  return %y : tensor<?x64xf32>
}
