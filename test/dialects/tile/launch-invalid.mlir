// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @launch_c1() {
  // expected-error@+1 {{'tile.launch' op names @launch_c1, which is no tile.task of this module}}
  tile.launch @launch_c1()
  return
}

// -----

tile.task @t rows(%row, %column of 1) (%a: !tile.rows<4>) {
}

func.func @launch_c2(%a: !tile.rows<4>) {
  // expected-error@+1 {{'tile.launch' op has 2 operands, but @t takes 1}}
  tile.launch @t(%a, %a) : !tile.rows<4>, !tile.rows<4>
  return
}

// -----

tile.task @t rows(%row, %column of 1) (%a: !tile.rows<4>) {
}

func.func @launch_c2_type(%a: !tile.rows<8>) {
  // expected-error@+1 {{'tile.launch' op passes '!tile.rows<8>', but @t takes '!tile.rows<4>'}}
  tile.launch @t(%a) : !tile.rows<8>
  return
}
