// RUN: llmc-opt %s --verify-diagnostics

func.func @receive_c1(%batch: !llm.batch) {
  // expected-error@+1 {{'llm.receive' op names stage -1, expected 0 or more}}
  %x = llm.receive %batch {stage = -1 : i64} : tensor<?x4xf32>
  return
}
