// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @scalar(%a: tensor<f32>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.select_rows' op operand #0 must be rows: tensor<?xCxf32> or tensor<?xHxDxf32>, sizes positive, but got 'tensor<f32>'}}
  %s = llm.select_rows %a, %batch : tensor<f32>
  return
}

// -----

func.func @vector(%a: tensor<?xf32>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.select_rows' op operand #0 must be rows: tensor<?xCxf32> or tensor<?xHxDxf32>, sizes positive, but got 'tensor<?xf32>'}}
  %s = llm.select_rows %a, %batch : tensor<?xf32>
  return
}

// -----

func.func @static_rows(%a: tensor<4x8xf32>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.select_rows' op operand #0 must be rows: tensor<?xCxf32> or tensor<?xHxDxf32>, sizes positive, but got 'tensor<4x8xf32>'}}
  %s = llm.select_rows %a, %batch : tensor<4x8xf32>
  return
}

// -----

func.func @dynamic_channels(%a: tensor<?x?xf32>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.select_rows' op operand #0 must be rows: tensor<?xCxf32> or tensor<?xHxDxf32>, sizes positive, but got 'tensor<?x?xf32>'}}
  %s = llm.select_rows %a, %batch : tensor<?x?xf32>
  return
}

// -----

func.func @no_channels(%a: tensor<?x0xf32>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.select_rows' op operand #0 must be rows: tensor<?xCxf32> or tensor<?xHxDxf32>, sizes positive, but got 'tensor<?x0xf32>'}}
  %s = llm.select_rows %a, %batch : tensor<?x0xf32>
  return
}

// -----

func.func @rank_four(%a: tensor<?x2x2x2xf32>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.select_rows' op operand #0 must be rows: tensor<?xCxf32> or tensor<?xHxDxf32>, sizes positive, but got 'tensor<?x2x2x2xf32>'}}
  %s = llm.select_rows %a, %batch : tensor<?x2x2x2xf32>
  return
}

// -----

func.func @bf16(%a: tensor<?x8xbf16>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.select_rows' op operand #0 must be rows: tensor<?xCxf32> or tensor<?xHxDxf32>, sizes positive, but got 'tensor<?x8xbf16>'}}
  %s = llm.select_rows %a, %batch : tensor<?x8xbf16>
  return
}

// -----

func.func @huge(%a: tensor<?x4294967296x4294967296xf32>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.select_rows' op operand #0 must be rows: tensor<?xCxf32> or tensor<?xHxDxf32>, sizes positive, but got 'tensor<?x4294967296x4294967296xf32>'}}
  %s = llm.select_rows %a, %batch : tensor<?x4294967296x4294967296xf32>
  return
}
