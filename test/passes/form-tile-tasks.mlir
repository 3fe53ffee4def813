// RUN: llmc-opt %s --llmc-form-tile-tasks | FileCheck %s

llm.weight @norm : !llm.weight<64, plain> from [{tensor = "norm"}]
llm.weight @qkv : !llm.weight<128x64, bf16> from [{tensor = "q"}, {tensor = "k"}, {tensor = "v"}]
llm.weight @o : !llm.weight<64x64, bf16> from [{tensor = "o"}]
llm.weight @gu : !llm.weight<192x64, i4> from [{tensor = "g"}, {tensor = "u"}]
llm.weight @down : !llm.weight<64x96, f32> from [{tensor = "down"}]
llm.weight @embedding : !llm.weight<320x64, i8> from [{tensor = "e"}]
llm.state @kv : !llm.kv<2x16xbf16, page = 64, panel = 16>

func.func private @layer(%h: tensor<?x64xf32>, %batch: !llm.batch, %kv: !llm.kv<2x16xbf16, page = 64, panel = 16>, %rope: tensor<?x16xf32>,
    %norm: !llm.weight<64, plain>, %qkv: !llm.weight<128x64, bf16>, %o: !llm.weight<64x64, bf16>, %gu: !llm.weight<192x64, i4>, %down: !llm.weight<64x96, f32>) -> tensor<?x64xf32> {
  %n = llm.rms_norm %h, %norm {eps = 1.0e-6 : f32} : tensor<?x64xf32>, !llm.weight<64, plain>
  %q, %k, %v = llm.fused_linear %n, %qkv : tensor<?x64xf32>, !llm.weight<128x64, bf16> -> tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>
  %qh = llm.split_heads %q : tensor<?x64xf32> -> tensor<?x4x16xf32>
  %kh = llm.split_heads %k : tensor<?x32xf32> -> tensor<?x2x16xf32>
  %vh = llm.split_heads %v : tensor<?x32xf32> -> tensor<?x2x16xf32>
  %qr = llm.rope %qh, %rope : tensor<?x4x16xf32>, tensor<?x16xf32>
  %kr = llm.rope %kh, %rope : tensor<?x2x16xf32>, tensor<?x16xf32>
  %grown = llm.kv_append %kv, %kr, %vh, %batch : !llm.kv<2x16xbf16, page = 64, panel = 16>, tensor<?x2x16xf32>
  %a = llm.attention %qr, %grown, %batch {scale = 0.25 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x4x16xf32>, !llm.kv<2x16xbf16, page = 64, panel = 16>
  %m = llm.merge_heads %a : tensor<?x4x16xf32> -> tensor<?x64xf32>
  %op = llm.linear %m, %o : tensor<?x64xf32>, !llm.weight<64x64, bf16> -> tensor<?x64xf32>
  %h1 = llm.add %h, %op : tensor<?x64xf32>
  %n1 = llm.rms_norm %h1, %norm {eps = 1.0e-6 : f32} : tensor<?x64xf32>, !llm.weight<64, plain>
  %g, %u = llm.fused_linear %n1, %gu : tensor<?x64xf32>, !llm.weight<192x64, i4> -> tensor<?x96xf32>, tensor<?x96xf32>
  %act = llm.gated_activation silu %g, %u : tensor<?x96xf32>
  %d = llm.linear %act, %down : tensor<?x96xf32>, !llm.weight<64x96, f32> -> tensor<?x64xf32>
  %h2 = llm.add %h1, %d : tensor<?x64xf32>
  return %h2 : tensor<?x64xf32>
}

// CHECK-LABEL: func.func @step
func.func @step(%batch: !llm.batch) -> tensor<?x320xf32> {
  %e = llm.use_weight @embedding : !llm.weight<320x64, i8>
  %h = llm.embedding %batch, %e {scale = 1.0 : f32} : !llm.weight<320x64, i8> -> tensor<?x64xf32>
  llm.record %h, %batch {index = 0 : i64} : tensor<?x64xf32>
  %rope = llm.rope_table %batch {frequencies = array<f32: 1.0, 0.5, 0.25, 0.125, 0.1, 0.05, 0.02, 0.01>, magnitude = 1.0 : f32} : tensor<?x16xf32>
  %kv = llm.use_state @kv : !llm.kv<2x16xbf16, page = 64, panel = 16>
  %norm = llm.use_weight @norm : !llm.weight<64, plain>
  %qkv = llm.use_weight @qkv : !llm.weight<128x64, bf16>
  %o = llm.use_weight @o : !llm.weight<64x64, bf16>
  %gu = llm.use_weight @gu : !llm.weight<192x64, i4>
  %down = llm.use_weight @down : !llm.weight<64x96, f32>
  %h1 = call @layer(%h, %batch, %kv, %rope, %norm, %qkv, %o, %gu, %down) : (tensor<?x64xf32>, !llm.batch, !llm.kv<2x16xbf16, page = 64, panel = 16>, tensor<?x16xf32>, !llm.weight<64, plain>, !llm.weight<128x64, bf16>, !llm.weight<64x64, bf16>, !llm.weight<192x64, i4>, !llm.weight<64x96, f32>) -> tensor<?x64xf32>
  llm.record %h1, %batch {index = 1 : i64} : tensor<?x64xf32>
  %fn = llm.rms_norm %h1, %norm {eps = 1.0e-6 : f32} : tensor<?x64xf32>, !llm.weight<64, plain>
  llm.record %fn, %batch {index = 2 : i64} : tensor<?x64xf32>
  %s = llm.select_rows %h1, %batch : tensor<?x64xf32>
  %f = llm.rms_norm %s, %norm {eps = 1.0e-6 : f32} : tensor<?x64xf32>, !llm.weight<64, plain>
  %l = llm.linear %f, %e : tensor<?x64xf32>, !llm.weight<320x64, i8> -> tensor<?x320xf32>
  %c = llm.softcap %l {cap = 30.0 : f32} : tensor<?x320xf32>
  return %c : tensor<?x320xf32>
}
