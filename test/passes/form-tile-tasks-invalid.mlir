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

func.func private @taps(%x: tensor<?x64xf32>, %w: !llm.weight<64x17, f32>, %s: !llm.recurrent<1x64x16>, %batch: !llm.batch) -> tensor<?x64xf32> {
  // expected-error @+1 {{'llm.short_conv' op has 17 taps, but kernels take at most 16}}
  %y = llm.short_conv %x, %w, %s, %batch : tensor<?x64xf32>, !llm.weight<64x17, f32>, !llm.recurrent<1x64x16>
  return %y : tensor<?x64xf32>
}

// -----

func.func private @few_channels(%x: tensor<?x8xf32>, %s: !llm.recurrent<1x3x8>, %batch: !llm.batch) -> tensor<?x8xf32> {
  // expected-error @+1 {{no kernel for llm.window_pool of fewer than 16 channels yet}}
  %y = llm.window_pool %x, %x, %s, %batch {window = 4 : i64} : tensor<?x8xf32>, !llm.recurrent<1x3x8> -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

shard.grid @ranks(shape = 1x2)

func.func private @other_reduction(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @+1 {{no kernel for shard.all_reduce other than sums over the ranks of a group yet}}
  %y = shard.all_reduce %x on @ranks grid_axes = [1] reduction = max : tensor<?x64xf32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

func.func private @large_matrix(%x: tensor<?x17x17xf32>) -> tensor<?x17x17xf32> {
  // expected-error @+1 {{no kernel for llm.sinkhorn of 17 x 17 yet}}
  %y = llm.sinkhorn %x {iterations = 20 : i64, eps = 1.0e-6 : f32} : tensor<?x17x17xf32>
  return %y : tensor<?x17x17xf32>
}

// -----

shard.grid @ranks(shape = 1x2)

func.func private @other_exchange(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @+1 {{no kernel for shard.shift yet}}
  %y = shard.shift %x on @ranks grid_axes = [1] shift_axis = 1 offset = 1 rotate : tensor<?x64xf32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
