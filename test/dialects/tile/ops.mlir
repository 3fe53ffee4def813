// RUN: llmc-opt %s | llmc-opt | FileCheck %s
// RUN: llmc-opt %s --mlir-print-op-generic | llmc-opt | FileCheck %s

// Every op as its description shows it, through print and parse and through the generic form.

// CHECK: tile.task @add rows(%[[ROW:.+]], %[[COLUMN:.+]] of 9) (%[[A:.+]]: !tile.rows<576>, %{{.+}}: !tile.rows<576>)
tile.task @add rows(%row, %column of 9) (%a: !tile.rows<576>, %out: !tile.rows<576>) {
  %c64 = arith.constant 64 : index
  // CHECK: %[[AT:.+]] = arith.muli %[[COLUMN]]
  %at = arith.muli %column, %c64 : index
  // CHECK: tile.load %[[A]][%[[ROW]], %[[AT]]] : <576> -> tensor<64xf32>
  %x = tile.load %a[%row, %at] : !tile.rows<576> -> tensor<64xf32>
  // CHECK: tile.store %{{.+}}, %{{.+}}[%[[ROW]], %[[AT]]] : tensor<64xf32>, <576>
  tile.store %x, %out[%row, %at] : tensor<64xf32>, !tile.rows<576>
}

// CHECK: tile.task @empty logit_rows(%{{.+}}, %{{.+}} of 1) () schedule {rows = 4 : i64} attributes {note = "kept"}
tile.task @empty logit_rows(%row, %column of 1) () schedule {rows = 4} attributes {note = "kept"} {
}

// CHECK-LABEL: @program
func.func @program(%h: !tile.rows<576>) {
  // CHECK: %[[S:.+]] = tile.alloc : <576>
  %s = tile.alloc : !tile.rows<576>
  // CHECK: tile.alloc at 2304 : <576>
  %t = tile.alloc at 2304 : !tile.rows<576>
  // CHECK: tile.logits : <49152>
  %l = tile.logits : !tile.rows<49152>
  // CHECK: tile.launch @add(%{{.+}}, %[[S]]) : !tile.rows<576>, !tile.rows<576>
  tile.launch @add(%h, %s) : !tile.rows<576>, !tile.rows<576>
  // CHECK: tile.launch @add(%{{.+}}, %{{.+}}) recording : !tile.rows<576>, !tile.rows<576>
  tile.launch @add(%h, %s) recording : !tile.rows<576>, !tile.rows<576>
  // CHECK: tile.launch @empty(){{$}}
  tile.launch @empty()
  return
}

// CHECK-LABEL: @exchanges
func.func @exchanges(%a: !tile.rows<576>, %s: !tile.rows<576>, %p: !tile.rows<64>, %whole: !tile.rows<96>) {
  // CHECK: tile.all_reduce rows %{{.+}} to %{{.+}} : <576>
  tile.all_reduce rows %a to %s : !tile.rows<576>
  // CHECK: tile.all_reduce logit_rows %{{.+}} to %{{.+}} : <576>
  tile.all_reduce logit_rows %a to %s : !tile.rows<576>
  // CHECK: tile.all_gather rows %{{.+}} : !tile.rows<64> to %{{.+}} : <96> {segments = [array<i64: 0, 64, 64, 96>]}
  tile.all_gather rows %p : !tile.rows<64> to %whole : !tile.rows<96> {segments = [array<i64: 0, 64, 64, 96>]}
  // CHECK: tile.all_gather rows to %{{.+}} : <96> {segments = [array<i64: 0, 96, 96, 96>]}
  tile.all_gather rows to %whole : !tile.rows<96> {segments = [array<i64: 0, 96, 96, 96>]}
  // CHECK: tile.send rows %{{.+}} to stage 1 : <576>
  tile.send rows %a to stage 1 : !tile.rows<576>
  // CHECK: %[[TOKEN:.+]] = tile.all_reduce rows %{{.+}} to %{{.+}} : <576> -> !tile.token
  // CHECK: tile.wait %[[TOKEN]]{{$}}
  %t = tile.all_reduce rows %a to %s : !tile.rows<576> -> !tile.token
  tile.wait %t
  // CHECK: %[[OF_BLOCK:.+]] = tile.send rows %{{.+}} to stage 1 {tile.block = 1 : i64} : <576> -> !tile.token
  // CHECK: tile.wait %[[OF_BLOCK]] {tile.block = 1 : i64}
  %u = tile.send rows %a to stage 1 {tile.block = 1 : i64} : !tile.rows<576> -> !tile.token
  tile.wait %u {tile.block = 1 : i64}
  // CHECK: tile.receive rows %{{.+}} from stage 0 : <576>
  tile.receive rows %a from stage 0 : !tile.rows<576>
  return
}

// CHECK: tile.task @vectors
tile.task @vectors rows(%row, %at of 1) (%w: !llm.weight<576, plain>) {
  // CHECK: tile.load_vector %{{.+}}[%{{.+}}] : <576, plain> -> tensor<64xf32>
  %g = tile.load_vector %w[%at] : !llm.weight<576, plain> -> tensor<64xf32>
}

// CHECK: tile.task @gather
tile.task @gather rows(%row, %column of 1) (%w: !llm.weight<49152x576, bf16, tile = 64, panel = 64>, %batch: !llm.batch) {
  // CHECK: tile.batch token %{{.+}}[%{{.+}}]
  %token = tile.batch token %batch[%row]
  // CHECK: tile.batch position %{{.+}}[%{{.+}}]
  %p = tile.batch position %batch[%row]
  // CHECK: tile.gather %{{.+}}[%{{.+}}] : <49152x576, bf16, tile = 64, panel = 64> -> tensor<576xf32>
  %x = tile.gather %w[%token] : !llm.weight<49152x576, bf16, tile = 64, panel = 64> -> tensor<576xf32>
  // CHECK: tile.record %{{.+}}, %{{.+}}[%{{.+}}] at 3 : tensor<576xf32>
  tile.record %x, %batch[%row] at 3 : tensor<576xf32>
}

// CHECK: tile.task @select
tile.task @select logit_rows(%row, %column of 1) (%batch: !llm.batch) {
  // CHECK: tile.batch logit_row %{{.+}}[%{{.+}}]
  %r = tile.batch logit_row %batch[%row]
}

// CHECK: tile.task @dot
tile.task @dot rows(%row, %column of 15) (%a: !tile.rows<576>, %w: !llm.weight<960x576, bf16, tile = 64, panel = 64>) {
  %c0 = arith.constant 0 : index
  %h = tile.load %a[%row, %c0] : !tile.rows<576> -> tensor<576xf32>
  %x = arith.truncf %h : tensor<576xf32> to tensor<576xbf16>
  // CHECK: tile.dot %{{.+}}, %{{.+}}[%{{.+}}] : tensor<576xbf16>, <960x576, bf16, tile = 64, panel = 64> -> tensor<64xf32>
  %y = tile.dot %x, %w[%column] : tensor<576xbf16>, !llm.weight<960x576, bf16, tile = 64, panel = 64> -> tensor<64xf32>
}

// CHECK: tile.task @scaled_dot
tile.task @scaled_dot rows(%row, %column of 15) (%a: !tile.rows<576>, %w: !llm.weight<960x576, i4, tile = 64, panel = 16>) {
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%row, %c0] : !tile.rows<576> -> tensor<576xf32>
  // CHECK: tile.quantize %{{.+}} : tensor<576xf32> -> tensor<576xi16>, tensor<18xf32>
  %c, %s = tile.quantize %x : tensor<576xf32> -> tensor<576xi16>, tensor<18xf32>
  // CHECK: tile.scaled_dot %{{.+}}, %{{.+}}, %{{.+}}[%{{.+}}] : tensor<576xi16>, tensor<18xf32>, <960x576, i4, tile = 64, panel = 16> -> tensor<64xf32>
  %y = tile.scaled_dot %c, %s, %w[%column] : tensor<576xi16>, tensor<18xf32>, !llm.weight<960x576, i4, tile = 64, panel = 16> -> tensor<64xf32>
}

// CHECK: tile.task @reduce
tile.task @reduce rows(%row, %column of 1) (%r: !tile.rows<576>) {
  %c0 = arith.constant 0 : index
  %x = tile.load %r[%row, %c0] : !tile.rows<576> -> tensor<576xf32>
  // CHECK: tile.reduce add %{{.+}} : tensor<576xf32>
  %s = tile.reduce add %x : tensor<576xf32>
  // CHECK: tile.reduce max %{{.+}} : tensor<576xf32>
  %m = tile.reduce max %x : tensor<576xf32>
  // CHECK: tile.splat %{{.+}} : tensor<576xf32>
  %v = tile.splat %s : tensor<576xf32>
}

// CHECK: tile.task @pieces
tile.task @pieces rows(%row, %column of 10) (%r: !tile.rows<640>, %out: !tile.rows<576>) {
  %c64 = arith.constant 64 : index
  %at = arith.muli %column, %c64 : index
  %x = tile.load %r[%row, %at] : !tile.rows<640> -> tensor<64xf32>
  // CHECK: tile.slice %{{.+}} at 32 : tensor<64xf32> -> tensor<32xf32>
  %a = tile.slice %x at 32 : tensor<64xf32> -> tensor<32xf32>
  %b = tile.slice %x at 0 : tensor<64xf32> -> tensor<32xf32>
  // CHECK: tile.concat %{{.+}}, %{{.+}} : tensor<32xf32>, tensor<32xf32> -> tensor<64xf32>
  %y = tile.concat %a, %b : tensor<32xf32>, tensor<32xf32> -> tensor<64xf32>
  // CHECK: tile.when %{{.+}} in 0 to 9 {
  tile.when %column in 0 to 9 {
    tile.store %x, %out[%row, %at] : tensor<64xf32>, !tile.rows<576>
  }
}

// CHECK: tile.task @cache
tile.task @cache rows(%row, %head of 3) (%r: !tile.rows<576>, %kv: !llm.kv<3x64xbf16, page = 64, panel = 16>, %batch: !llm.batch, %p: !tile.rows<864>) {
  %c192 = arith.constant 192 : index
  %at = arith.muli %head, %c192 : index
  %q = tile.load %r[%row, %at] : !tile.rows<576> -> tensor<192xf32>
  %k = tile.slice %q at 0 : tensor<192xf32> -> tensor<64xf32>
  // CHECK: tile.append key %{{.+}}, %{{.+}}[%{{.+}}], %{{.+}}[%{{.+}}] : tensor<64xf32>, <3x64xbf16, page = 64, panel = 16>
  tile.append key %k, %kv[%head], %batch[%row] : tensor<64xf32>, !llm.kv<3x64xbf16, page = 64, panel = 16>
  // CHECK: tile.append value
  tile.append value %k, %kv[%head], %batch[%row] : tensor<64xf32>, !llm.kv<3x64xbf16, page = 64, panel = 16>
  // CHECK: tile.attend %{{.+}}, %{{.+}}[%{{.+}}], %{{.+}}[%{{.+}}] {scale = 1.250000e-01 : f32, softcap = 0.000000e+00 : f32, window = 0 : i64} : tensor<192xf32>, <3x64xbf16, page = 64, panel = 16>
  %o = tile.attend %q, %kv[%head], %batch[%row] {scale = 0.125 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<192xf32>, !llm.kv<3x64xbf16, page = 64, panel = 16>
  // CHECK: tile.attend %{{.+}}, %{{.+}}[%{{.+}}], %{{.+}}[%{{.+}}] partials %{{.+}} : !tile.rows<864> {scale = 1.250000e-01 : f32, softcap = 0.000000e+00 : f32, span = 128 : i64, window = 0 : i64} : tensor<192xf32>
  %s = tile.attend %q, %kv[%head], %batch[%row] partials %p : !tile.rows<864> {scale = 0.125 : f32, softcap = 0.0 : f32, window = 0 : i64, span = 128 : i64} : tensor<192xf32>, !llm.kv<3x64xbf16, page = 64, panel = 16>
}

// CHECK: tile.task @recurrent
tile.task @recurrent rows(%row, %column of 4) (%r: !tile.rows<128>, %state: !llm.recurrent<4x16x32>, %batch: !llm.batch) {
  %q = tile.load %r[%row, %column] : !tile.rows<128> -> tensor<16xf32>
  %k = tile.load %r[%row, %column] : !tile.rows<128> -> tensor<16xf32>
  %v = tile.load %r[%row, %column] : !tile.rows<128> -> tensor<32xf32>
  %a = tile.load %r[%row, %column] : !tile.rows<128> -> tensor<16xf32>
  %b = tile.load %r[%row, %column] : !tile.rows<128> -> tensor<1xf32>
  // CHECK: tile.recur %{{.+}}, %{{.+}}, %{{.+}} decay %{{.+}} beta %{{.+}}, %{{.+}}[%{{.+}}], %{{.+}}[%{{.+}}] : tensor<16xf32>, tensor<32xf32> decay tensor<16xf32> beta tensor<1xf32>, <4x16x32>
  %o = tile.recur %q, %k, %v decay %a beta %b, %state[%column], %batch[%row] : tensor<16xf32>, tensor<32xf32> decay tensor<16xf32> beta tensor<1xf32>, !llm.recurrent<4x16x32>
  // CHECK: tile.recur %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}[%{{.+}}], %{{.+}}[%{{.+}}] : tensor<16xf32>, tensor<32xf32>, <4x16x32>
  %p = tile.recur %q, %k, %v, %state[%column], %batch[%row] : tensor<16xf32>, tensor<32xf32>, !llm.recurrent<4x16x32>
}

// CHECK: tile.task @convolve
tile.task @convolve rows(%row, %column of 9) (%r: !tile.rows<576>, %w: !llm.weight<576x4, f32, tile = 64, panel = 64>, %state: !llm.recurrent<1x576x3>, %batch: !llm.batch) {
  %c64 = arith.constant 64 : index
  %at = arith.muli %column, %c64 : index
  %x = tile.load %r[%row, %at] : !tile.rows<576> -> tensor<64xf32>
  // CHECK: tile.convolve %{{.+}}, %{{.+}}[%{{.+}}], %{{.+}}, %{{.+}}[%{{.+}}] : tensor<64xf32>, <576x4, f32, tile = 64, panel = 64>, <1x576x3>
  %y = tile.convolve %x, %w[%column], %state, %batch[%row] : tensor<64xf32>, !llm.weight<576x4, f32, tile = 64, panel = 64>, !llm.recurrent<1x576x3>
}

// CHECK: tile.task @stacks
tile.task @stacks rows(%row, %column of 15) (%a: !tile.rows<576>, %v: !llm.weight<8x960x576, bf16, tile = 64, panel = 64>, %w: !llm.weight<8x960x576, i8, tile = 64, panel = 16>) {
  %e = arith.constant 3 : index
  %h = tile.load %a[%row, %e] : !tile.rows<576> -> tensor<576xf32>
  %x = arith.truncf %h : tensor<576xf32> to tensor<576xbf16>
  // CHECK: tile.dot %{{.+}}, %{{.+}}[%{{.+}}] of %[[E:.+]] : tensor<576xbf16>, <8x960x576, bf16, tile = 64, panel = 64> -> tensor<64xf32>
  %z = tile.dot %x, %v[%column] of %e : tensor<576xbf16>, !llm.weight<8x960x576, bf16, tile = 64, panel = 64> -> tensor<64xf32>
  %c, %s = tile.quantize %h : tensor<576xf32> -> tensor<576xi16>, tensor<18xf32>
  // CHECK: tile.scaled_dot %{{.+}}, %{{.+}}, %{{.+}}[%{{.+}}] of %[[E]] : {{.+}} -> tensor<64xf32>
  %y = tile.scaled_dot %c, %s, %w[%column] of %e : tensor<576xi16>, tensor<18xf32>, !llm.weight<8x960x576, i8, tile = 64, panel = 16> -> tensor<64xf32>
}

// CHECK: tile.task @repeated
tile.task @repeated rows(%row, %column of 1) (%a: !tile.rows<9>) {
  %x = tile.load %a[%row, %column] : !tile.rows<9> -> tensor<9xf32>
  // CHECK: tile.repeat %{{.+}} : tensor<9xf32> -> tensor<576xf32>
  %y = tile.repeat %x : tensor<9xf32> -> tensor<576xf32>
}

// CHECK: tile.task @places
tile.task @places rows(%row, %column of 1) (%a: !tile.rows<64>) {
  %x = tile.load %a[%row, %column] : !tile.rows<64> -> tensor<64xf32>
  // CHECK: tile.swap_pairs %{{.+}} : tensor<64xf32>
  %y = tile.swap_pairs %x : tensor<64xf32>
  // CHECK: %[[E:.+]] = tile.choose %{{.+}} {group_sum = 2 : i64, groups = 4 : i64, top_groups = 2 : i64} : tensor<64xf32> -> tensor<8xf32>
  %e = tile.choose %x {groups = 4 : i64, top_groups = 2 : i64, group_sum = 2 : i64} : tensor<64xf32> -> tensor<8xf32>
  // CHECK: tile.pick %{{.+}} at %[[E]] : tensor<64xf32>, tensor<8xf32>
  %w = tile.pick %x at %e : tensor<64xf32>, tensor<8xf32>
}

// CHECK-LABEL: tile.task @attention_variants
tile.task @attention_variants rows(%row, %column of 2) (%r: !tile.rows<160>, %kv: !llm.kv<1x40xbf16, latent = 32, page = 64, panel = 1>, %batch: !llm.batch, %p: !tile.rows<256>) {
  %zero = arith.constant 0 : index
  %q = tile.load %r[%row, %zero] : !tile.rows<160> -> tensor<80xf32>
  %k = tile.slice %q at 40 : tensor<80xf32> -> tensor<40xf32>
  %s = tile.slice %q at 0 : tensor<80xf32> -> tensor<2xf32>
  %l = tile.slice %q at 8 : tensor<80xf32> -> tensor<8xf32>
  tile.append key %k, %kv[%zero], %batch[%row] : tensor<40xf32>, !llm.kv<1x40xbf16, latent = 32, page = 64, panel = 1>
  // CHECK: %[[RESULT:.+]] = tile.attend {{.+}} partials %{{.+}} : !tile.rows<256> sinks %{{.+}} : tensor<2xf32> selected %{{.+}} : tensor<8xf32> {alibi = array<f32: 5.000000e-01, 2.500000e-01, 1.250000e-01, 6.250000e-02>, chunk = 128 : i64, {{.+}}} : tensor<80xf32>, <1x40xbf16, latent = 32, page = 64, panel = 1>
  %o = tile.attend %q, %kv[%zero], %batch[%row] partials %p : !tile.rows<256> sinks %s : tensor<2xf32> selected %l : tensor<8xf32> {scale = 0.125 : f32, softcap = 0.0 : f32, window = 0 : i64, chunk = 128 : i64, alibi = array<f32: 0.5, 0.25, 0.125, 0.0625>, span = 64 : i64} : tensor<80xf32>, !llm.kv<1x40xbf16, latent = 32, page = 64, panel = 1>
  // CHECK: tile.store %[[RESULT]], {{.+}} : tensor<64xf32>
  tile.store %o, %r[%row, %zero] : tensor<64xf32>, !tile.rows<160>
  // CHECK: tile.select_positions {{.+}} partials %{{.+}} : !tile.rows<256> {span = 64 : i64} : tensor<80xf32>, tensor<2xf32>, <1x40xbf16, latent = 32, page = 64, panel = 1> -> tensor<8xf32>
  %n = tile.select_positions %q, %s, %kv, %batch[%row] partials %p : !tile.rows<256> {span = 64 : i64} : tensor<80xf32>, tensor<2xf32>, !llm.kv<1x40xbf16, latent = 32, page = 64, panel = 1> -> tensor<8xf32>
}

tile.task @indexer rows(%row, %column of 1) (%r: !tile.rows<160>, %kv: !llm.kv<1x32xbf16, latent = 32, page = 64, panel = 1>, %batch: !llm.batch) {
  %zero = arith.constant 0 : index
  %q = tile.load %r[%row, %zero] : !tile.rows<160> -> tensor<128xf32>
  %w = tile.load %r[%row, %zero] : !tile.rows<160> -> tensor<4xf32>
  // CHECK: tile.select_positions %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}[%{{.+}}] : tensor<128xf32>, tensor<4xf32>, <1x32xbf16, latent = 32, page = 64, panel = 1> -> tensor<8xf32>
  %p = tile.select_positions %q, %w, %kv, %batch[%row] : tensor<128xf32>, tensor<4xf32>, !llm.kv<1x32xbf16, latent = 32, page = 64, panel = 1> -> tensor<8xf32>
  tile.store %p, %r[%row, %zero] : tensor<8xf32>, !tile.rows<160>
}

// CHECK: tile.task @pool
tile.task @pool rows(%row, %column of 2) (%r: !tile.rows<128>, %state: !llm.recurrent<1x9x64>, %batch: !llm.batch) {
  %v = tile.load %r[%row, %column] : !tile.rows<128> -> tensor<64xf32>
  %g = tile.load %r[%row, %column] : !tile.rows<128> -> tensor<64xf32>
  // CHECK: tile.pool %{{.+}}, %{{.+}}, %{{.+}}[%{{.+}}], %{{.+}}[%{{.+}}] {window = 4 : i64} : tensor<64xf32>, <1x9x64> -> tensor<32xf32>
  %y = tile.pool %v, %g, %state[%column], %batch[%row] {window = 4 : i64} : tensor<64xf32>, !llm.recurrent<1x9x64> -> tensor<32xf32>
}

// CHECK: tile.task @sinkhorn
tile.task @sinkhorn rows(%row, %column of 1) (%a: !tile.rows<16>) {
  %x = tile.load %a[%row, %column] : !tile.rows<16> -> tensor<16xf32>
  // CHECK: tile.sinkhorn %{{.+}} {eps = {{.+}} : f32, iterations = 20 : i64} : tensor<16xf32>
  %y = tile.sinkhorn %x {iterations = 20 : i64, eps = 1.0e-6 : f32} : tensor<16xf32>
}

// CHECK: tile.task @attend_rows_of_several_positions
tile.task @attend_rows_of_several_positions rows(%row, %column of 1) (%a: !tile.rows<8>, %kv: !llm.kv<1x4xf32, latent = 4, every = 4, page = 16, panel = 1>, %batch: !llm.batch) {
  %x = tile.load %a[%row, %column] : !tile.rows<8> -> tensor<8xf32>
  // CHECK: %{{.+}}, %{{.+}} = tile.attend %{{.+}}, %{{.+}}[%{{.+}}], %{{.+}}[%{{.+}}] {{.+}}with_logsum} : tensor<8xf32>, <1x4xf32, latent = 4, every = 4, page = 16, panel = 1>
  %o, %l = tile.attend %x, %kv[%column], %batch[%row] {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64, with_logsum} : tensor<8xf32>, !llm.kv<1x4xf32, latent = 4, every = 4, page = 16, panel = 1>
}
