// RUN: llmc-opt %s --verify-diagnostics

func.func @receive_c1(%a: !tile.rows<64>) {
  // expected-error@+1 {{'tile.receive' op names stage -1, expected 0 or more}}
  tile.receive rows %a from stage -1 : !tile.rows<64>
  return
}
