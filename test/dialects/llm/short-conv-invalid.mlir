// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @short_conv_c1(%x: tensor<?x8xf32>, %w: !llm.weight<4x8>, %s: !llm.recurrent<1x8x3>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.short_conv' op has a weight of [4, 8], expected [8, K] with K >= 2}}
  %y = llm.short_conv %x, %w, %s, %batch : tensor<?x8xf32>, !llm.weight<4x8>, !llm.recurrent<1x8x3>
  return
}

// -----

func.func @short_conv_c1_one_tap(%x: tensor<?x8xf32>, %w: !llm.weight<8x1>, %s: !llm.recurrent<1x8x1>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.short_conv' op has a weight of [8, 1], expected [8, K] with K >= 2}}
  %y = llm.short_conv %x, %w, %s, %batch : tensor<?x8xf32>, !llm.weight<8x1>, !llm.recurrent<1x8x1>
  return
}

// -----

func.func @short_conv_c2(%x: tensor<?x8xf32>, %w: !llm.weight<8x4>, %s: !llm.recurrent<1x8x4>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.short_conv' op has a state of '!llm.recurrent<1x8x4>', expected 1 x 8 x 3}}
  %y = llm.short_conv %x, %w, %s, %batch : tensor<?x8xf32>, !llm.weight<8x4>, !llm.recurrent<1x8x4>
  return
}

// -----

func.func @short_conv_c3(%x: tensor<?x8xf32>, %w: !llm.weight<8x4>, %b: !llm.weight<4>, %s: !llm.recurrent<1x8x3>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.short_conv' op has a bias of [4], expected [8]}}
  %y = llm.short_conv %x, %w bias %b, %s, %batch : tensor<?x8xf32>, !llm.weight<8x4> bias !llm.weight<4>, !llm.recurrent<1x8x3>
  return
}

// -----

func.func @short_conv_c4(%x: tensor<?x8xf32>, %w: !llm.weight<8x4>, %s: !llm.recurrent<1x8x3>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.short_conv' op updates a state that another llm.short_conv updates too}}
  %y = llm.short_conv %x, %w, %s, %batch : tensor<?x8xf32>, !llm.weight<8x4>, !llm.recurrent<1x8x3>
  %z = llm.short_conv %x, %w, %s, %batch : tensor<?x8xf32>, !llm.weight<8x4>, !llm.recurrent<1x8x3>
  return
}
