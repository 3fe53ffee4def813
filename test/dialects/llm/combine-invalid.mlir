// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @combine_c1(%x: tensor<?x2x8xf32>, %w: tensor<?x3xf32>) {
  // expected-error@+1 {{'llm.combine' op sums 'tensor<?x2x8xf32>' by 'tensor<?x3xf32>' into 'tensor<?x8xf32>'}}
  %y = llm.combine %x, %w : tensor<?x2x8xf32>, tensor<?x3xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @combine_c1_result(%x: tensor<?x2x8xf32>, %w: tensor<?x2xf32>) {
  // expected-error@+1 {{'llm.combine' op sums 'tensor<?x2x8xf32>' by 'tensor<?x2xf32>' into 'tensor<?x4xf32>'}}
  %y = llm.combine %x, %w : tensor<?x2x8xf32>, tensor<?x2xf32> -> tensor<?x4xf32>
  return
}
