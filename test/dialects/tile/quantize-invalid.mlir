// RUN: llmc-opt %s --verify-diagnostics --split-input-file

tile.task @quantize_c1 rows(%row, %column of 1) (%a: !tile.rows<33>) {
  %x = tile.load %a[%row, %column] : !tile.rows<33> -> tensor<33xf32>
  // expected-error@+1 {{'tile.quantize' op makes 33 codes and 2 scales, expected 64 and 2}}
  %c, %s = tile.quantize %x : tensor<33xf32> -> tensor<33xi16>, tensor<2xf32>
}
