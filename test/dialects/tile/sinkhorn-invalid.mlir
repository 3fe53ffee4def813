// RUN: llmc-opt %s --verify-diagnostics --split-input-file

tile.task @sinkhorn_c1 rows(%row, %column of 1) (%a: !tile.rows<12>) {
  %x = tile.load %a[%row, %column] : !tile.rows<12> -> tensor<12xf32>
  // expected-error@+1 {{'tile.sinkhorn' op takes 12 elements, expected a square matrix of at most 16 x 16}}
  %y = tile.sinkhorn %x {iterations = 20 : i64, eps = 1.0e-6 : f32} : tensor<12xf32>
}

// -----

tile.task @sinkhorn_c1_large rows(%row, %column of 1) (%a: !tile.rows<289>) {
  %x = tile.load %a[%row, %column] : !tile.rows<289> -> tensor<289xf32>
  // expected-error@+1 {{'tile.sinkhorn' op takes 289 elements, expected a square matrix of at most 16 x 16}}
  %y = tile.sinkhorn %x {iterations = 20 : i64, eps = 1.0e-6 : f32} : tensor<289xf32>
}

// -----

tile.task @sinkhorn_c2 rows(%row, %column of 1) (%a: !tile.rows<16>) {
  %x = tile.load %a[%row, %column] : !tile.rows<16> -> tensor<16xf32>
  // expected-error@+1 {{'tile.sinkhorn' op has 0 iterations, expected at least 1}}
  %y = tile.sinkhorn %x {iterations = 0 : i64, eps = 1.0e-6 : f32} : tensor<16xf32>
}

// -----

tile.task @sinkhorn_c3 rows(%row, %column of 1) (%a: !tile.rows<16>) {
  %x = tile.load %a[%row, %column] : !tile.rows<16> -> tensor<16xf32>
  // expected-error@+1 {{'tile.sinkhorn' op has eps -1.000000e+00, expected a finite number above 0}}
  %y = tile.sinkhorn %x {iterations = 1 : i64, eps = -1.0 : f32} : tensor<16xf32>
}
