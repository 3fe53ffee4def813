// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @all_gather_c1(%p: !tile.rows<64>, %whole: !tile.rows<96>) {
  // expected-error@+1 {{'tile.all_gather' op gives rank 1 the elements 64 to 97 of 96}}
  tile.all_gather rows %p : !tile.rows<64> to %whole : !tile.rows<96> {segments = [array<i64: 0, 64, 64, 97>]}
  return
}

// -----

func.func @all_gather_c2(%p: !tile.rows<64>, %whole: !tile.rows<96>) {
  // expected-error@+1 {{'tile.all_gather' op has a result of 96 elements a row, but no rank holds element 64}}
  tile.all_gather rows %p : !tile.rows<64> to %whole : !tile.rows<96> {segments = [array<i64: 0, 64, 65, 96>]}
  return
}

// -----

func.func @all_gather_c3(%p: !tile.rows<63>, %whole: !tile.rows<96>) {
  // expected-error@+1 {{'tile.all_gather' op has an input of 63 elements a row, which no rank's ranges hold}}
  tile.all_gather rows %p : !tile.rows<63> to %whole : !tile.rows<96> {segments = [array<i64: 0, 64, 64, 96>]}
  return
}
