// RUN: llmc-opt %s --verify-diagnostics --split-input-file

tile.task @select_positions_c1 rows(%row, %column of 1) (%a: !tile.rows<8>, %kv: !llm.kv<1x4xf32, latent = 4>, %batch: !llm.batch) {
  %q = tile.load %a[%row, %column] : !tile.rows<8> -> tensor<8xf32>
  %w = tile.load %a[%row, %column] : !tile.rows<8> -> tensor<2xf32>
  // expected-error@+1 {{'tile.select_positions' op works on '!llm.kv<1x4xf32, latent = 4>', expected a paged cache}}
  %p = tile.select_positions %q, %w, %kv, %batch[%row] : tensor<8xf32>, tensor<2xf32>, !llm.kv<1x4xf32, latent = 4> -> tensor<5xf32>
}

// -----

tile.task @select_positions_c2 rows(%row, %column of 1) (%a: !tile.rows<8>, %kv: !llm.kv<2x4xf32, page = 16, panel = 16>, %batch: !llm.batch) {
  %q = tile.load %a[%row, %column] : !tile.rows<8> -> tensor<8xf32>
  %w = tile.load %a[%row, %column] : !tile.rows<8> -> tensor<2xf32>
  // expected-error@+1 {{'tile.select_positions' op reads a cache of 2 heads, expected 1}}
  %p = tile.select_positions %q, %w, %kv, %batch[%row] : tensor<8xf32>, tensor<2xf32>, !llm.kv<2x4xf32, page = 16, panel = 16> -> tensor<5xf32>
}

// -----

tile.task @select_positions_c3 rows(%row, %column of 1) (%a: !tile.rows<8>, %kv: !llm.kv<1x4xf32, page = 16, panel = 16>, %batch: !llm.batch) {
  %q = tile.load %a[%row, %column] : !tile.rows<8> -> tensor<6xf32>
  %w = tile.load %a[%row, %column] : !tile.rows<8> -> tensor<2xf32>
  // expected-error@+1 {{'tile.select_positions' op has queries of 6 channels, expected whole heads of 4}}
  %p = tile.select_positions %q, %w, %kv, %batch[%row] : tensor<6xf32>, tensor<2xf32>, !llm.kv<1x4xf32, page = 16, panel = 16> -> tensor<5xf32>
}

// -----

tile.task @select_positions_c3_weights rows(%row, %column of 1) (%a: !tile.rows<8>, %kv: !llm.kv<1x4xf32, page = 16, panel = 16>, %batch: !llm.batch) {
  %q = tile.load %a[%row, %column] : !tile.rows<8> -> tensor<8xf32>
  %w = tile.load %a[%row, %column] : !tile.rows<8> -> tensor<3xf32>
  // expected-error@+1 {{'tile.select_positions' op has 3 weights for the 2 heads of its query}}
  %p = tile.select_positions %q, %w, %kv, %batch[%row] : tensor<8xf32>, tensor<3xf32>, !llm.kv<1x4xf32, page = 16, panel = 16> -> tensor<5xf32>
}

// -----

tile.task @select_positions_c4 rows(%row, %column of 1) (%a: !tile.rows<8>, %kv: !llm.kv<1x4xf32, page = 16, panel = 16>, %batch: !llm.batch) {
  %q = tile.load %a[%row, %column] : !tile.rows<8> -> tensor<8xf32>
  %w = tile.load %a[%row, %column] : !tile.rows<8> -> tensor<2xf32>
  // expected-error@+1 {{'tile.select_positions' op has spans of 24 positions, expected a multiple of the page of 16}}
  %p = tile.select_positions %q, %w, %kv, %batch[%row] {span = 24 : i64} : tensor<8xf32>, tensor<2xf32>, !llm.kv<1x4xf32, page = 16, panel = 16> -> tensor<5xf32>
}

// -----

tile.task @select_positions_c5 rows(%row, %column of 1) (%a: !tile.rows<8>, %kv: !llm.kv<1x4xf32, page = 16, panel = 16>, %batch: !llm.batch, %p: !tile.rows<9>) {
  %q = tile.load %a[%row, %column] : !tile.rows<8> -> tensor<8xf32>
  %w = tile.load %a[%row, %column] : !tile.rows<8> -> tensor<2xf32>
  // expected-error@+1 {{'tile.select_positions' op has partials of 9 channels, but 5 positions need 10}}
  %o = tile.select_positions %q, %w, %kv, %batch[%row] partials %p : !tile.rows<9> {span = 32 : i64} : tensor<8xf32>, tensor<2xf32>, !llm.kv<1x4xf32, page = 16, panel = 16> -> tensor<5xf32>
}
