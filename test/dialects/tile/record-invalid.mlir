// RUN: llmc-opt %s --verify-diagnostics --split-input-file

tile.task @record_c1 rows(%row, %column of 1) (%a: !tile.rows<4>, %batch: !llm.batch) {
  %x = tile.load %a[%row, %column] : !tile.rows<4> -> tensor<4xf32>
  // expected-error@+1 {{'tile.record' op has index -1, expected 0 or more}}
  tile.record %x, %batch[%row] at -1 : tensor<4xf32>
}
