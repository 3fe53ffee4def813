// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @merge_heads_c1(%x: tensor<?x2x3xf32>) {
  // expected-error@+1 {{'llm.merge_heads' op has 8 channels, but the heads hold 6}}
  %y = llm.merge_heads %x : tensor<?x2x3xf32> -> tensor<?x8xf32>
  return
}
