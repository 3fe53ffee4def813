// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @attention_c1(%kv: !llm.kv<2x4xf32>, %k: tensor<?x2x4xf32>, %batch: !llm.batch, %q: tensor<?x2x3xf32>) {
  %a = llm.kv_append %kv, %k, %k, %batch : !llm.kv<2x4xf32>, tensor<?x2x4xf32>
  // expected-error@+1 {{'llm.attention' op has queries of 3 channels, but the state keeps 4}}
  %o = llm.attention %q, %a, %batch {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x2x3xf32>, !llm.kv<2x4xf32>
  return
}

// -----

func.func @attention_c2(%kv: !llm.kv<2x4xf32>, %k: tensor<?x2x4xf32>, %batch: !llm.batch, %q: tensor<?x3x4xf32>) {
  %a = llm.kv_append %kv, %k, %k, %batch : !llm.kv<2x4xf32>, tensor<?x2x4xf32>
  // expected-error@+1 {{'llm.attention' op has 3 query heads, expected a multiple of the 2 key-value heads}}
  %o = llm.attention %q, %a, %batch {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x3x4xf32>, !llm.kv<2x4xf32>
  return
}

// -----

func.func @attention_c3(%kv: !llm.kv<2x4xf32>, %k: tensor<?x2x4xf32>, %batch: !llm.batch, %q: tensor<?x2x4xf32>) {
  %a = llm.kv_append %kv, %k, %k, %batch : !llm.kv<2x4xf32>, tensor<?x2x4xf32>
  // expected-error@+1 {{'llm.attention' op has scale 0.000000e+00, softcap 0.000000e+00, window 0, chunk 0, expected finite numbers, a positive scale and no negative value}}
  %o = llm.attention %q, %a, %batch {scale = 0.0 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x2x4xf32>, !llm.kv<2x4xf32>
  return
}

// -----

func.func @attention_c3_softcap(%kv: !llm.kv<2x4xf32>, %k: tensor<?x2x4xf32>, %batch: !llm.batch, %q: tensor<?x2x4xf32>) {
  %a = llm.kv_append %kv, %k, %k, %batch : !llm.kv<2x4xf32>, tensor<?x2x4xf32>
  // expected-error@+1 {{'llm.attention' op has scale 1.000000e+00, softcap nan, window 0, chunk 0, expected finite numbers, a positive scale and no negative value}}
  %o = llm.attention %q, %a, %batch {scale = 1.0 : f32, softcap = 0x7FC00000 : f32, window = 0 : i64} : tensor<?x2x4xf32>, !llm.kv<2x4xf32>
  return
}

// -----

func.func @attention_c3_window(%kv: !llm.kv<2x4xf32>, %k: tensor<?x2x4xf32>, %batch: !llm.batch, %q: tensor<?x2x4xf32>) {
  %a = llm.kv_append %kv, %k, %k, %batch : !llm.kv<2x4xf32>, tensor<?x2x4xf32>
  // expected-error@+1 {{'llm.attention' op has scale 1.000000e+00, softcap 0.000000e+00, window -1, chunk 0, expected finite numbers, a positive scale and no negative value}}
  %o = llm.attention %q, %a, %batch {scale = 1.0 : f32, softcap = 0.0 : f32, window = -1 : i64} : tensor<?x2x4xf32>, !llm.kv<2x4xf32>
  return
}

// -----

func.func @attention_c4(%kv: !llm.kv<2x4xf32>, %k: tensor<?x2x4xf32>, %batch: !llm.batch, %q: tensor<?x2x4xf32>) {
  %a = llm.kv_append %kv, %k, %k, %batch : !llm.kv<2x4xf32>, tensor<?x2x4xf32>
  // expected-error@+1 {{'llm.attention' op reads a state before this step has grown it; read the result of llm.kv_append}}
  %o = llm.attention %q, %kv, %batch {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x2x4xf32>, !llm.kv<2x4xf32>
  return
}

// -----

func.func @attention_c3_chunk(%kv: !llm.kv<2x4xf32>, %batch: !llm.batch, %q: tensor<?x2x4xf32>) {
  // expected-error@+1 {{'llm.attention' op has scale 1.000000e+00, softcap 0.000000e+00, window 0, chunk -1, expected finite numbers, a positive scale and no negative value}}
  %o = llm.attention %q, %kv, %batch {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64, chunk = -1 : i64} : tensor<?x2x4xf32>, !llm.kv<2x4xf32>
  return
}

// -----

llm.state @kv : !llm.kv<2x4xf32>
func.func @attention_c4_symbol(%batch: !llm.batch, %q: tensor<?x2x4xf32>) {
  %kv = llm.use_state @kv : !llm.kv<2x4xf32>
  // expected-error@+1 {{'llm.attention' op reads a state that this step has not grown; append the rows' keys and values first}}
  %o = llm.attention %q, %kv, %batch {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x2x4xf32>, !llm.kv<2x4xf32>
  return
}

// -----

func.func @attention_c5(%kv: !llm.kv<2x4xf32>, %batch: !llm.batch, %q: tensor<?x2x4xf32>, %s: !llm.weight<3>) {
  // expected-error@+1 {{'llm.attention' op has sinks of [3], expected [2]}}
  %o = llm.attention %q, %kv, %batch sinks %s : !llm.weight<3> {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x2x4xf32>, !llm.kv<2x4xf32>
  return
}

// -----

func.func @attention_c5_alibi(%kv: !llm.kv<2x4xf32>, %batch: !llm.batch, %q: tensor<?x2x4xf32>) {
  // expected-error@+1 {{'llm.attention' op has 1 slopes, expected one for each of 2 heads}}
  %o = llm.attention %q, %kv, %batch {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64, alibi = array<f32: 0.5>} : tensor<?x2x4xf32>, !llm.kv<2x4xf32>
  return
}

// -----

func.func @attention_c6(%kv: !llm.kv<2x4xf32>, %batch: !llm.batch, %q: tensor<?x2x4xf32>, %p: tensor<?x2x8xf32>) {
  // expected-error@+1 {{'llm.attention' op has 'tensor<?x2x8xf32>', expected 2 dimensions: rows and channels}}
  %o = llm.attention %q, %kv, %batch selected %p : tensor<?x2x8xf32> {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x2x4xf32>, !llm.kv<2x4xf32>
  return
}

// -----

func.func @attention_c7(%kv: !llm.kv<2x4xf32>, %batch: !llm.batch, %q: tensor<?x2x4xf32>) {
  // expected-error@+2 {{'llm.attention' op failed to infer returned types}}
  // expected-error@+1 {{'llm.attention' op inferred type(s) 'tensor<?x2x4xf32>' are incompatible with return type(s) of operation 'tensor<?x2x4xf32>', 'tensor<?x2xf32>'}}
  %o, %l = "llm.attention"(%q, %kv, %batch) <{scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> : (tensor<?x2x4xf32>, !llm.kv<2x4xf32>, !llm.batch) -> (tensor<?x2x4xf32>, tensor<?x2xf32>)
  return
}

// -----

func.func @attention_c8(%kv: !llm.kv<1x4xf32, latent = 4, every = 4>, %batch: !llm.batch, %q: tensor<?x2x4xf32>) {
  // expected-error@+1 {{'llm.attention' op counts positions by a window, a chunk or slopes, but the state keeps one row of every 4}}
  %o = llm.attention %q, %kv, %batch {scale = 1.0 : f32, softcap = 0.0 : f32, window = 8 : i64} : tensor<?x2x4xf32>, !llm.kv<1x4xf32, latent = 4, every = 4>
  return
}
