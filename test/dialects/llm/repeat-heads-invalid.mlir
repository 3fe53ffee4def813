// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @repeat_heads_c1(%x: tensor<?x2x4xf32>) {
  // expected-error@+1 {{'llm.repeat_heads' op makes 'tensor<?x4x4xf32>' of 'tensor<?x2x4xf32>' repeated 3 times}}
  %y = llm.repeat_heads %x {times = 3 : i64} : tensor<?x2x4xf32> -> tensor<?x4x4xf32>
  return
}

// -----

func.func @repeat_heads_c1_zero(%x: tensor<?x2x4xf32>) {
  // expected-error@+1 {{'llm.repeat_heads' op makes 'tensor<?x4x4xf32>' of 'tensor<?x2x4xf32>' repeated 0 times}}
  %y = llm.repeat_heads %x {times = 0 : i64} : tensor<?x2x4xf32> -> tensor<?x4x4xf32>
  return
}
