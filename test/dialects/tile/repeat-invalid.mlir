// RUN: llmc-opt %s --verify-diagnostics

tile.task @repeat_c1 rows(%row, %column of 1) (%a: !tile.rows<9>) {
  %x = tile.load %a[%row, %column] : !tile.rows<9> -> tensor<9xf32>
  // expected-error@+1 {{'tile.repeat' op makes 64 elements of 9, expected a multiple}}
  %y = tile.repeat %x : tensor<9xf32> -> tensor<64xf32>
}
