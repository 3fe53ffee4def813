// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @kv_append_c1(%kv: !llm.kv<2x4xf32>, %k: tensor<?x2x3xf32>, %batch: !llm.batch) {
  // expected-error@+1 {{'llm.kv_append' op has keys of 2 x 3, but the state keeps 2 x 4}}
  %s = llm.kv_append %kv, %k, %k, %batch : !llm.kv<2x4xf32>, tensor<?x2x3xf32>
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
