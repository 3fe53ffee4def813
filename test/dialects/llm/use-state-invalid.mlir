// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @use_state_c1() {
  // expected-error@+1 {{'llm.use_state' op names @kv, which is no llm.state of this module}}
  %w = llm.use_state @kv : !llm.kv<1x4xf32>
  return
}

// -----

llm.state @kv : !llm.kv<1x4xf32>
func.func @use_state_c1_type() {
  // expected-error@+1 {{'llm.use_state' op reads @kv as '!llm.kv<2x4xf32>', declared as '!llm.kv<1x4xf32>'}}
  %w = llm.use_state @kv : !llm.kv<2x4xf32>
  return
}
