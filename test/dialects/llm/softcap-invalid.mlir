// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @softcap_c1(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.softcap' op has cap -1.000000e+00, expected more than 0}}
  %y = llm.softcap %x {cap = -1.0 : f32} : tensor<?x8xf32>
  return
}
