// RUN: llmc-opt %s --verify-diagnostics

func.func @send_c1(%batch: !llm.batch, %x: tensor<?x4xf32>) {
  // expected-error@+1 {{'llm.send' op names stage -1, expected 0 or more}}
  llm.send %x, %batch {stage = -1 : i64} : tensor<?x4xf32>
  return
}
