// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @position_embedding_c1(%b: !llm.batch, %w: !llm.weight<16x4>) {
  // expected-error@+1 {{'llm.position_embedding' op has a weight of [16, 4] and offset 0, expected [P, 8] with the offset below P}}
  %y = llm.position_embedding %b, %w {offset = 0 : i64} : !llm.weight<16x4> -> tensor<?x8xf32>
  return
}

// -----

func.func @position_embedding_c1_offset(%b: !llm.batch, %w: !llm.weight<16x8>) {
  // expected-error@+1 {{'llm.position_embedding' op has a weight of [16, 8] and offset 16, expected [P, 8] with the offset below P}}
  %y = llm.position_embedding %b, %w {offset = 16 : i64} : !llm.weight<16x8> -> tensor<?x8xf32>
  return
}

// -----

func.func @position_embedding_c2(%b: !llm.batch, %w: !llm.weight<16x8>) {
  // expected-error@+1 {{'llm.position_embedding' op repeats after 15 positions from row 2 on, but has 16 rows}}
  %y = llm.position_embedding %b, %w {offset = 2 : i64, period = 15 : i64} : !llm.weight<16x8> -> tensor<?x8xf32>
  return
}
