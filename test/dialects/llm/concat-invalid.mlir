// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @concat_c1(%a: tensor<?x8xf32>, %b: tensor<?x4xf32>) {
  // expected-error@+1 {{'llm.concat' op has inputs of 12 channels, but a result of 16}}
  %y = llm.concat %a, %b : tensor<?x8xf32>, tensor<?x4xf32> -> tensor<?x16xf32>
  return
}

// -----

func.func @concat_c1_heads(%a: tensor<?x2x8xf32>, %b: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.concat' op puts 'tensor<?x8xf32>' into 'tensor<?x2x16xf32>', expected the same rows and heads}}
  %y = llm.concat %a, %b : tensor<?x2x8xf32>, tensor<?x8xf32> -> tensor<?x2x16xf32>
  return
}

// -----

func.func @concat_c1_nothing() {
  // expected-error@+1 {{'llm.concat' op has inputs of 0 channels, but a result of 16}}
  %y = "llm.concat"() : () -> tensor<?x16xf32>
  return
}
