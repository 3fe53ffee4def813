// RUN: llmc-opt %s --verify-diagnostics

func.func @send_c1(%a: !tile.rows<64>) {
  // expected-error@+1 {{'tile.send' op names stage -1, expected 0 or more}}
  tile.send rows %a to stage -1 : !tile.rows<64>
  return
}
