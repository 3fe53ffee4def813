// RUN: llmc-opt %s --verify-diagnostics --split-input-file

tile.task @concat_c1 rows(%row, %column of 1) (%a: !tile.rows<64>) {
  %x = tile.load %a[%row, %column] : !tile.rows<64> -> tensor<64xf32>
  // expected-error@+1 {{'tile.concat' op makes 64 elements of 128}}
  %y = tile.concat %x, %x : tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
}

// -----

tile.task @concat_c1_nothing rows(%row, %column of 1) () {
  // expected-error@+1 {{'tile.concat' op makes 64 elements of 0}}
  %y = "tile.concat"() : () -> tensor<64xf32>
}
