// RUN: llmc-opt %s --verify-diagnostics --split-input-file

tile.task @recur_c1 rows(%row, %column of 1) (%r: !tile.rows<64>, %state: !llm.recurrent<2x16x32>, %batch: !llm.batch) {
  %q = tile.load %r[%row, %column] : !tile.rows<64> -> tensor<8xf32>
  %v = tile.load %r[%row, %column] : !tile.rows<64> -> tensor<32xf32>
  // expected-error@+1 {{'tile.recur' op has a query of 8 elements, but the state 16 keys}}
  %o = tile.recur %q, %q, %v, %state[%column], %batch[%row] : tensor<8xf32>, tensor<32xf32>, !llm.recurrent<2x16x32>
}

// -----

// A head's values lie in blocks of 32.
tile.task @recur_c2 rows(%row, %column of 1) (%r: !tile.rows<64>, %state: !llm.recurrent<2x16x64>, %batch: !llm.batch) {
  %q = tile.load %r[%row, %column] : !tile.rows<64> -> tensor<16xf32>
  %v = tile.load %r[%row, %column] : !tile.rows<64> -> tensor<16xf32>
  // expected-error@+1 {{'tile.recur' op has 16 values of '!llm.recurrent<2x16x64>', expected 32}}
  %o = tile.recur %q, %q, %v, %state[%column], %batch[%row] : tensor<16xf32>, tensor<16xf32>, !llm.recurrent<2x16x64>
}

// -----

tile.task @recur_c2_heads rows(%row, %column of 1) (%r: !tile.rows<64>, %state: !llm.recurrent<6x16x1>, %batch: !llm.batch) {
  %q = tile.load %r[%row, %column] : !tile.rows<64> -> tensor<16xf32>
  %v = tile.load %r[%row, %column] : !tile.rows<64> -> tensor<4xf32>
  // expected-error@+1 {{'tile.recur' op has 4 values of '!llm.recurrent<6x16x1>', expected those of whole heads that divide all}}
  %o = tile.recur %q, %q, %v, %state[%column], %batch[%row] : tensor<16xf32>, tensor<4xf32>, !llm.recurrent<6x16x1>
}

// -----

tile.task @recur_c3 rows(%row, %column of 1) (%r: !tile.rows<64>, %state: !llm.recurrent<6x16x1>, %batch: !llm.batch) {
  %q = tile.load %r[%row, %column] : !tile.rows<64> -> tensor<16xf32>
  %v = tile.load %r[%row, %column] : !tile.rows<64> -> tensor<3xf32>
  %a = tile.load %r[%row, %column] : !tile.rows<64> -> tensor<16xf32>
  // expected-error@+1 {{'tile.recur' op has a decay of 16 elements, expected 3 or 48}}
  %o = tile.recur %q, %q, %v decay %a, %state[%column], %batch[%row] : tensor<16xf32>, tensor<3xf32> decay tensor<16xf32>, !llm.recurrent<6x16x1>
}

// -----

tile.task @recur_c4 rows(%row, %column of 1) (%r: !tile.rows<64>, %state: !llm.recurrent<2x16x32>, %batch: !llm.batch) {
  %q = tile.load %r[%row, %column] : !tile.rows<64> -> tensor<16xf32>
  %v = tile.load %r[%row, %column] : !tile.rows<64> -> tensor<32xf32>
  %b = tile.load %r[%row, %column] : !tile.rows<64> -> tensor<2xf32>
  // expected-error@+1 {{'tile.recur' op has a beta of 2 elements, expected 1}}
  %o = tile.recur %q, %q, %v beta %b, %state[%column], %batch[%row] : tensor<16xf32>, tensor<32xf32> beta tensor<2xf32>, !llm.recurrent<2x16x32>
}
