// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @slice_c1(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.slice' op takes 'tensor<?x4xf32>' at 5 of 'tensor<?x8xf32>'}}
  %y = llm.slice %x at 5 : tensor<?x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @slice_c1_negative(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.slice' op takes 'tensor<?x4xf32>' at -1 of 'tensor<?x8xf32>'}}
  %y = llm.slice %x at -1 : tensor<?x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @slice_c1_heads(%x: tensor<?x2x4xf32>) {
  // expected-error@+1 {{'llm.slice' op takes 'tensor<?x1x4xf32>' at 0 of 'tensor<?x2x4xf32>'}}
  %y = llm.slice %x at 0 : tensor<?x2x4xf32> -> tensor<?x1x4xf32>
  return
}
