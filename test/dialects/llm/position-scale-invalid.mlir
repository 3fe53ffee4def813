// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @position_scale_c1(%x: tensor<?x8xf32>, %b: !llm.batch) {
  // expected-error@+1 {{'llm.position_scale' op has period 0 and offset 1, expected at least 1 and 0}}
  %y = llm.position_scale %x, %b {scale = 0.1 : f32, period = 0 : i64, offset = 1 : i64} : tensor<?x8xf32>
  return
}

// -----

func.func @position_scale_c1_offset(%x: tensor<?x8xf32>, %b: !llm.batch) {
  // expected-error@+1 {{'llm.position_scale' op has period 8 and offset -1, expected at least 1 and 0}}
  %y = llm.position_scale %x, %b {scale = 0.1 : f32, period = 8 : i64, offset = -1 : i64} : tensor<?x8xf32>
  return
}
