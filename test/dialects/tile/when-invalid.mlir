// RUN: llmc-opt %s --verify-diagnostics --split-input-file

tile.task @when_c1 rows(%row, %column of 1) () {
  // expected-error@+1 {{'tile.when' op runs for columns 2 to 2, expected 0 <= begin < end}}
  tile.when %column in 2 to 2 {
  }
}

// -----

tile.task @when_c2 rows(%row, %column of 1) () {
  // expected-error@+1 {{'tile.when' op has a body with 1 arguments, expected none}}
  "tile.when"(%column) <{begin = 0 : i64, end = 1 : i64}> ({
  ^bb0(%x: index):
  }) : (index) -> ()
}

// -----

func.func @outside(%i: index) {
  // expected-error@+1 {{'tile.when' op expects parent op to be one of 'tile.task, tile.when'}}
  tile.when %i in 0 to 1 {
  }
  return
}
