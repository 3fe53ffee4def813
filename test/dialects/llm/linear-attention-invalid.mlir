// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @linear_attention_c1(%q: tensor<?x3x8xf32>, %v: tensor<?x4x3xf32>, %s: !llm.recurrent<4x8x3>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.linear_attention' op has 4 heads, expected a multiple of the 3 key heads}}
  %o = llm.linear_attention %q, %q, %v, %s, %batch : tensor<?x3x8xf32>, tensor<?x4x3xf32>, !llm.recurrent<4x8x3>
  return
}

// -----

func.func @linear_attention_c2(%q: tensor<?x2x8xf32>, %v: tensor<?x4x3xf32>, %s: !llm.recurrent<2x8x3>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.linear_attention' op has a state of '!llm.recurrent<2x8x3>', expected 4 x 8 x 3}}
  %o = llm.linear_attention %q, %q, %v, %s, %batch : tensor<?x2x8xf32>, tensor<?x4x3xf32>, !llm.recurrent<2x8x3>
  return
}

// -----

func.func @linear_attention_c3(%q: tensor<?x2x8xf32>, %v: tensor<?x4x3xf32>, %d: tensor<?x2xf32>, %s: !llm.recurrent<4x8x3>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.linear_attention' op has a decay of 'tensor<?x2xf32>', expected a number per head or per head and key channel}}
  %o = llm.linear_attention %q, %q, %v decay %d, %s, %batch : tensor<?x2x8xf32>, tensor<?x4x3xf32> decay tensor<?x2xf32>, !llm.recurrent<4x8x3>
  return
}

// -----

func.func @linear_attention_c3_values(%q: tensor<?x2x8xf32>, %v: tensor<?x4x3xf32>, %d: tensor<?x4x3xf32>, %s: !llm.recurrent<4x8x3>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.linear_attention' op has a decay of 'tensor<?x4x3xf32>', expected a number per head or per head and key channel}}
  %o = llm.linear_attention %q, %q, %v decay %d, %s, %batch : tensor<?x2x8xf32>, tensor<?x4x3xf32> decay tensor<?x4x3xf32>, !llm.recurrent<4x8x3>
  return
}

// -----

func.func @linear_attention_c4(%q: tensor<?x2x8xf32>, %v: tensor<?x4x3xf32>, %b: tensor<?x2xf32>, %s: !llm.recurrent<4x8x3>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.linear_attention' op has a beta of 'tensor<?x2xf32>', expected a number for each of 4 heads}}
  %o = llm.linear_attention %q, %q, %v beta %b, %s, %batch : tensor<?x2x8xf32>, tensor<?x4x3xf32> beta tensor<?x2xf32>, !llm.recurrent<4x8x3>
  return
}

// -----

func.func @linear_attention_c5(%q: tensor<?x2x8xf32>, %v: tensor<?x4x3xf32>, %s: !llm.recurrent<4x8x3>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.linear_attention' op updates a state that another llm.linear_attention updates too}}
  %o = llm.linear_attention %q, %q, %v, %s, %batch : tensor<?x2x8xf32>, tensor<?x4x3xf32>, !llm.recurrent<4x8x3>
  %p = llm.linear_attention %q, %q, %v, %s, %batch : tensor<?x2x8xf32>, tensor<?x4x3xf32>, !llm.recurrent<4x8x3>
  return
}
