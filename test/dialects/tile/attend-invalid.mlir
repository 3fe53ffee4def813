// RUN: llmc-opt %s --verify-diagnostics --split-input-file

tile.task @attend_c1 rows(%row, %column of 1) (%a: !tile.rows<4>, %kv: !llm.kv<1x4xf32>, %batch: !llm.batch) {
  %x = tile.load %a[%row, %column] : !tile.rows<4> -> tensor<4xf32>
  // expected-error@+1 {{'tile.attend' op works on '!llm.kv<1x4xf32>', expected a paged cache}}
  %o = tile.attend %x, %kv[%column], %batch[%row] {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<4xf32>, !llm.kv<1x4xf32>
}

// -----

tile.task @attend_c2 rows(%row, %column of 1) (%a: !tile.rows<6>, %kv: !llm.kv<1x4xf32, page = 16, panel = 16>, %batch: !llm.batch) {
  %x = tile.load %a[%row, %column] : !tile.rows<6> -> tensor<6xf32>
  // expected-error@+1 {{'tile.attend' op has queries of 6 channels, expected whole heads of 4}}
  %o = tile.attend %x, %kv[%column], %batch[%row] {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<6xf32>, !llm.kv<1x4xf32, page = 16, panel = 16>
}

// -----

tile.task @attend_c3 rows(%row, %column of 1) (%a: !tile.rows<4>, %kv: !llm.kv<1x4xf32, page = 16, panel = 16>, %batch: !llm.batch) {
  %x = tile.load %a[%row, %column] : !tile.rows<4> -> tensor<4xf32>
  // expected-error@+1 {{'tile.attend' op has scale -1.000000e+00, softcap 0.000000e+00, window 0 and chunk 0, expected finite numbers, a positive scale and no negative value}}
  %o = tile.attend %x, %kv[%column], %batch[%row] {scale = -1.0 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<4xf32>, !llm.kv<1x4xf32, page = 16, panel = 16>
}

// -----

tile.task @attend_c3_infinite rows(%row, %column of 1) (%a: !tile.rows<4>, %kv: !llm.kv<1x4xf32, page = 16, panel = 16>, %batch: !llm.batch) {
  %x = tile.load %a[%row, %column] : !tile.rows<4> -> tensor<4xf32>
  // expected-error@+1 {{'tile.attend' op has scale INF, softcap 0.000000e+00, window 0 and chunk 0, expected finite numbers, a positive scale and no negative value}}
  %o = tile.attend %x, %kv[%column], %batch[%row] {scale = 0x7F800000 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<4xf32>, !llm.kv<1x4xf32, page = 16, panel = 16>
}

// -----

tile.task @attend_c3_window rows(%row, %column of 1) (%a: !tile.rows<4>, %kv: !llm.kv<1x4xf32, page = 16, panel = 16>, %batch: !llm.batch) {
  %x = tile.load %a[%row, %column] : !tile.rows<4> -> tensor<4xf32>
  // expected-error@+1 {{'tile.attend' op has scale 1.000000e+00, softcap 0.000000e+00, window -5 and chunk 0, expected finite numbers, a positive scale and no negative value}}
  %o = tile.attend %x, %kv[%column], %batch[%row] {scale = 1.0 : f32, softcap = 0.0 : f32, window = -5 : i64} : tensor<4xf32>, !llm.kv<1x4xf32, page = 16, panel = 16>
}

// -----

tile.task @attend_c4 rows(%row, %column of 1) (%a: !tile.rows<4>, %kv: !llm.kv<1x4xf32, page = 16, panel = 16>, %batch: !llm.batch) {
  %x = tile.load %a[%row, %column] : !tile.rows<4> -> tensor<4xf32>
  // expected-error@+1 {{'tile.attend' op has spans of 24 positions, expected a multiple of the page of 16}}
  %o = tile.attend %x, %kv[%column], %batch[%row] {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64, span = 24 : i64} : tensor<4xf32>, !llm.kv<1x4xf32, page = 16, panel = 16>
}

// -----

// Two heads of 4 channels, which take a vector: 2 * (16 + 32).
tile.task @attend_c5 rows(%row, %column of 2) (%a: !tile.rows<4>, %kv: !llm.kv<2x4xf32, page = 16, panel = 16>, %batch: !llm.batch, %p: !tile.rows<95>) {
  %x = tile.load %a[%row, %column] : !tile.rows<4> -> tensor<4xf32>
  // expected-error@+1 {{'tile.attend' op has partials of 95 channels, but 2 heads need 96}}
  %o = tile.attend %x, %kv[%column], %batch[%row] partials %p : !tile.rows<95> {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64, span = 32 : i64} : tensor<4xf32>, !llm.kv<2x4xf32, page = 16, panel = 16>
}

// -----

tile.task @attend_c3_chunk rows(%row, %column of 1) (%a: !tile.rows<4>, %kv: !llm.kv<1x4xf32, page = 16, panel = 16>, %batch: !llm.batch) {
  %x = tile.load %a[%row, %column] : !tile.rows<4> -> tensor<4xf32>
  // expected-error@+1 {{'tile.attend' op has scale 1.000000e+00, softcap 0.000000e+00, window 0 and chunk -1, expected finite numbers, a positive scale and no negative value}}
  %o = tile.attend %x, %kv[%column], %batch[%row] {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64, chunk = -1 : i64} : tensor<4xf32>, !llm.kv<1x4xf32, page = 16, panel = 16>
}

// -----

tile.task @attend_c6 rows(%row, %column of 1) (%a: !tile.rows<8>, %kv: !llm.kv<1x4xf32, page = 16, panel = 16>, %batch: !llm.batch) {
  %x = tile.load %a[%row, %column] : !tile.rows<8> -> tensor<8xf32>
  %s = tile.load %a[%row, %column] : !tile.rows<8> -> tensor<3xf32>
  // expected-error@+1 {{'tile.attend' op has 3 sinks for the 2 heads of its query}}
  %o = tile.attend %x, %kv[%column], %batch[%row] sinks %s : tensor<3xf32> {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<8xf32>, !llm.kv<1x4xf32, page = 16, panel = 16>
}

// -----

// Two columns of one head.
tile.task @attend_c7 rows(%row, %column of 2) (%a: !tile.rows<4>, %kv: !llm.kv<2x4xf32, page = 16, panel = 16>, %batch: !llm.batch) {
  %x = tile.load %a[%row, %column] : !tile.rows<4> -> tensor<4xf32>
  // expected-error@+1 {{'tile.attend' op has 1 slopes for the 2 heads of its task}}
  %o = tile.attend %x, %kv[%column], %batch[%row] {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64, alibi = array<f32: 0.5>} : tensor<4xf32>, !llm.kv<2x4xf32, page = 16, panel = 16>
}

// -----

tile.task @attend_c3_every rows(%row, %column of 1) (%a: !tile.rows<4>, %kv: !llm.kv<1x4xf32, latent = 4, every = 4, page = 16, panel = 1>, %batch: !llm.batch) {
  %x = tile.load %a[%row, %column] : !tile.rows<4> -> tensor<4xf32>
  // expected-error@+1 {{'tile.attend' op counts positions by a window, a chunk or slopes, but '!llm.kv<1x4xf32, latent = 4, every = 4, page = 16, panel = 1>' keeps one row of every 4}}
  %o = tile.attend %x, %kv[%column], %batch[%row] {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64, chunk = 8 : i64} : tensor<4xf32>, !llm.kv<1x4xf32, latent = 4, every = 4, page = 16, panel = 1>
}

// -----

tile.task @attend_c8 rows(%row, %column of 1) (%a: !tile.rows<4>, %kv: !llm.kv<1x4xf32, page = 16, panel = 16>, %batch: !llm.batch) {
  %x = tile.load %a[%row, %column] : !tile.rows<4> -> tensor<4xf32>
  // expected-error@+2 {{'tile.attend' op failed to infer returned types}}
  // expected-error@+1 {{'tile.attend' op inferred type(s) 'tensor<4xf32>' are incompatible with return type(s) of operation 'tensor<4xf32>', 'tensor<1xf32>'}}
  %o, %l = "tile.attend"(%x, %kv, %column, %batch, %row) <{scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0>}> : (tensor<4xf32>, !llm.kv<1x4xf32, page = 16, panel = 16>, index, !llm.batch, index) -> (tensor<4xf32>, tensor<1xf32>)
}
