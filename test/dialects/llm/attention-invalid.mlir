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
  // expected-error@+1 {{'llm.attention' op has scale 0.000000e+00, softcap 0.000000e+00 and window 0, expected finite numbers, a positive scale and no negative value}}
  %o = llm.attention %q, %a, %batch {scale = 0.0 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x2x4xf32>, !llm.kv<2x4xf32>
  return
}

// -----

func.func @attention_c3_softcap(%kv: !llm.kv<2x4xf32>, %k: tensor<?x2x4xf32>, %batch: !llm.batch, %q: tensor<?x2x4xf32>) {
  %a = llm.kv_append %kv, %k, %k, %batch : !llm.kv<2x4xf32>, tensor<?x2x4xf32>
  // expected-error@+1 {{'llm.attention' op has scale 1.000000e+00, softcap nan and window 0, expected finite numbers, a positive scale and no negative value}}
  %o = llm.attention %q, %a, %batch {scale = 1.0 : f32, softcap = 0x7FC00000 : f32, window = 0 : i64} : tensor<?x2x4xf32>, !llm.kv<2x4xf32>
  return
}

// -----

func.func @attention_c3_window(%kv: !llm.kv<2x4xf32>, %k: tensor<?x2x4xf32>, %batch: !llm.batch, %q: tensor<?x2x4xf32>) {
  %a = llm.kv_append %kv, %k, %k, %batch : !llm.kv<2x4xf32>, tensor<?x2x4xf32>
  // expected-error@+1 {{'llm.attention' op has scale 1.000000e+00, softcap 0.000000e+00 and window -1, expected finite numbers, a positive scale and no negative value}}
  %o = llm.attention %q, %a, %batch {scale = 1.0 : f32, softcap = 0.0 : f32, window = -1 : i64} : tensor<?x2x4xf32>, !llm.kv<2x4xf32>
  return
}

// -----

func.func @attention_c4(%kv: !llm.kv<2x4xf32>, %k: tensor<?x2x4xf32>, %batch: !llm.batch, %q: tensor<?x2x4xf32>) {
  %a = llm.kv_append %kv, %k, %k, %batch : !llm.kv<2x4xf32>, tensor<?x2x4xf32>
  // expected-error@+1 {{'llm.attention' op reads a state that this step has not grown; append the rows' keys and values first}}
  %o = llm.attention %q, %kv, %batch {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x2x4xf32>, !llm.kv<2x4xf32>
  return
}
