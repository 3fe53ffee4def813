// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @xielu_c1(%x: tensor<?x8xf32>, %w: !llm.weight<8>) {
  // expected-error@+1 {{'llm.xielu' op has a weight of [8], expected [2]}}
  %y = llm.xielu %x, %w {beta = 0.5 : f32, eps = -1.0e-6 : f32} : tensor<?x8xf32>, !llm.weight<8>
  return
}
