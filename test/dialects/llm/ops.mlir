// RUN: llmc-opt %s | llmc-opt | FileCheck %s
// RUN: llmc-opt %s --mlir-print-op-generic | llmc-opt | FileCheck %s

// Every op as its description shows it, through print and parse and through the generic form.

// CHECK: llm.weight @final_norm : !llm.weight<576> from [{tensor = "model.norm.weight"}]
llm.weight @final_norm : !llm.weight<576> from [{tensor = "model.norm.weight"} ]
// CHECK: llm.weight @query : !llm.weight<64x16> from [{rows = array<i64: 0, 64>, tensor = "qkv.weight", unpermute = 32 : i64}] {add = 1.000000e+00 : f64}
llm.weight @query : !llm.weight<64x16> from [{tensor = "qkv.weight", rows = array<i64: 0, 64>, unpermute = 32}] {add = 1.0 : f64}
// CHECK: llm.state @layers.0.kv : !llm.kv<3x64xf32>
llm.state @layers.0.kv : !llm.kv<3x64xf32>

// CHECK-LABEL: @types
// CHECK-SAME: !llm.batch, !llm.weight<4>, !llm.weight<4, plain>, !llm.weight<960x576, f32, tile = 64, panel = 64>
// CHECK-SAME: !llm.weight<960x576, i4m, tile = 64, panel = 16, interleave = 32>
// CHECK-SAME: !llm.kv<3x64xbf16, page = 64, panel = 16>, !llm.kv<3x64xbf16, page = 64, panel = 16, pack = 2>
func.func private @types(!llm.batch, !llm.weight<4>, !llm.weight<4, plain>, !llm.weight<960x576, f32, tile = 64, panel = 64>,
                         !llm.weight<960x576, i4m, tile = 64, panel = 16, interleave = 32>,
                         !llm.kv<3x64xbf16, page = 64, panel = 16>, !llm.kv<3x64xbf16, page = 64, panel = 16, pack = 2>)

// CHECK-LABEL: @symbols
func.func @symbols() {
  // CHECK: llm.use_weight @final_norm : <576>
  %w = llm.use_weight @final_norm : !llm.weight<576>
  // CHECK: llm.use_state @layers.0.kv : <3x64xf32>
  %kv = llm.use_state @layers.0.kv : !llm.kv<3x64xf32>
  return
}

// CHECK-LABEL: @embedding
func.func @embedding(%batch: !llm.batch, %w: !llm.weight<49152x576>) {
  // CHECK: llm.embedding %{{.+}}, %{{.+}} {scale = 1.000000e+00 : f32} : <49152x576> -> tensor<?x576xf32>
  %h = llm.embedding %batch, %w {scale = 1.0 : f32} : !llm.weight<49152x576> -> tensor<?x576xf32>
  return
}

// CHECK-LABEL: @rms_norm
func.func @rms_norm(%x: tensor<?x576xf32>, %w: !llm.weight<576>, %q: tensor<?x9x64xf32>, %g: !llm.weight<64>) {
  // CHECK: llm.rms_norm %{{.+}}, %{{.+}} {eps = {{.+}} : f32} : tensor<?x576xf32>, <576>
  %y = llm.rms_norm %x, %w {eps = 1.0e-6 : f32} : tensor<?x576xf32>, !llm.weight<576>
  // CHECK: llm.rms_norm {{.+}} : tensor<?x9x64xf32>, <64>
  %z = llm.rms_norm %q, %g {eps = 1.0e-6 : f32} : tensor<?x9x64xf32>, !llm.weight<64>
  return
}

// CHECK-LABEL: @linear
func.func @linear(%x: tensor<?x576xf32>, %w: !llm.weight<192x576>, %b: !llm.weight<192>) {
  // CHECK: llm.linear %{{.+}}, %{{.+}} : tensor<?x576xf32>, <192x576> -> tensor<?x192xf32>
  %y = llm.linear %x, %w : tensor<?x576xf32>, !llm.weight<192x576> -> tensor<?x192xf32>
  // CHECK: llm.linear %{{.+}}, %{{.+}} bias %{{.+}} : tensor<?x576xf32>, <192x576>, !llm.weight<192> -> tensor<?x192xf32>
  %z = llm.linear %x, %w bias %b : tensor<?x576xf32>, !llm.weight<192x576>, !llm.weight<192> -> tensor<?x192xf32>
  return
}

// CHECK-LABEL: @fused_linear
func.func @fused_linear(%x: tensor<?x576xf32>, %w: !llm.weight<768x576>) {
  // CHECK: llm.fused_linear %{{.+}}, %{{.+}} : tensor<?x576xf32>, <768x576> -> tensor<?x576xf32>, tensor<?x192xf32>
  %q, %k = llm.fused_linear %x, %w : tensor<?x576xf32>, !llm.weight<768x576> -> tensor<?x576xf32>, tensor<?x192xf32>
  return
}

// CHECK-LABEL: @gated_activation
func.func @gated_activation(%gate: tensor<?x1536xf32>, %up: tensor<?x1536xf32>) {
  // CHECK: llm.gated_activation silu %{{.+}}, %{{.+}} : tensor<?x1536xf32>
  %y = llm.gated_activation silu %gate, %up : tensor<?x1536xf32>
  // CHECK: llm.gated_activation gelu_tanh
  %z = llm.gated_activation gelu_tanh %gate, %up : tensor<?x1536xf32>
  // CHECK: llm.gated_activation gelu %
  %e = llm.gated_activation gelu %gate, %up : tensor<?x1536xf32>
  return
}

// CHECK-LABEL: @elementwise
func.func @elementwise(%a: tensor<?x576xf32>, %b: tensor<?x576xf32>, %x: tensor<?x576xf32>) {
  // CHECK: llm.add %{{.+}}, %{{.+}} : tensor<?x576xf32>
  %s = llm.add %a, %b : tensor<?x576xf32>
  // CHECK: llm.scale %{{.+}} {factor = 2.200000e-01 : f32} : tensor<?x576xf32>
  %y = llm.scale %x {factor = 0.22 : f32} : tensor<?x576xf32>
  return
}

// CHECK-LABEL: @softcap
func.func @softcap(%x: tensor<?x256xf32>) {
  // CHECK: llm.softcap %{{.+}} {cap = 3.000000e+01 : f32} : tensor<?x256xf32>
  %y = llm.softcap %x {cap = 30.0 : f32} : tensor<?x256xf32>
  return
}

// CHECK-LABEL: @rows_and_records
func.func @rows_and_records(%x: tensor<?x576xf32>, %h: tensor<?x576xf32>, %batch: !llm.batch) {
  // CHECK: llm.select_rows %{{.+}}, %{{.+}} : tensor<?x576xf32>
  %y = llm.select_rows %x, %batch : tensor<?x576xf32>
  // CHECK: llm.record %{{.+}}, %{{.+}} {index = 0 : i64} : tensor<?x576xf32>
  llm.record %h, %batch {index = 0 : i64} : tensor<?x576xf32>
  return
}

// CHECK-LABEL: @heads
func.func @heads(%x: tensor<?x576xf32>, %o: tensor<?x9x64xf32>) {
  // CHECK: llm.split_heads %{{.+}} : tensor<?x576xf32> -> tensor<?x9x64xf32>
  %q = llm.split_heads %x : tensor<?x576xf32> -> tensor<?x9x64xf32>
  // CHECK: llm.merge_heads %{{.+}} : tensor<?x9x64xf32> -> tensor<?x576xf32>
  %y = llm.merge_heads %o : tensor<?x9x64xf32> -> tensor<?x576xf32>
  return
}

// CHECK-LABEL: @rope_table
func.func @rope_table(%batch: !llm.batch) {
  // CHECK: llm.rope_table %{{.+}} {frequencies = array<f32: 1.000000e+00, 1.000000e-01>, magnitude = 1.000000e+00 : f32} : tensor<?x4xf32>
  %r = llm.rope_table %batch {frequencies = array<f32: 1.0, 0.1>, magnitude = 1.0 : f32} : tensor<?x4xf32>
  return
}

// CHECK-LABEL: @rope
func.func @rope(%q: tensor<?x9x64xf32>, %r: tensor<?x64xf32>) {
  // CHECK: llm.rope %{{.+}}, %{{.+}} : tensor<?x9x64xf32>, tensor<?x64xf32>
  %y = llm.rope %q, %r : tensor<?x9x64xf32>, tensor<?x64xf32>
  return
}

// CHECK-LABEL: @attention
func.func @attention(%q: tensor<?x9x64xf32>, %k: tensor<?x3x64xf32>, %v: tensor<?x3x64xf32>, %kv: !llm.kv<3x64xf32>,
                     %batch: !llm.batch) {
  // CHECK: llm.kv_append %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} : <3x64xf32>, tensor<?x3x64xf32>
  %kv1 = llm.kv_append %kv, %k, %v, %batch : !llm.kv<3x64xf32>, tensor<?x3x64xf32>
  // CHECK: llm.attention %{{.+}}, %{{.+}}, %{{.+}} {scale = 1.250000e-01 : f32, softcap = 0.000000e+00 : f32, window = 0 : i64} : tensor<?x9x64xf32>, <3x64xf32>
  %o = llm.attention %q, %kv1, %batch {scale = 0.125 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x9x64xf32>, !llm.kv<3x64xf32>
  return
}
