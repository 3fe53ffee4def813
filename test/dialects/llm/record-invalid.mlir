// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @record_c1(%x: tensor<?x8xf32>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.record' op has index -1, expected 0 or more}}
  llm.record %x, %batch {index = -1 : i64} : tensor<?x8xf32>
  return
}
