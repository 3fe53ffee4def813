// RUN: llmc-opt %s --verify-diagnostics --split-input-file

tile.task @convolve_c1 rows(%row, %column of 1) (%r: !tile.rows<64>, %w: !llm.weight<64x4, bf16, tile = 64, panel = 64>, %state: !llm.recurrent<1x64x3>, %batch: !llm.batch) {
  %x = tile.load %r[%row, %column] : !tile.rows<64> -> tensor<64xf32>
  // expected-error@+1 {{'tile.convolve' op convolves 'tensor<64xf32>' with '!llm.weight<64x4, bf16, tile = 64, panel = 64>', expected a weight packed as f32 in tiles of 64}}
  %y = tile.convolve %x, %w[%column], %state, %batch[%row] : tensor<64xf32>, !llm.weight<64x4, bf16, tile = 64, panel = 64>, !llm.recurrent<1x64x3>
}

// -----

tile.task @convolve_c2 rows(%row, %column of 1) (%r: !tile.rows<64>, %w: !llm.weight<64x4, f32, tile = 64, panel = 64>, %state: !llm.recurrent<1x64x4>, %batch: !llm.batch) {
  %x = tile.load %r[%row, %column] : !tile.rows<64> -> tensor<64xf32>
  // expected-error@+1 {{'tile.convolve' op keeps '!llm.recurrent<1x64x4>', expected 1 x 64 x 3, and fewer than 16 inputs}}
  %y = tile.convolve %x, %w[%column], %state, %batch[%row] : tensor<64xf32>, !llm.weight<64x4, f32, tile = 64, panel = 64>, !llm.recurrent<1x64x4>
}

// -----

// 17 taps: sixteen inputs would lie in lanes of values.
tile.task @convolve_c2_many_taps rows(%row, %column of 1) (%r: !tile.rows<64>, %w: !llm.weight<64x17, f32, tile = 64, panel = 64>, %state: !llm.recurrent<1x64x16>, %batch: !llm.batch) {
  %x = tile.load %r[%row, %column] : !tile.rows<64> -> tensor<64xf32>
  // expected-error@+1 {{'tile.convolve' op keeps '!llm.recurrent<1x64x16>', expected 1 x 64 x 16, and fewer than 16 inputs}}
  %y = tile.convolve %x, %w[%column], %state, %batch[%row] : tensor<64xf32>, !llm.weight<64x17, f32, tile = 64, panel = 64>, !llm.recurrent<1x64x16>
}

// -----

tile.task @convolve_c3 rows(%row, %column of 2) (%r: !tile.rows<64>, %w: !llm.weight<64x4, f32, tile = 32, panel = 32>, %state: !llm.recurrent<1x64x3>, %batch: !llm.batch) {
  %x = tile.load %r[%row, %column] : !tile.rows<64> -> tensor<32xf32>
  // expected-error@+1 {{'tile.convolve' op has tiles of 32 channels, but the state has blocks of 64}}
  %y = tile.convolve %x, %w[%column], %state, %batch[%row] : tensor<32xf32>, !llm.weight<64x4, f32, tile = 32, panel = 32>, !llm.recurrent<1x64x3>
}
