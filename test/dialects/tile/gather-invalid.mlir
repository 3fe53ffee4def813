// RUN: llmc-opt %s --verify-diagnostics --split-input-file

tile.task @gather_c1 rows(%row, %column of 1) (%w: !llm.weight<10x4, f32, tile = 64, panel = 64>) {
  // expected-error@+1 {{'tile.gather' op reads rows of '!llm.weight<10x4, f32, tile = 64, panel = 64>' as 'tensor<5xf32>', expected a packed weight and its row}}
  %g = tile.gather %w[%row] : !llm.weight<10x4, f32, tile = 64, panel = 64> -> tensor<5xf32>
}

// -----

tile.task @gather_c1_unpacked rows(%row, %column of 1) (%w: !llm.weight<10x4>) {
  // expected-error@+1 {{'tile.gather' op reads rows of '!llm.weight<10x4>' as 'tensor<4xf32>', expected a packed weight and its row}}
  %g = tile.gather %w[%row] : !llm.weight<10x4> -> tensor<4xf32>
}
