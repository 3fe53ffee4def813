// RUN: llmc-opt %s --llmc-lower-kv-to-pages | FileCheck %s
// RUN: llmc-opt %s --llmc-lower-kv-to-pages="element=f32 page=16" | FileCheck %s --check-prefix=SMALL
// RUN: llmc-opt %s --llmc-lower-kv-to-pages="element=f16" | FileCheck %s --check-prefix=F16
// RUN: llmc-opt %s --llmc-lower-kv-to-pages="element=int8" | FileCheck %s --check-prefix=INT8
// RUN: llmc-opt %s --llmc-lower-kv-to-pages="target=x86-64-v4-amx" | FileCheck %s --check-prefixes=CHECK,BLOCKS
// RUN: llmc-opt %s --llmc-lower-kv-to-pages="target=x86-64-v4" | FileCheck %s --check-prefixes=CHECK,PAIRS
// RUN: llmc-opt %s --llmc-lower-kv-to-pages="target=x86-64-v3" | FileCheck %s --check-prefixes=CHECK,PLAIN

// One head of 17 channels: nothing about pages asks for a round size.
// CHECK: llm.state @kv : !llm.kv<1x17xbf16, page = 64, panel = 16>
// SMALL: llm.state @kv : !llm.kv<1x17xf32, page = 16, panel = 16>
// F16: llm.state @kv : !llm.kv<1x17xf16, page = 64, panel = 16>
// INT8: llm.state @kv : !llm.kv<1x17xi8, page = 64, panel = 16>
llm.state @kv : !llm.kv<1x17xf32>
// A cache that has its pages keeps them.
// CHECK: llm.state @paged : !llm.kv<2x16xf32, page = 32, panel = 16>
// SMALL: llm.state @paged : !llm.kv<2x16xf32, page = 32, panel = 16>
llm.state @paged : !llm.kv<2x16xf32, page = 32, panel = 16>
// Widths of values stay as they are. Those of a latent cache are read from its keys, which lie in rows.
// CHECK: llm.state @latents : !llm.kv<1x576xbf16, latent = 512, page = 64, panel = 1>
llm.state @latents : !llm.kv<1x576xf32, latent = 512>
// CHECK: llm.state @wide : !llm.kv<2x16xbf16, value = 32, page = 64, panel = 16>
llm.state @wide : !llm.kv<2x16xf32, value = 32>
// A state of fixed size has no pages.
// CHECK: llm.state @memory : !llm.recurrent<4x16x32>
llm.state @memory : !llm.recurrent<4x16x32>

// Arguments, results and the function's type follow; what is no cache does not change.
// CHECK-LABEL: func.func private @layer
// CHECK-SAME: (%[[Q:.+]]: tensor<?x3x17xf32>, %[[K:.+]]: tensor<?x1x17xf32>, %[[BATCH:.+]]: !llm.batch, %[[KV:.+]]: !llm.kv<1x17xbf16, page = 64, panel = 16>)
// CHECK-NEXT: %[[GROWN:.+]] = llm.kv_append %[[KV]], {{.+}} : !llm.kv<1x17xbf16, page = 64, panel = 16>
// CHECK-NEXT: llm.attention %[[Q]], %[[GROWN]], {{.+}} <1x17xbf16, page = 64, panel = 16>
func.func private @layer(%q: tensor<?x3x17xf32>, %k: tensor<?x1x17xf32>, %batch: !llm.batch, %kv: !llm.kv<1x17xf32>) -> tensor<?x3x17xf32> {
  %grown = llm.kv_append %kv, %k, %k, %batch : !llm.kv<1x17xf32>, tensor<?x1x17xf32>
  %y = llm.attention %q, %grown, %batch {scale = 0.25 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x3x17xf32>, !llm.kv<1x17xf32>
  return %y : tensor<?x3x17xf32>
}

// CHECK-LABEL: func.func @step
// CHECK: %[[STATE:.+]] = llm.use_state @kv : !llm.kv<1x17xbf16, page = 64, panel = 16>
// CHECK: call @layer(%{{.+}}, %{{.+}}, %{{.+}}, %[[STATE]]) : ({{.+}}, !llm.kv<1x17xbf16, page = 64, panel = 16>)
func.func @step(%q: tensor<?x3x17xf32>, %k: tensor<?x1x17xf32>, %batch: !llm.batch) {
  %kv = llm.use_state @kv : !llm.kv<1x17xf32>
  %y = call @layer(%q, %k, %batch, %kv) : (tensor<?x3x17xf32>, tensor<?x1x17xf32>, !llm.batch, !llm.kv<1x17xf32>) -> tensor<?x3x17xf32>
  return
}

// Pairs are the target's wish, and take whole panels: 17 channels above are none.
// BLOCKS: llm.state @even : !llm.kv<1x32xbf16, page = 64, panel = 16, pack = 2, block = 32>
// PAIRS: llm.state @even : !llm.kv<1x32xbf16, page = 64, panel = 16, pack = 2>
// PLAIN: llm.state @even : !llm.kv<1x32xbf16, page = 64, panel = 16>
// SMALL: llm.state @even : !llm.kv<1x32xf32, page = 16, panel = 16>
llm.state @even : !llm.kv<1x32xf32>
