// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @alloc_c1() {
  // expected-error@+1 {{'tile.alloc' op has offset -4, expected 0 or more}}
  %a = tile.alloc at -4 : !tile.rows<4>
  return
}
