// RUN: llmc-opt %s --verify-diagnostics --split-input-file

tile.task @pool_c1 rows(%row, %column of 1) (%r: !tile.rows<96>, %state: !llm.recurrent<1x9x32>, %batch: !llm.batch) {
  %x = tile.load %r[%row, %column] : !tile.rows<96> -> tensor<96xf32>
  // expected-error@+1 {{'tile.pool' op makes 32 elements of 96, expected as many or twice as many}}
  %y = tile.pool %x, %x, %state[%column], %batch[%row] {window = 4 : i64} : tensor<96xf32>, !llm.recurrent<1x9x32> -> tensor<32xf32>
}

// -----

tile.task @pool_c2 rows(%row, %column of 1) (%r: !tile.rows<64>, %state: !llm.recurrent<1x3x32>, %batch: !llm.batch) {
  %x = tile.load %r[%row, %column] : !tile.rows<64> -> tensor<64xf32>
  // expected-error@+1 {{'tile.pool' op keeps '!llm.recurrent<1x3x32>', expected 1 x 9 x at least 16}}
  %y = tile.pool %x, %x, %state[%column], %batch[%row] {window = 4 : i64} : tensor<64xf32>, !llm.recurrent<1x3x32> -> tensor<32xf32>
}

// -----

// Fewer channels than lanes would lie in lanes of keys.
tile.task @pool_c2_few_channels rows(%row, %column of 1) (%r: !tile.rows<8>, %state: !llm.recurrent<1x3x8>, %batch: !llm.batch) {
  %x = tile.load %r[%row, %column] : !tile.rows<8> -> tensor<8xf32>
  // expected-error@+1 {{'tile.pool' op keeps '!llm.recurrent<1x3x8>', expected 1 x 3 x at least 16}}
  %y = tile.pool %x, %x, %state[%column], %batch[%row] {window = 4 : i64} : tensor<8xf32>, !llm.recurrent<1x3x8> -> tensor<8xf32>
}

// -----

tile.task @pool_c3 rows(%row, %column of 1) (%r: !tile.rows<32>, %state: !llm.recurrent<1x9x64>, %batch: !llm.batch) {
  %x = tile.load %r[%row, %column] : !tile.rows<32> -> tensor<32xf32>
  // expected-error@+1 {{'tile.pool' op has tiles of 16 channels, but the state has blocks of 32}}
  %y = tile.pool %x, %x, %state[%column], %batch[%row] {window = 4 : i64} : tensor<32xf32>, !llm.recurrent<1x9x64> -> tensor<16xf32>
}

// -----

tile.task @pool_c4 rows(%row, %column of 1) (%r: !tile.rows<32>, %state: !llm.recurrent<1x3x32>, %batch: !llm.batch) {
  %x = tile.load %r[%row, %column] : !tile.rows<32> -> tensor<32xf32>
  // expected-error@+1 {{'tile.pool' op has windows of 0 positions, expected at least 1}}
  %y = tile.pool %x, %x, %state[%column], %batch[%row] {window = 0 : i64} : tensor<32xf32>, !llm.recurrent<1x3x32> -> tensor<32xf32>
}
