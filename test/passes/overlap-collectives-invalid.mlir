// RUN: llmc-opt %s --llmc-overlap-collectives=blocks=1 --verify-diagnostics

// expected-error@+1 {{rows cannot be computed in 1 blocks of at least 64 rows, expected at least 2 of at least 1}}
module {
  func.func @step(%batch: !llm.batch) {
    %x = tile.alloc : !tile.rows<64>
    tile.all_reduce rows %x to %x : !tile.rows<64>
    return
  }
}
