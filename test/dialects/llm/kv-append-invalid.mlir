// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @kv_append_c1(%kv: !llm.kv<2x4xf32>, %k: tensor<?x2x3xf32>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.kv_append' op has keys of 2 x 3, but the state keeps 2 x 4}}
  %s = "llm.kv_append"(%kv, %k, %k, %batch) : (!llm.kv<2x4xf32>, tensor<?x2x3xf32>, tensor<?x2x3xf32>, !llm.batch) -> !llm.kv<2x4xf32>
  return
}

// -----

func.func @kv_append_c2(%kv: !llm.kv<2x4xf32>, %k: tensor<?x2x4xf32>, %batch: !llm.batch) {
  %a = llm.kv_append %kv, %k, %k, %batch : !llm.kv<2x4xf32>, tensor<?x2x4xf32>
  // expected-error@+1 {{'llm.kv_append' op grows a state that this step has grown already}}
  %b = llm.kv_append %a, %k, %k, %batch : !llm.kv<2x4xf32>, tensor<?x2x4xf32>
  return
}

// -----

func.func @kv_append_c3(%kv: !llm.kv<2x4xf32>, %k: tensor<?x2x4xf32>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.kv_append' op grows a state that another llm.kv_append grows too}}
  %a = llm.kv_append %kv, %k, %k, %batch : !llm.kv<2x4xf32>, tensor<?x2x4xf32>
  %b = llm.kv_append %kv, %k, %k, %batch : !llm.kv<2x4xf32>, tensor<?x2x4xf32>
  return
}

// -----

func.func @kv_append_c1_values(%kv: !llm.kv<2x4xf32, value = 8>, %k: tensor<?x2x4xf32>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.kv_append' op has values of 2 x 4, but the state keeps 2 x 8}}
  %s = "llm.kv_append"(%kv, %k, %k, %batch) : (!llm.kv<2x4xf32, value = 8>, tensor<?x2x4xf32>, tensor<?x2x4xf32>, !llm.batch) -> !llm.kv<2x4xf32, value = 8>
  return
}

// -----

func.func @kv_append_c1_no_values(%kv: !llm.kv<2x4xf32>, %k: tensor<?x2x4xf32>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.kv_append' op has no values, but the state is not latent}}
  %s = llm.kv_append %kv, %k, %batch : !llm.kv<2x4xf32>, tensor<?x2x4xf32>
  return
}

// -----

func.func @kv_append_c1_latent(%kv: !llm.kv<2x4xf32, latent = 4>, %k: tensor<?x2x4xf32>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.kv_append' op has values, but the state is latent}}
  %s = llm.kv_append %kv, %k, %k, %batch : !llm.kv<2x4xf32, latent = 4>, tensor<?x2x4xf32>
  return
}

// -----

func.func @kv_append_operands(%kv: !llm.kv<2x4xf32>, %k: tensor<?x2x4xf32>) {
  // expected-error@+1 {{has 2 operands, expected state, key, value (unless the state is latent) and batch}}
  %s = llm.kv_append %kv, %k : !llm.kv<2x4xf32>, tensor<?x2x4xf32>
  return
}
