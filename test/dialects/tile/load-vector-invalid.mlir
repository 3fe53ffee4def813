// RUN: llmc-opt %s --verify-diagnostics --split-input-file

tile.task @load_vector_c1 rows(%row, %column of 1) (%w: !llm.weight<4x4>) {
  // expected-error@+1 {{'tile.load_vector' op reads '!llm.weight<4x4>', expected a weight of one dimension or a plain one}}
  %g = tile.load_vector %w[%column] : !llm.weight<4x4> -> tensor<4xf32>
}
