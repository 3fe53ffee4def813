// RUN: llmc-opt %s --verify-diagnostics --split-input-file

llm.state @kv : !llm.kv<1x4xf32>
func.func @use_weight_c1() {
  // expected-error@+1 {{'llm.use_weight' op names @kv, which is no llm.weight of this module}}
  %w = llm.use_weight @kv : !llm.weight<4>
  return
}

// -----

llm.weight @w : !llm.weight<4> from [{tensor = "a"}]
func.func @use_weight_c1_type() {
  // expected-error@+1 {{'llm.use_weight' op reads @w as '!llm.weight<8>', declared as '!llm.weight<4>'}}
  %w = llm.use_weight @w : !llm.weight<8>
  return
}
