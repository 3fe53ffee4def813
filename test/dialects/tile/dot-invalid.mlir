// RUN: llmc-opt %s --verify-diagnostics --split-input-file

tile.task @dot_c1 rows(%row, %column of 1) (%a: !tile.rows<4>, %w: !llm.weight<64x4, bf16, tile = 64, panel = 64>) {
  %x = tile.load %a[%row, %column] : !tile.rows<4> -> tensor<4xf32>
  // expected-error@+1 {{'tile.dot' op multiplies 'tensor<4xf32>' with '!llm.weight<64x4, bf16, tile = 64, panel = 64>', expected a packed weight of the same element type}}
  %y = tile.dot %x, %w[%column] : tensor<4xf32>, !llm.weight<64x4, bf16, tile = 64, panel = 64> -> tensor<64xf32>
}

// -----

tile.task @dot_c1_unpacked rows(%row, %column of 1) (%a: !tile.rows<4>, %w: !llm.weight<64x4, f32>) {
  %x = tile.load %a[%row, %column] : !tile.rows<4> -> tensor<4xf32>
  // expected-error@+1 {{'tile.dot' op multiplies 'tensor<4xf32>' with '!llm.weight<64x4, f32>', expected a packed weight of the same element type}}
  %y = tile.dot %x, %w[%column] : tensor<4xf32>, !llm.weight<64x4, f32> -> tensor<64xf32>
}

// -----

tile.task @dot_c2 rows(%row, %column of 1) (%a: !tile.rows<4>, %w: !llm.weight<64x5, f32, tile = 64, panel = 64>) {
  %x = tile.load %a[%row, %column] : !tile.rows<4> -> tensor<4xf32>
  // expected-error@+1 {{'tile.dot' op makes 'tensor<64xf32>' of 'tensor<4xf32>', expected 64 of 5 elements}}
  %y = tile.dot %x, %w[%column] : tensor<4xf32>, !llm.weight<64x5, f32, tile = 64, panel = 64> -> tensor<64xf32>
}

// -----

tile.task @dot_c3 rows(%row, %column of 1) (%a: !tile.rows<4>, %w: !llm.weight<2x64x4, f32, tile = 64, panel = 64>) {
  %x = tile.load %a[%row, %column] : !tile.rows<4> -> tensor<4xf32>
  // expected-error@+1 {{'tile.dot' op reads '!llm.weight<2x64x4, f32, tile = 64, panel = 64>' without the index of a matrix, which a stack of matrices needs and nothing else has}}
  %y = tile.dot %x, %w[%column] : tensor<4xf32>, !llm.weight<2x64x4, f32, tile = 64, panel = 64> -> tensor<64xf32>
}
