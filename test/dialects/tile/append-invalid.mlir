// RUN: llmc-opt %s --verify-diagnostics --split-input-file

tile.task @append_c1 rows(%row, %column of 1) (%a: !tile.rows<4>, %kv: !llm.kv<1x4xf32>, %batch: !llm.batch) {
  %x = tile.load %a[%row, %column] : !tile.rows<4> -> tensor<4xf32>
  // expected-error@+1 {{'tile.append' op works on '!llm.kv<1x4xf32>', expected a paged cache}}
  tile.append key %x, %kv[%column], %batch[%row] : tensor<4xf32>, !llm.kv<1x4xf32>
}

// -----

tile.task @append_c2 rows(%row, %column of 1) (%a: !tile.rows<8>, %kv: !llm.kv<1x4xf32, page = 16, panel = 16>, %batch: !llm.batch) {
  %x = tile.load %a[%row, %column] : !tile.rows<8> -> tensor<8xf32>
  // expected-error@+1 {{'tile.append' op writes 8 channels, but a value has 4}}
  tile.append value %x, %kv[%column], %batch[%row] : tensor<8xf32>, !llm.kv<1x4xf32, page = 16, panel = 16>
}

// -----

tile.task @append_c2_key rows(%row, %column of 1) (%a: !tile.rows<8>, %kv: !llm.kv<1x4xf32, value = 8, page = 16, panel = 16>, %batch: !llm.batch) {
  %x = tile.load %a[%row, %column] : !tile.rows<8> -> tensor<8xf32>
  tile.append value %x, %kv[%column], %batch[%row] : tensor<8xf32>, !llm.kv<1x4xf32, value = 8, page = 16, panel = 16>
  // expected-error@+1 {{'tile.append' op writes 8 channels, but a head has 4}}
  tile.append key %x, %kv[%column], %batch[%row] : tensor<8xf32>, !llm.kv<1x4xf32, value = 8, page = 16, panel = 16>
}

// -----

tile.task @append_c2_latent rows(%row, %column of 1) (%a: !tile.rows<4>, %kv: !llm.kv<1x8xf32, latent = 4, page = 16, panel = 1>, %batch: !llm.batch) {
  %x = tile.load %a[%row, %column] : !tile.rows<4> -> tensor<4xf32>
  // expected-error@+1 {{'tile.append' op writes a value, but the values of '!llm.kv<1x8xf32, latent = 4, page = 16, panel = 1>' are the beginnings of its keys}}
  tile.append value %x, %kv[%column], %batch[%row] : tensor<4xf32>, !llm.kv<1x8xf32, latent = 4, page = 16, panel = 1>
}
