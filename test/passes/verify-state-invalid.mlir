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
func.func private @layer(%batch: !llm.batch, %kv: !llm.kv<1x16xf32>) {
  return
}
func.func @layer_does_not_grow(%batch: !llm.batch) {
  // expected-error @+1 {{grows state @kv 0 times in a step, expected once}}
  %kv = llm.use_state @kv : !llm.kv<1x16xf32>
  call @layer(%batch, %kv) : (!llm.batch, !llm.kv<1x16xf32>) -> ()
  return
}

// -----

llm.state @kv : !llm.kv<1x16xf32>
func.func private @grower(%k: tensor<?x1x16xf32>, %batch: !llm.batch, %kv: !llm.kv<1x16xf32>) {
  %grown = llm.kv_append %kv, %k, %k, %batch : !llm.kv<1x16xf32>, tensor<?x1x16xf32>
  return
}
func.func private @reader(%q: tensor<?x1x16xf32>, %batch: !llm.batch, %kv: !llm.kv<1x16xf32>) {
  %o = llm.attention %q, %kv, %batch {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x1x16xf32>, !llm.kv<1x16xf32>
  return
}
func.func @reads_before_growth(%batch: !llm.batch, %k: tensor<?x1x16xf32>) {
  %kv = llm.use_state @kv : !llm.kv<1x16xf32>
  // expected-error @+1 {{hands state @kv to @reader, which reads it before this step has grown it}}
  call @reader(%k, %batch, %kv) : (tensor<?x1x16xf32>, !llm.batch, !llm.kv<1x16xf32>) -> ()
  call @grower(%k, %batch, %kv) : (tensor<?x1x16xf32>, !llm.batch, !llm.kv<1x16xf32>) -> ()
  return
}

// -----

// A function that hands on what it is given reads it first when the function it calls does.
llm.state @kv : !llm.kv<1x16xf32>
func.func private @reader(%q: tensor<?x1x16xf32>, %batch: !llm.batch, %kv: !llm.kv<1x16xf32>) {
  %o = llm.attention %q, %kv, %batch {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x1x16xf32>, !llm.kv<1x16xf32>
  return
}
func.func private @outer(%q: tensor<?x1x16xf32>, %batch: !llm.batch, %kv: !llm.kv<1x16xf32>) {
  call @reader(%q, %batch, %kv) : (tensor<?x1x16xf32>, !llm.batch, !llm.kv<1x16xf32>) -> ()
  %grown = llm.kv_append %kv, %q, %q, %batch : !llm.kv<1x16xf32>, tensor<?x1x16xf32>
  return
}
func.func @reads_deep_inside(%batch: !llm.batch, %k: tensor<?x1x16xf32>) {
  %kv = llm.use_state @kv : !llm.kv<1x16xf32>
  // expected-error @+1 {{hands state @kv to @outer, which reads it before this step has grown it}}
  call @outer(%k, %batch, %kv) : (tensor<?x1x16xf32>, !llm.batch, !llm.kv<1x16xf32>) -> ()
  return
}

// -----

// What a state has grown into counts as the state.
llm.state @kv : !llm.kv<1x16xf32>
func.func private @grower(%k: tensor<?x1x16xf32>, %batch: !llm.batch, %kv: !llm.kv<1x16xf32>) {
  %grown = llm.kv_append %kv, %k, %k, %batch : !llm.kv<1x16xf32>, tensor<?x1x16xf32>
  return
}
func.func @grown_again_in_a_call(%batch: !llm.batch, %k: tensor<?x1x16xf32>) {
  // expected-error @+1 {{grows state @kv 2 times in a step, expected once}}
  %kv = llm.use_state @kv : !llm.kv<1x16xf32>
  %grown = llm.kv_append %kv, %k, %k, %batch : !llm.kv<1x16xf32>, tensor<?x1x16xf32>
  call @grower(%k, %batch, %grown) : (tensor<?x1x16xf32>, !llm.batch, !llm.kv<1x16xf32>) -> ()
  return
}

// -----

llm.state @kv : !llm.kv<1x16xf32>
func.func private @layer(%k: tensor<?x1x16xf32>, %batch: !llm.batch, %kv: !llm.kv<1x16xf32>) -> !llm.kv<1x16xf32> {
  %grown = llm.kv_append %kv, %k, %k, %batch : !llm.kv<1x16xf32>, tensor<?x1x16xf32>
  // expected-error @+1 {{returns state @kv; hand the state to the later call itself}}
  return %grown : !llm.kv<1x16xf32>
}
func.func @returned(%batch: !llm.batch, %k: tensor<?x1x16xf32>) {
  %kv = llm.use_state @kv : !llm.kv<1x16xf32>
  %grown = call @layer(%k, %batch, %kv) : (tensor<?x1x16xf32>, !llm.batch, !llm.kv<1x16xf32>) -> !llm.kv<1x16xf32>
  return
}

// -----

llm.state @kv : !llm.kv<1x16xf32>
func.func private @recurses(%kv: !llm.kv<1x16xf32>) {
  // expected-error @+1 {{calls @recurses 64 levels deep; layers do not recurse}}
  call @recurses(%kv) : (!llm.kv<1x16xf32>) -> ()
  return
}
func.func @recursion() {
  %kv = llm.use_state @kv : !llm.kv<1x16xf32>
  call @recurses(%kv) : (!llm.kv<1x16xf32>) -> ()
  return
}

// -----

llm.state @memory : !llm.recurrent<1x8x3>
func.func private @layer(%x: tensor<?x8xf32>, %w: !llm.weight<8x4>, %batch: !llm.batch, %memory: !llm.recurrent<1x8x3>) {
  %y = llm.short_conv %x, %w, %memory, %batch : tensor<?x8xf32>, !llm.weight<8x4>, !llm.recurrent<1x8x3>
  return
}
func.func @recurrent_state_of_two_layers(%x: tensor<?x8xf32>, %w: !llm.weight<8x4>, %batch: !llm.batch) {
  // expected-error @+1 {{grows state @memory 2 times in a step, expected once}}
  %memory = llm.use_state @memory : !llm.recurrent<1x8x3>
  call @layer(%x, %w, %batch, %memory) : (tensor<?x8xf32>, !llm.weight<8x4>, !llm.batch, !llm.recurrent<1x8x3>) -> ()
  call @layer(%x, %w, %batch, %memory) : (tensor<?x8xf32>, !llm.weight<8x4>, !llm.batch, !llm.recurrent<1x8x3>) -> ()
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
