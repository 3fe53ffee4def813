// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @select_positions_c1(%q: tensor<?x4x6xf32>, %w: tensor<?x4xf32>, %kv: !llm.kv<1x8xf32, latent = 8>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.select_positions' op has queries of 6 channels, but the state keeps 8}}
  %p = llm.select_positions %q, %w, %kv, %batch : tensor<?x4x6xf32>, tensor<?x4xf32>, !llm.kv<1x8xf32, latent = 8> -> tensor<?x16xf32>
  return
}

// -----

func.func @select_positions_c2(%q: tensor<?x4x8xf32>, %w: tensor<?x4xf32>, %kv: !llm.kv<2x8xf32, latent = 8>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.select_positions' op reads a state of 2 heads, expected 1}}
  %p = llm.select_positions %q, %w, %kv, %batch : tensor<?x4x8xf32>, tensor<?x4xf32>, !llm.kv<2x8xf32, latent = 8> -> tensor<?x16xf32>
  return
}

// -----

func.func @select_positions_c3(%q: tensor<?x4x8xf32>, %w: tensor<?x3xf32>, %kv: !llm.kv<1x8xf32, latent = 8>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.select_positions' op has 3 weights for 4 heads}}
  %p = llm.select_positions %q, %w, %kv, %batch : tensor<?x4x8xf32>, tensor<?x3xf32>, !llm.kv<1x8xf32, latent = 8> -> tensor<?x16xf32>
  return
}

// -----

func.func @select_positions_c4(%q: tensor<?x4x8xf32>, %w: tensor<?x4xf32>, %kv: !llm.kv<1x8xf32, latent = 8>, %batch: !llm.batch, %k: tensor<?x1x8xf32>) {
  %grown = llm.kv_append %kv, %k, %batch : !llm.kv<1x8xf32, latent = 8>, tensor<?x1x8xf32>
  // expected-error@+1 {{'llm.select_positions' op reads a state before this step has grown it; read the result of llm.kv_append}}
  %p = llm.select_positions %q, %w, %kv, %batch : tensor<?x4x8xf32>, tensor<?x4xf32>, !llm.kv<1x8xf32, latent = 8> -> tensor<?x16xf32>
  return
}
