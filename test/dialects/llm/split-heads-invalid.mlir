// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @split_heads_c1(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.split_heads' op has 8 channels, but the heads hold 6}}
  %y = llm.split_heads %x : tensor<?x8xf32> -> tensor<?x2x3xf32>
  return
}
