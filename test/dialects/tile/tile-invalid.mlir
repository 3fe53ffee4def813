// RUN: llmc-opt %s --verify-diagnostics --split-input-file

tile.task @scalar rows(%row, %column of 1) (%a: !tile.rows<4>) {
  // expected-error@+1 {{'tile.load' op result #0 must be tile: one static positive dimension of f32, but got 'tensor<f32>'}}
  %y = tile.load %a[%row, %column] : !tile.rows<4> -> tensor<f32>
}

// -----

tile.task @matrix rows(%row, %column of 1) (%a: !tile.rows<4>) {
  // expected-error@+1 {{'tile.load' op result #0 must be tile: one static positive dimension of f32, but got 'tensor<2x2xf32>'}}
  %y = tile.load %a[%row, %column] : !tile.rows<4> -> tensor<2x2xf32>
}

// -----

tile.task @dynamic rows(%row, %column of 1) (%a: !tile.rows<4>) {
  // expected-error@+1 {{'tile.load' op result #0 must be tile: one static positive dimension of f32, but got 'tensor<?xf32>'}}
  %y = tile.load %a[%row, %column] : !tile.rows<4> -> tensor<?xf32>
}

// -----

tile.task @empty rows(%row, %column of 1) (%a: !tile.rows<4>) {
  // expected-error@+1 {{'tile.load' op result #0 must be tile: one static positive dimension of f32, but got 'tensor<0xf32>'}}
  %y = tile.load %a[%row, %column] : !tile.rows<4> -> tensor<0xf32>
}

// -----

tile.task @bf16 rows(%row, %column of 1) (%a: !tile.rows<4>) {
  // expected-error@+1 {{'tile.load' op result #0 must be tile: one static positive dimension of f32, but got 'tensor<4xbf16>'}}
  %y = tile.load %a[%row, %column] : !tile.rows<4> -> tensor<4xbf16>
}

// -----

tile.task @huge rows(%row, %column of 1) (%a: !tile.rows<4>) {
  // expected-error@+1 {{'tile.load' op result #0 must be tile: one static positive dimension of f32, but got 'tensor<268435457xf32>'}}
  %y = tile.load %a[%row, %column] : !tile.rows<4> -> tensor<268435457xf32>
}
