// RUN: llmc-opt %s --llmc-verify-state --llmc-form-tile-tasks | FileCheck %s

llm.state @kv : !llm.kv<1x64xf32, page = 64, panel = 16>

func.func private @grower(%k: tensor<?x64xf32>, %batch: !llm.batch, %kv: !llm.kv<1x64xf32, page = 64, panel = 16>) {
  %h = llm.split_heads %k : tensor<?x64xf32> -> tensor<?x1x64xf32>
  %grown = llm.kv_append %kv, %h, %h, %batch : !llm.kv<1x64xf32, page = 64, panel = 16>, tensor<?x1x64xf32>
  return
}

// A layer that keeps nothing of its own attends over the pages that it is given, and appends nothing.
// CHECK-LABEL: tile.task @reader.0
// CHECK-NOT: tile.append
// CHECK: tile.attend
// CHECK-LABEL: func.func private @reader
// CHECK-SAME: %[[KV:[^:]+]]: !llm.kv<1x64xf32, page = 64, panel = 16>
// CHECK: tile.launch @reader.0{{.*}}%[[KV]]
func.func private @reader(%q: tensor<?x64xf32>, %batch: !llm.batch, %kv: !llm.kv<1x64xf32, page = 64, panel = 16>) -> tensor<?x64xf32> {
  %h = llm.split_heads %q : tensor<?x64xf32> -> tensor<?x1x64xf32>
  %o = llm.attention %h, %kv, %batch {scale = 0.125 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x1x64xf32>, !llm.kv<1x64xf32, page = 64, panel = 16>
  %y = llm.merge_heads %o : tensor<?x1x64xf32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// CHECK-LABEL: func.func @layers
// CHECK: %[[STATE:.+]] = llm.use_state @kv
// CHECK: call @grower({{.*}}%[[STATE]])
// CHECK: call @reader({{.*}}%[[STATE]]
func.func @layers(%x: tensor<?x64xf32>, %batch: !llm.batch) -> tensor<?x64xf32> {
  %kv = llm.use_state @kv : !llm.kv<1x64xf32, page = 64, panel = 16>
  call @grower(%x, %batch, %kv) : (tensor<?x64xf32>, !llm.batch, !llm.kv<1x64xf32, page = 64, panel = 16>) -> ()
  %y = call @reader(%x, %batch, %kv) : (tensor<?x64xf32>, !llm.batch, !llm.kv<1x64xf32, page = 64, panel = 16>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
