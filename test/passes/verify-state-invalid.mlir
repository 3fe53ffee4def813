// RUN: llmc-opt %s --llmc-verify-state --split-input-file --verify-diagnostics

llm.state @kv : !llm.kv<1x16xf32>
func.func @grown_twice(%batch: !llm.batch, %k: tensor<?x1x16xf32>) {
  // expected-note @+1 {{first used here}}
  %kv = llm.use_state @kv : !llm.kv<1x16xf32>
  %grown = llm.kv_append %kv, %k, %k, %batch : !llm.kv<1x16xf32>, tensor<?x1x16xf32>
  // expected-error @+1 {{uses state @kv a second time}}
  %again = llm.use_state @kv : !llm.kv<1x16xf32>
  %twice = llm.kv_append %again, %k, %k, %batch : !llm.kv<1x16xf32>, tensor<?x1x16xf32>
  return
}

// -----

llm.state @kv : !llm.kv<1x16xf32>
func.func private @layer(%k: tensor<?x1x16xf32>, %batch: !llm.batch, %kv: !llm.kv<1x16xf32>) {
  %grown = llm.kv_append %kv, %k, %k, %batch : !llm.kv<1x16xf32>, tensor<?x1x16xf32>
  return
}
func.func @two_layers_share_one(%batch: !llm.batch, %k: tensor<?x1x16xf32>) {
  // expected-error @+1 {{grows state @kv 2 times in a step, expected once}}
  %kv = llm.use_state @kv : !llm.kv<1x16xf32>
  call @layer(%k, %batch, %kv) : (tensor<?x1x16xf32>, !llm.batch, !llm.kv<1x16xf32>) -> ()
  call @layer(%k, %batch, %kv) : (tensor<?x1x16xf32>, !llm.batch, !llm.kv<1x16xf32>) -> ()
  return
}

// -----

llm.state @kv : !llm.kv<1x16xf32>
func.func @never_grown() {
  // expected-error @+1 {{grows state @kv 0 times in a step, expected once}}
  %kv = llm.use_state @kv : !llm.kv<1x16xf32>
  return
}

// -----

llm.state @kv : !llm.kv<1x16xf32>
func.func private @reader(%batch: !llm.batch, %kv: !llm.kv<1x16xf32>) {
  return
}
func.func @layer_does_not_grow(%batch: !llm.batch) {
  %kv = llm.use_state @kv : !llm.kv<1x16xf32>
  // expected-error @+1 {{hands state @kv to @reader, which does not grow it}}
  call @reader(%batch, %kv) : (!llm.batch, !llm.kv<1x16xf32>) -> ()
  return
}

// -----

llm.state @kv : !llm.kv<1x16xf32>
func.func private @elsewhere(!llm.kv<1x16xf32>)
func.func @callee_has_no_body() {
  %kv = llm.use_state @kv : !llm.kv<1x16xf32>
  // expected-error @+1 {{calls @elsewhere, which has no body in this module}}
  call @elsewhere(%kv) : (!llm.kv<1x16xf32>) -> ()
  return
}
