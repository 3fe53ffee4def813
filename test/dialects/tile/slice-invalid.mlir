// RUN: llmc-opt %s --verify-diagnostics --split-input-file

tile.task @slice_c1 rows(%row, %column of 1) (%a: !tile.rows<64>) {
  %x = tile.load %a[%row, %column] : !tile.rows<64> -> tensor<64xf32>
  // expected-error@+1 {{'tile.slice' op takes 33 elements from 32 on of 64}}
  %y = tile.slice %x at 32 : tensor<64xf32> -> tensor<33xf32>
}

// -----

tile.task @slice_c1_negative rows(%row, %column of 1) (%a: !tile.rows<64>) {
  %x = tile.load %a[%row, %column] : !tile.rows<64> -> tensor<64xf32>
  // expected-error@+1 {{'tile.slice' op takes 32 elements from -1 on of 64}}
  %y = tile.slice %x at -1 : tensor<64xf32> -> tensor<32xf32>
}
