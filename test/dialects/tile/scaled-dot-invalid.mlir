// RUN: llmc-opt %s --verify-diagnostics --split-input-file

tile.task @scaled_dot_c1 rows(%row, %column of 1) (%a: !tile.rows<64>, %w: !llm.weight<64x64, f32, tile = 64, panel = 64>) {
  %x = tile.load %a[%row, %column] : !tile.rows<64> -> tensor<64xf32>
  %c, %s = tile.quantize %x : tensor<64xf32> -> tensor<64xi16>, tensor<2xf32>
  // expected-error@+1 {{'tile.scaled_dot' op multiplies with '!llm.weight<64x64, f32, tile = 64, panel = 64>', expected a weight packed as i8, i4, i4m or f4}}
  %y = tile.scaled_dot %c, %s, %w[%column] : tensor<64xi16>, tensor<2xf32>, !llm.weight<64x64, f32, tile = 64, panel = 64> -> tensor<64xf32>
}

// -----

tile.task @scaled_dot_c2 rows(%row, %column of 1) (%a: !tile.rows<64>, %w: !llm.weight<64x65, i8, tile = 64, panel = 16>) {
  %x = tile.load %a[%row, %column] : !tile.rows<64> -> tensor<64xf32>
  %c, %s = tile.quantize %x : tensor<64xf32> -> tensor<64xi16>, tensor<2xf32>
  // expected-error@+1 {{'tile.scaled_dot' op makes 'tensor<64xf32>' of 64 codes and 2 scales, expected 64 of 128 and 4}}
  %y = tile.scaled_dot %c, %s, %w[%column] : tensor<64xi16>, tensor<2xf32>, !llm.weight<64x65, i8, tile = 64, panel = 16> -> tensor<64xf32>
}

// -----

tile.task @scaled_dot_c3 rows(%row, %column of 1) (%a: !tile.rows<64>, %w: !llm.weight<64x64, i8, tile = 64, panel = 16>) {
  %x = tile.load %a[%row, %column] : !tile.rows<64> -> tensor<64xf32>
  %c, %s = tile.quantize %x : tensor<64xf32> -> tensor<64xi16>, tensor<2xf32>
  // expected-error@+1 {{'tile.scaled_dot' op reads '!llm.weight<64x64, i8, tile = 64, panel = 16>' with the index of a matrix, which a stack of matrices needs and nothing else has}}
  %y = tile.scaled_dot %c, %s, %w[%column] of %row : tensor<64xi16>, tensor<2xf32>, !llm.weight<64x64, i8, tile = 64, panel = 16> -> tensor<64xf32>
}
