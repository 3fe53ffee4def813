// RUN: llmc-opt %s --verify-diagnostics --split-input-file

tile.task @choose_c1 rows(%row, %column of 1) (%a: !tile.rows<9>) {
  %x = tile.load %a[%row, %column] : !tile.rows<9> -> tensor<9xf32>
  // expected-error@+1 {{'tile.choose' op has 2 groups of 9 elements, expected groups of equal size}}
  %e = tile.choose %x {groups = 2 : i64, top_groups = 1 : i64, group_sum = 1 : i64} : tensor<9xf32> -> tensor<2xf32>
}

// -----

tile.task @choose_c2 rows(%row, %column of 1) (%a: !tile.rows<9>) {
  %x = tile.load %a[%row, %column] : !tile.rows<9> -> tensor<9xf32>
  // expected-error@+1 {{'tile.choose' op keeps 4 of 3 groups, expected 1 to 3}}
  %e = tile.choose %x {groups = 3 : i64, top_groups = 4 : i64, group_sum = 1 : i64} : tensor<9xf32> -> tensor<2xf32>
}

// -----

tile.task @choose_c3 rows(%row, %column of 1) (%a: !tile.rows<9>) {
  %x = tile.load %a[%row, %column] : !tile.rows<9> -> tensor<9xf32>
  // expected-error@+1 {{'tile.choose' op counts the 3 largest of 3 elements of a group, expected 1 or 2 of them}}
  %e = tile.choose %x {groups = 3 : i64, top_groups = 1 : i64, group_sum = 3 : i64} : tensor<9xf32> -> tensor<2xf32>
}

// -----

tile.task @choose_c4 rows(%row, %column of 1) (%a: !tile.rows<9>) {
  %x = tile.load %a[%row, %column] : !tile.rows<9> -> tensor<9xf32>
  // expected-error@+1 {{'tile.choose' op chooses 4 of 3 elements}}
  %e = tile.choose %x {groups = 3 : i64, top_groups = 1 : i64, group_sum = 1 : i64} : tensor<9xf32> -> tensor<4xf32>
}
