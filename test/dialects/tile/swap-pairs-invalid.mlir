// RUN: llmc-opt %s --verify-diagnostics

tile.task @swap_pairs_c1 rows(%row, %column of 1) (%a: !tile.rows<9>) {
  %x = tile.load %a[%row, %column] : !tile.rows<9> -> tensor<9xf32>
  // expected-error@+1 {{'tile.swap_pairs' op has 9 elements, expected pairs}}
  %y = tile.swap_pairs %x : tensor<9xf32>
}
