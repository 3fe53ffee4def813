// RUN: llmc-opt %s | llmc-opt | FileCheck %s
// RUN: llmc-opt %s --mlir-print-op-generic | llmc-opt | FileCheck %s

// Every op as its description shows it, through print and parse and through the generic form.

// CHECK: llm.weight @final_norm : !llm.weight<576> from [{tensor = "model.norm.weight"}]
llm.weight @final_norm : !llm.weight<576> from [{tensor = "model.norm.weight"} ]
// CHECK: llm.weight @query : !llm.weight<64x16> from [{rows = array<i64: 0, 64>, tensor = "qkv.weight", unpermute = 32 : i64}] {add = 1.000000e+00 : f64}
llm.weight @query : !llm.weight<64x16> from [{tensor = "qkv.weight", rows = array<i64: 0, 64>, unpermute = 32}] {add = 1.0 : f64}
// CHECK: llm.weight @experts : !llm.weight<4x3x2> from [{dims = array<i64: 2, 4>, map = "neg_exp", order = array<i64: 1, 0>, stack = 4 : i64, take = array<i64: 0, 2, 1, 4>, tensor = "experts.{expert}.w"}]
llm.weight @experts : !llm.weight<4x3x2> from [{tensor = "experts.{expert}.w", stack = 4, dims = array<i64: 2, 4>, take = array<i64: 0, 2, 1, 4>, order = array<i64: 1, 0>, map = "neg_exp"}]
// CHECK: llm.weight @gate : !llm.weight<4x96x64> from [{dims = array<i64: 4, 96, 2, 64>, take = array<i64: 0, 4, 0, 96, 0, 1, 0, 64>, tensor = "gate_up"}]
llm.weight @gate : !llm.weight<4x96x64> from [{tensor = "gate_up", dims = array<i64: 4, 96, 2, 64>, take = array<i64: 0, 4, 0, 96, 0, 1, 0, 64>} ]
// CHECK: llm.state @layers.0.kv : !llm.kv<3x64xf32>
llm.state @layers.0.kv : !llm.kv<3x64xf32>
// CHECK: llm.state @layers.0.memory : !llm.recurrent<4x16x32>
llm.state @layers.0.memory : !llm.recurrent<4x16x32>

// CHECK-LABEL: @types
// CHECK-SAME: !llm.batch, !llm.weight<4>, !llm.weight<4, plain>, !llm.weight<960x576, f32, tile = 64, panel = 64>
// CHECK-SAME: !llm.weight<960x576, i4m, tile = 64, panel = 16, interleave = 32>
// CHECK-SAME: !llm.kv<3x64xbf16, page = 64, panel = 16>, !llm.kv<3x64xbf16, page = 64, panel = 16, pack = 2, block = 32>
func.func private @types(!llm.batch, !llm.weight<4>, !llm.weight<4, plain>, !llm.weight<960x576, f32, tile = 64, panel = 64>,
                         !llm.weight<960x576, i4m, tile = 64, panel = 16, interleave = 32>,
                         !llm.kv<3x64xbf16, page = 64, panel = 16>, !llm.kv<3x64xbf16, page = 64, panel = 16, pack = 2, block = 32>)

// CHECK-LABEL: @more_types
// CHECK-SAME: !llm.weight<16x192x576>, !llm.weight<16x192x576, bf16, tile = 64, panel = 64>
// CHECK-SAME: !llm.kv<3x64xf32, value = 128>, !llm.kv<1x576xf32, latent = 512>
// CHECK-SAME: !llm.kv<1x576xbf16, latent = 512, page = 64, panel = 16>, !llm.kv<3x64xf32>
func.func private @more_types(!llm.weight<16x192x576>, !llm.weight<16x192x576, bf16, tile = 64, panel = 64>,
                              !llm.kv<3x64xf32, value = 128>, !llm.kv<1x576xf32, latent = 512>,
                              !llm.kv<1x576xbf16, latent = 512, page = 64, panel = 16>, !llm.kv<3x64xf32, value = 64>)

// CHECK-LABEL: @symbols
func.func @symbols() {
  // CHECK: llm.use_weight @final_norm : <576>
  %w = llm.use_weight @final_norm : !llm.weight<576>
  // CHECK: llm.use_state @layers.0.kv : !llm.kv<3x64xf32>
  %kv = llm.use_state @layers.0.kv : !llm.kv<3x64xf32>
  // CHECK: llm.use_state @layers.0.memory : !llm.recurrent<4x16x32>
  %s = llm.use_state @layers.0.memory : !llm.recurrent<4x16x32>
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
  // CHECK: llm.rms_norm %{{.+}}, %{{.+}} {eps = {{.+}} : f32} : tensor<?x576xf32>, !llm.weight<576>
  %y = llm.rms_norm %x, %w {eps = 1.0e-6 : f32} : tensor<?x576xf32>, !llm.weight<576>
  // CHECK: llm.rms_norm {{.+}} : tensor<?x9x64xf32>, !llm.weight<64>
  %z = llm.rms_norm %q, %g {eps = 1.0e-6 : f32} : tensor<?x9x64xf32>, !llm.weight<64>
  // CHECK: llm.rms_norm %{{[^,]+}} {eps = {{.+}} : f32} : tensor<?x9x64xf32>
  %u = llm.rms_norm %q {eps = 1.0e-6 : f32} : tensor<?x9x64xf32>
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
  // CHECK: llm.scale %{{.+}} {factor = 1.000000e+00 : f32, offset = -5.000000e-01 : f32} : tensor<?x576xf32>
  %z = llm.scale %x {factor = 1.0 : f32, offset = -0.5 : f32} : tensor<?x576xf32>
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
func.func @rope(%q: tensor<?x9x64xf32>, %r: tensor<?x64xf32>, %s: tensor<?x32xf32>) {
  // CHECK: llm.rope %{{.+}}, %{{.+}} : tensor<?x9x64xf32>, tensor<?x64xf32>
  %y = llm.rope %q, %r : tensor<?x9x64xf32>, tensor<?x64xf32>
  // CHECK: llm.rope %{{.+}}, %{{.+}} {first = 32 : i64, pairing = #llm<pairing adjacent>} : tensor<?x9x64xf32>, tensor<?x32xf32>
  %z = llm.rope %q, %s {first = 32 : i64, pairing = #llm<pairing adjacent>} : tensor<?x9x64xf32>, tensor<?x32xf32>
  // CHECK: llm.rope %{{.+}}, %{{.+}} {inverse} : tensor<?x9x64xf32>, tensor<?x64xf32>
  %i = llm.rope %q, %r {inverse} : tensor<?x9x64xf32>, tensor<?x64xf32>
  return
}

// CHECK-LABEL: @attention
func.func @attention(%q: tensor<?x9x64xf32>, %k: tensor<?x3x64xf32>, %v: tensor<?x3x64xf32>, %kv: !llm.kv<3x64xf32>,
                     %batch: !llm.batch) {
  // CHECK: llm.kv_append %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} : !llm.kv<3x64xf32>, tensor<?x3x64xf32>
  %kv1 = llm.kv_append %kv, %k, %v, %batch : !llm.kv<3x64xf32>, tensor<?x3x64xf32>
  // CHECK: llm.attention %{{.+}}, %{{.+}}, %{{.+}} {scale = 1.250000e-01 : f32, softcap = 0.000000e+00 : f32, window = 0 : i64} : tensor<?x9x64xf32>, <3x64xf32>
  %o = llm.attention %q, %kv1, %batch {scale = 0.125 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x9x64xf32>, !llm.kv<3x64xf32>
  return
}

// CHECK-LABEL: @latent_attention
func.func @latent_attention(%q: tensor<?x9x576xf32>, %c: tensor<?x1x576xf32>, %latents: !llm.kv<1x576xf32, latent = 512>,
                            %batch: !llm.batch) -> tensor<?x9x512xf32> {
  // CHECK: llm.kv_append %{{[^,]+}}, %{{[^,]+}}, %{{[^,]+}} : !llm.kv<1x576xf32, latent = 512>, tensor<?x1x576xf32>
  %kv2 = llm.kv_append %latents, %c, %batch : !llm.kv<1x576xf32, latent = 512>, tensor<?x1x576xf32>
  // CHECK: llm.attention {{.+}} : tensor<?x9x576xf32>, <1x576xf32, latent = 512>
  %o = llm.attention %q, %kv2, %batch {scale = 0.125 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x9x576xf32>, !llm.kv<1x576xf32, latent = 512>
  return %o : tensor<?x9x512xf32>
}

// A cache that an earlier layer grew, and every variant of the formula.
// CHECK-LABEL: @attention_variants
func.func @attention_variants(%q: tensor<?x2x8xf32>, %kv: !llm.kv<1x8xf32, value = 4>, %sinks: !llm.weight<2>,
                              %p: tensor<?x3xf32>, %batch: !llm.batch) -> tensor<?x2x4xf32> {
  // CHECK: llm.attention %{{.+}}, %{{.+}}, %{{.+}} sinks %{{.+}} : !llm.weight<2> selected %{{.+}} : tensor<?x3xf32> {alibi = array<f32: 5.000000e-01, 2.500000e-01>, chunk = 64 : i64, scale
  %o = llm.attention %q, %kv, %batch sinks %sinks : !llm.weight<2> selected %p : tensor<?x3xf32> {scale = 0.5 : f32, softcap = 0.0 : f32, window = 0 : i64, chunk = 64 : i64, alibi = array<f32: 0.5, 0.25>} : tensor<?x2x8xf32>, !llm.kv<1x8xf32, value = 4>
  return %o : tensor<?x2x4xf32>
}

// CHECK-LABEL: @select_positions
func.func @select_positions(%iq: tensor<?x4x32xf32>, %iw: tensor<?x4xf32>, %keys: !llm.kv<1x32xf32, latent = 32>,
                            %k: tensor<?x1x32xf32>, %batch: !llm.batch) {
  %ikv = llm.kv_append %keys, %k, %batch : !llm.kv<1x32xf32, latent = 32>, tensor<?x1x32xf32>
  // CHECK: llm.select_positions %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} : tensor<?x4x32xf32>, tensor<?x4xf32>, <1x32xf32, latent = 32> -> tensor<?x8xf32>
  %p = llm.select_positions %iq, %iw, %ikv, %batch : tensor<?x4x32xf32>, tensor<?x4xf32>, !llm.kv<1x32xf32, latent = 32> -> tensor<?x8xf32>
  return
}

// CHECK-LABEL: @layer_norm
func.func @layer_norm(%x: tensor<?x576xf32>, %w: !llm.weight<576>, %b: !llm.weight<576>) {
  // CHECK: llm.layer_norm %{{.+}}, %{{.+}} bias %{{.+}} {eps = {{.+}} : f32} : tensor<?x576xf32>, !llm.weight<576>, !llm.weight<576>
  %y = llm.layer_norm %x, %w bias %b {eps = 1.0e-5 : f32} : tensor<?x576xf32>, !llm.weight<576>, !llm.weight<576>
  // CHECK: llm.layer_norm %{{[^ ]+}} {eps = {{.+}} : f32} : tensor<?x576xf32>
  %z = llm.layer_norm %x {eps = 1.0e-5 : f32} : tensor<?x576xf32>
  return
}

// CHECK-LABEL: @activations
func.func @activations(%x: tensor<?x576xf32>, %w: !llm.weight<2>) {
  // CHECK: llm.activation sigmoid %{{.+}} : tensor<?x576xf32>
  %y = llm.activation sigmoid %x : tensor<?x576xf32>
  // CHECK: llm.activation gelu_sigmoid
  %a = llm.activation gelu_sigmoid %x : tensor<?x576xf32>
  // CHECK: llm.activation relu2
  %b = llm.activation relu2 %x : tensor<?x576xf32>
  // CHECK: llm.activation softplus
  %c = llm.activation softplus %x : tensor<?x576xf32>
  return
}

// CHECK-LABEL: @xielu
func.func @xielu(%x: tensor<?x576xf32>, %w: !llm.weight<2>) {
  // CHECK: llm.xielu %{{.+}}, %{{.+}} {beta = 5.000000e-01 : f32, eps = {{.+}} : f32} : tensor<?x576xf32>, <2>
  %y = llm.xielu %x, %w {beta = 0.5 : f32, eps = -1.0e-6 : f32} : tensor<?x576xf32>, !llm.weight<2>
  return
}

// CHECK-LABEL: @multiply
func.func @multiply(%a: tensor<?x576xf32>, %b: tensor<?x576xf32>, %q: tensor<?x9x64xf32>, %g: tensor<?x9xf32>) {
  // CHECK: llm.multiply %{{.+}}, %{{.+}} : tensor<?x576xf32>, tensor<?x576xf32>
  %y = llm.multiply %a, %b : tensor<?x576xf32>, tensor<?x576xf32>
  // CHECK: llm.multiply %{{.+}}, %{{.+}} : tensor<?x9x64xf32>, tensor<?x9xf32>
  %z = llm.multiply %q, %g : tensor<?x9x64xf32>, tensor<?x9xf32>
  return
}

// CHECK-LABEL: @affine
func.func @affine(%x: tensor<?x576xf32>, %w: !llm.weight<576>, %b: !llm.weight<576>, %q: tensor<?x9x64xf32>, %h: !llm.weight<9>,
                  %one: !llm.weight<1>) {
  // CHECK: llm.affine %{{.+}} gain %{{.+}} bias %{{.+}} : tensor<?x576xf32> gain !llm.weight<576> bias !llm.weight<576>
  %y = llm.affine %x gain %w bias %b : tensor<?x576xf32> gain !llm.weight<576> bias !llm.weight<576>
  // CHECK: llm.affine %{{.+}} gain %{{.+}} {per_head} : tensor<?x9x64xf32> gain !llm.weight<9>
  %z = llm.affine %q gain %h {per_head} : tensor<?x9x64xf32> gain !llm.weight<9>
  // CHECK: llm.affine %{{.+}} bias %{{.+}} : tensor<?x576xf32> bias !llm.weight<1>
  %v = llm.affine %x bias %one : tensor<?x576xf32> bias !llm.weight<1>
  return
}

// CHECK-LABEL: @bounds
func.func @bounds(%x: tensor<?x576xf32>) {
  // CHECK: llm.clamp %{{.+}} {high = 7.000000e+00 : f32, low = -7.000000e+00 : f32} : tensor<?x576xf32>
  %y = llm.clamp %x {low = -7.0 : f32, high = 7.0 : f32} : tensor<?x576xf32>
  // CHECK: llm.clamp %{{.+}} {high = 7.000000e+00 : f32, low = 0xFF800000 : f32} : tensor<?x576xf32>
  %z = llm.clamp %x {low = 0xFF800000 : f32, high = 7.0 : f32} : tensor<?x576xf32>
  return
}

// CHECK-LABEL: @softmax
func.func @softmax(%x: tensor<?x8xf32>) {
  // CHECK: llm.softmax %{{.+}} : tensor<?x8xf32>
  %y = llm.softmax %x : tensor<?x8xf32>
  return
}

// CHECK-LABEL: @channels
func.func @channels(%a: tensor<?x512xf32>, %b: tensor<?x64xf32>) {
  // CHECK: llm.concat %{{.+}}, %{{.+}} : tensor<?x512xf32>, tensor<?x64xf32> -> tensor<?x576xf32>
  %y = llm.concat %a, %b : tensor<?x512xf32>, tensor<?x64xf32> -> tensor<?x576xf32>
  return
}

// CHECK-LABEL: @slice
func.func @slice(%x: tensor<?x576xf32>) {
  // CHECK: llm.slice %{{.+}} at 512 : tensor<?x576xf32> -> tensor<?x64xf32>
  %y = llm.slice %x at 512 : tensor<?x576xf32> -> tensor<?x64xf32>
  return
}

// CHECK-LABEL: @repeat_heads
func.func @repeat_heads(%x: tensor<?x3x64xf32>) {
  // CHECK: llm.repeat_heads %{{.+}} {times = 3 : i64} : tensor<?x3x64xf32> -> tensor<?x9x64xf32>
  %y = llm.repeat_heads %x {times = 3 : i64} : tensor<?x3x64xf32> -> tensor<?x9x64xf32>
  return
}

// CHECK-LABEL: @positions
func.func @positions(%batch: !llm.batch, %w: !llm.weight<2050x768>, %q: tensor<?x9x64xf32>) {
  // CHECK: llm.position_embedding %{{.+}}, %{{.+}} {offset = 2 : i64} : <2050x768> -> tensor<?x768xf32>
  %p = llm.position_embedding %batch, %w {offset = 2 : i64} : !llm.weight<2050x768> -> tensor<?x768xf32>
  // CHECK: llm.position_scale %{{.+}}, %{{.+}} {offset = 1 : i64, period = 8192 : i64, scale = 1.000000e-01 : f32} : tensor<?x9x64xf32>
  %y = llm.position_scale %q, %batch {scale = 0.1 : f32, period = 8192 : i64, offset = 1 : i64} : tensor<?x9x64xf32>
  return
}

// CHECK-LABEL: @router
func.func @router(%x: tensor<?x16xf32>, %b: !llm.weight<16>) {
  // CHECK: llm.router sigmoid %{{.+}} bias %{{.+}} {group_sum = 2 : i64, groups = 2 : i64, {{.+}}top_groups = 1 : i64, top_k = 4 : i64} : tensor<?x16xf32>, !llm.weight<16> -> tensor<?x4xf32>
  %w, %e = llm.router sigmoid %x bias %b {top_k = 4 : i64, groups = 2 : i64, top_groups = 1 : i64, group_sum = 2 : i64, normalize = true, norm_eps = 1.0e-20 : f32, scale = 2.5 : f32, jitter = 0.0 : f32} : tensor<?x16xf32>, !llm.weight<16> -> tensor<?x4xf32>
  // CHECK: llm.router sparse_mixer %{{[^ ]+}} {{.+}} : tensor<?x16xf32> -> tensor<?x2xf32>
  %m, %f = llm.router sparse_mixer %x {top_k = 2 : i64, groups = 1 : i64, top_groups = 1 : i64, group_sum = 1 : i64, normalize = false, norm_eps = 0.0 : f32, scale = 1.0 : f32, jitter = 0.01 : f32} : tensor<?x16xf32> -> tensor<?x2xf32>
  return
}

// CHECK-LABEL: @expert_linear
func.func @expert_linear(%x: tensor<?x576xf32>, %w: !llm.weight<16x192x576>, %e: tensor<?x4xf32>, %down: !llm.weight<16x576x192>,
                         %b: !llm.weight<16x576>) {
  // CHECK: llm.expert_linear %{{.+}}, %{{.+}}, %{{.+}} : tensor<?x576xf32>, <16x192x576>, tensor<?x4xf32> -> tensor<?x4x192xf32>
  %y = llm.expert_linear %x, %w, %e : tensor<?x576xf32>, !llm.weight<16x192x576>, tensor<?x4xf32> -> tensor<?x4x192xf32>
  // CHECK: llm.expert_linear %{{.+}}, %{{.+}}, %{{.+}} bias %{{.+}} : tensor<?x4x192xf32>, <16x576x192>, tensor<?x4xf32>, !llm.weight<16x576> -> tensor<?x4x576xf32>
  %z = llm.expert_linear %y, %down, %e bias %b : tensor<?x4x192xf32>, !llm.weight<16x576x192>, tensor<?x4xf32>, !llm.weight<16x576> -> tensor<?x4x576xf32>
  return
}

// CHECK-LABEL: @head_linear
func.func @head_linear(%q: tensor<?x9x64xf32>, %w: !llm.weight<9x512x64>) {
  // CHECK: llm.head_linear %{{.+}}, %{{.+}} : tensor<?x9x64xf32>, <9x512x64> -> tensor<?x9x512xf32>
  %y = llm.head_linear %q, %w : tensor<?x9x64xf32>, !llm.weight<9x512x64> -> tensor<?x9x512xf32>
  return
}

// CHECK-LABEL: @combine
func.func @combine(%x: tensor<?x4x576xf32>, %w: tensor<?x4xf32>) {
  // CHECK: llm.combine %{{.+}}, %{{.+}} : tensor<?x4x576xf32>, tensor<?x4xf32> -> tensor<?x576xf32>
  %y = llm.combine %x, %w : tensor<?x4x576xf32>, tensor<?x4xf32> -> tensor<?x576xf32>
  return
}

// CHECK-LABEL: @short_conv
func.func @short_conv(%x: tensor<?x576xf32>, %w: !llm.weight<576x4>, %b: !llm.weight<576>, %s: !llm.recurrent<1x576x3>,
                      %s1: !llm.recurrent<1x576x3>, %batch: !llm.batch) {
  // CHECK: llm.short_conv %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} : tensor<?x576xf32>, <576x4>, <1x576x3>
  %y = llm.short_conv %x, %w, %s, %batch : tensor<?x576xf32>, !llm.weight<576x4>, !llm.recurrent<1x576x3>
  // CHECK: llm.short_conv %{{.+}}, %{{.+}} bias %{{.+}}, %{{.+}}, %{{.+}} : tensor<?x576xf32>, <576x4> bias !llm.weight<576>, <1x576x3>
  %z = llm.short_conv %x, %w bias %b, %s1, %batch : tensor<?x576xf32>, !llm.weight<576x4> bias !llm.weight<576>, !llm.recurrent<1x576x3>
  return
}

// CHECK-LABEL: @linear_attention
func.func @linear_attention(%q: tensor<?x2x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x4x32xf32>, %g: tensor<?x4x16xf32>,
                            %b: tensor<?x4xf32>, %s: !llm.recurrent<4x16x32>, %s1: !llm.recurrent<4x16x32>, %batch: !llm.batch) {
  // CHECK: llm.linear_attention %{{.+}}, %{{.+}}, %{{.+}} decay %{{.+}} beta %{{.+}}, %{{.+}}, %{{.+}} : tensor<?x2x16xf32>, tensor<?x4x32xf32> decay tensor<?x4x16xf32> beta tensor<?x4xf32>, <4x16x32>
  %o = llm.linear_attention %q, %k, %v decay %g beta %b, %s, %batch : tensor<?x2x16xf32>, tensor<?x4x32xf32> decay tensor<?x4x16xf32> beta tensor<?x4xf32>, !llm.recurrent<4x16x32>
  // CHECK: llm.linear_attention %{{[^ ]+}}, %{{[^ ]+}}, %{{[^ ]+}}, %{{[^ ]+}}, %{{[^ ]+}} : tensor<?x2x16xf32>, tensor<?x4x32xf32>, <4x16x32>
  %p = llm.linear_attention %q, %k, %v, %s1, %batch : tensor<?x2x16xf32>, tensor<?x4x32xf32>, !llm.recurrent<4x16x32>
  return
}

// CHECK-LABEL: @window_pool
func.func @window_pool(%v: tensor<?x64xf32>, %g: tensor<?x64xf32>, %s: !llm.recurrent<1x9x32>, %batch: !llm.batch) {
  // CHECK: llm.window_pool %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} {window = 4 : i64} : tensor<?x64xf32>, <1x9x32> -> tensor<?x32xf32>
  %y = llm.window_pool %v, %g, %s, %batch {window = 4 : i64} : tensor<?x64xf32>, !llm.recurrent<1x9x32> -> tensor<?x32xf32>
  return
}

// CHECK-LABEL: @sinkhorn
func.func @sinkhorn(%x: tensor<?x4x4xf32>) {
  // CHECK: llm.sinkhorn %{{.+}} {eps = {{.+}} : f32, iterations = 20 : i64} : tensor<?x4x4xf32>
  %m = llm.sinkhorn %x {iterations = 20 : i64, eps = 1.0e-6 : f32} : tensor<?x4x4xf32>
  return
}

// CHECK-LABEL: @given_experts
func.func @given_experts(%x: tensor<?x16xf32>, %batch: !llm.batch, %table: !llm.weight<320x4>) {
  // CHECK: %[[C:.+]] = llm.embedding %{{.+}}, %{{.+}} {exact, scale = 1.000000e+00 : f32} : <320x4> -> tensor<?x4xf32>
  %c = llm.embedding %batch, %table {scale = 1.0 : f32, exact} : !llm.weight<320x4> -> tensor<?x4xf32>
  // CHECK: llm.router sqrt_softplus %{{[^ ]+}} chosen %[[C]] {{.+}} : tensor<?x16xf32> chosen tensor<?x4xf32> -> tensor<?x4xf32>
  %u, %f = llm.router sqrt_softplus %x chosen %c {top_k = 4 : i64, groups = 1 : i64, top_groups = 1 : i64, group_sum = 1 : i64, normalize = true, norm_eps = 1.0e-20 : f32, scale = 1.5 : f32, jitter = 0.0 : f32} : tensor<?x16xf32> chosen tensor<?x4xf32> -> tensor<?x4xf32>
  return
}

// CHECK-LABEL: @one_row_of_several_positions
func.func @one_row_of_several_positions(%q: tensor<?x9x64xf32>, %c: tensor<?x1x64xf32>, %old: !llm.kv<1x64xf32, latent = 64, every = 4>,
                                        %w: !llm.weight<4x64>, %batch: !llm.batch) {
  // CHECK: llm.position_embedding %{{.+}}, %{{.+}} {offset = 0 : i64, period = 4 : i64} : <4x64> -> tensor<?x64xf32>
  %p = llm.position_embedding %batch, %w {offset = 0 : i64, period = 4 : i64} : !llm.weight<4x64> -> tensor<?x64xf32>
  // CHECK: llm.rope_table %{{.+}} {{.+}}step = 4 : i64} : tensor<?x4xf32>
  %r = llm.rope_table %batch {frequencies = array<f32: 1.0, 0.1>, magnitude = 1.0 : f32, step = 4 : i64} : tensor<?x4xf32>
  // CHECK: %[[KV:.+]] = llm.kv_append %{{.+}}, %{{.+}}, %{{.+}} : !llm.kv<1x64xf32, latent = 64, every = 4>, tensor<?x1x64xf32>
  %kv4 = llm.kv_append %old, %c, %batch : !llm.kv<1x64xf32, latent = 64, every = 4>, tensor<?x1x64xf32>
  // CHECK: %{{.+}}, %{{.+}} = llm.attention %{{.+}}, %[[KV]], %{{.+}} {{.+}}with_logsum} : tensor<?x9x64xf32>, <1x64xf32, latent = 64, every = 4>
  %m, %l = llm.attention %q, %kv4, %batch {scale = 0.125 : f32, softcap = 0.0 : f32, window = 0 : i64, with_logsum} : tensor<?x9x64xf32>, !llm.kv<1x64xf32, latent = 64, every = 4>
  return
}

// CHECK: llm.weight @part : !llm.weight<48x16> from [{tensor = "a"}] {of = array<i64: 96, 16>, parts = [array<i64: 0, 0, 96>, array<i64: -1, 0, 16>]}
llm.weight @part : !llm.weight<48x16> from [{tensor = "a"}] {of = array<i64: 96, 16>, parts = [array<i64: 0, 0, 96>, array<i64: -1, 0, 16>]}

// CHECK-LABEL: @fill
func.func @fill(%batch: !llm.batch) {
  // CHECK: llm.fill %{{.+}} {value = 0.000000e+00 : f32} : tensor<?x576xf32>
  %z = llm.fill %batch {value = 0.0 : f32} : tensor<?x576xf32>
  return
}

// CHECK-LABEL: @all_gather
func.func @all_gather(%batch: !llm.batch, %x: tensor<?x64xf32>) {
  // CHECK: llm.all_gather %{{.+}}, %{{.+}} : tensor<?x64xf32> {segments = [array<i64: 0, 64, 64, 96>]} -> tensor<?x96xf32>
  %y = llm.all_gather %batch, %x : tensor<?x64xf32> {segments = [array<i64: 0, 64, 64, 96>]} -> tensor<?x96xf32>
  // CHECK: llm.all_gather %{{.+}} {segments = [array<i64: 0, 96, 96, 96>]} -> tensor<?x96xf32>
  %z = llm.all_gather %batch {segments = [array<i64: 0, 96, 96, 96>]} -> tensor<?x96xf32>
  return
}

// CHECK-LABEL: @send
func.func @send(%batch: !llm.batch, %h: tensor<?x576xf32>) {
  // CHECK: llm.send %{{.+}}, %{{.+}} {stage = 1 : i64} : tensor<?x576xf32>
  llm.send %h, %batch {stage = 1 : i64} : tensor<?x576xf32>
  return
}

// CHECK-LABEL: @receive
func.func @receive(%batch: !llm.batch) {
  // CHECK: llm.receive %{{.+}} {stage = 0 : i64} : tensor<?x576xf32>
  %h = llm.receive %batch {stage = 0 : i64} : tensor<?x576xf32>
  return
}
