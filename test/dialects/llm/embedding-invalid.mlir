// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @embedding_c1(%batch: !llm.batch, %w: !llm.weight<10x8>) {
  // expected-error@+1 {{'llm.embedding' op has a weight of [10, 8], expected [V, 4]}}
  %h = llm.embedding %batch, %w {scale = 1.0 : f32} : !llm.weight<10x8> -> tensor<?x4xf32>
  return
}

// -----

func.func @embedding_heads(%batch: !llm.batch, %w: !llm.weight<10x8>) {
  // expected-error@+1 {{'llm.embedding' op has 'tensor<?x2x8xf32>', expected 2 dimensions: rows and channels}}
  %h = llm.embedding %batch, %w {scale = 1.0 : f32} : !llm.weight<10x8> -> tensor<?x2x8xf32>
  return
}
