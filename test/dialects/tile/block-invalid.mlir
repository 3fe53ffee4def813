// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @negative(%a: !tile.rows<64>) {
  // expected-error@+1 {{'tile.send' op has tile.block -1 : i64, expected an integer from 0 on}}
  tile.send rows %a to stage 1 {tile.block = -1 : i64} : !tile.rows<64>
  return
}

// -----

func.func @unknown(%a: !tile.rows<64>) {
  // expected-error@+1 {{'tile.send' op has an attribute tile.bloc, expected tile.block or tile.layer}}
  tile.send rows %a to stage 1 {tile.bloc = 0 : i64} : !tile.rows<64>
  return
}
