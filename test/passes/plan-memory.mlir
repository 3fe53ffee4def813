// RUN: llmc-opt %s --llmc-plan-memory=max-tokens=37 --split-input-file | FileCheck %s

// Weights follow each other at multiples of 64: 17 gains are padded to 64 elements, 256 bytes.
// CHECK: module attributes {
// CHECK-SAME: llmc.arena_bytes_per_row = 512 : i64
// CHECK-SAME: llmc.max_tokens = 37 : i64
// 16 positions * 1 head * 17 channels * 2 bytes * (keys + values) = 1088, twice, each at a multiple of 64
// CHECK-SAME: llmc.page_bytes = 2176 : i64
// CHECK-SAME: llmc.page_positions = 16 : i64
// 256 + 1 tile of 16 * 17 * 4 bytes = 1088
// CHECK-SAME: llmc.weight_bytes = 1344 : i64
// CHECK: llm.weight @gain {{.+}} {offset = 0 : i64}
llm.weight @gain : !llm.weight<17, plain> from [{tensor = "g"}]
// CHECK: llm.weight @matrix {{.+}} {offset = 256 : i64}
llm.weight @matrix : !llm.weight<16x17, f32, tile = 16, panel = 16> from [{tensor = "w"}]
// CHECK: llm.state @layers.0.kv {{.+}} {offset = 0 : i64}
llm.state @layers.0.kv : !llm.kv<1x17xbf16, page = 16, panel = 16>
// CHECK: llm.state @layers.1.kv {{.+}} {offset = 1088 : i64}
llm.state @layers.1.kv : !llm.kv<1x17xbf16, page = 16, panel = 16>

tile.task @move rows(%row, %column of 1) (%a: !tile.rows<64>, %b: !tile.rows<64>) {
}

// A layer's buffers lie behind those that its caller needs meanwhile (@step's third), in layers that never run at once in
// the same place. A layer that is not called needs none.
// CHECK-LABEL: func.func private @layer_of_two
// CHECK: tile.alloc at 256
func.func private @layer_of_two(%h: !tile.rows<64>) {
  %a = tile.alloc : !tile.rows<64>
  tile.launch @move(%h, %a) : !tile.rows<64>, !tile.rows<64>
  return
}
// CHECK-LABEL: func.func private @other_layer
// CHECK: tile.alloc at 0
func.func private @other_layer(%h: !tile.rows<64>) {
  %a = tile.alloc : !tile.rows<64>
  tile.launch @move(%h, %a) : !tile.rows<64>, !tile.rows<64>
  return
}

// CHECK-LABEL: func.func @step
func.func @step(%batch: !llm.batch) {
  // CHECK: %[[A:.+]] = tile.alloc at 0 :
  // CHECK: %[[B:.+]] = tile.alloc at 256 :
  // The first is dead once the second exists: the third takes its place.
  // CHECK: %[[C:.+]] = tile.alloc at 0 :
  %a = tile.alloc : !tile.rows<64>
  %b = tile.alloc : !tile.rows<64>
  %c = tile.alloc : !tile.rows<64>
  tile.launch @move(%a, %b) : !tile.rows<64>, !tile.rows<64>
  tile.launch @move(%b, %c) : !tile.rows<64>, !tile.rows<64>
  call @layer_of_two(%c) : (!tile.rows<64>) -> ()
  return
}

// -----

// 16 positions * 1 head * (17 codes + a scale of 4 bytes) * (keys + values) = 672, at a multiple of 64 704
// CHECK: module attributes {{.+}}llmc.page_bytes = 704 : i64
module {
  llm.state @codes : !llm.kv<1x17xi8, page = 16, panel = 16>
}

// -----

// Recurrent states lie in a slot of each sequence, at multiples of 64: 3 * 16 lanes (of 8 channels) * 4 bytes = 192; then
// 2 heads * 8 keys * 32 lanes (of 17 values) * 4 = 2048. Pages have no part of them.
// CHECK: module attributes {{.+}}llmc.page_bytes = 0 : i64, llmc.state_bytes = 2240 : i64
// CHECK: llm.state @taps {{.+}} {offset = 0 : i64}
// CHECK: llm.state @memory {{.+}} {offset = 192 : i64}
module {
  llm.state @taps : !llm.recurrent<1x8x3>
  llm.state @memory : !llm.recurrent<2x8x17>
}

// -----

// Without state a page has no bytes; without @step there is no arena.
// CHECK: module attributes {llmc.arena_bytes_per_row = 0 : i64, llmc.max_tokens = 37 : i64, llmc.page_bytes = 0 : i64, llmc.weight_bytes = 0 : i64}
module {
}

// -----

// In the order of the program the small one lies at 0 and the two large ones behind it, in 1280 bytes; the large ones first
// need no more than is alive at once: 512 + 512.
tile.task @read rows(%row, %column of 1) (%a: !tile.rows<64>, %b: !tile.rows<128>) {
}
tile.task @both rows(%row, %column of 1) (%a: !tile.rows<128>, %b: !tile.rows<128>) {
}
// CHECK: module attributes {llmc.arena_bytes_per_row = 1024 : i64
// CHECK-LABEL: func.func @step
func.func @step(%batch: !llm.batch) {
  // CHECK: tile.alloc at 512 : <64>
  // CHECK: tile.alloc at 0 : <128>
  // CHECK: tile.alloc at 512 : <128>
  %small = tile.alloc : !tile.rows<64>
  %a = tile.alloc : !tile.rows<128>
  %b = tile.alloc : !tile.rows<128>
  tile.launch @read(%small, %a) : !tile.rows<64>, !tile.rows<128>
  tile.launch @both(%a, %b) : !tile.rows<128>, !tile.rows<128>
  return
}

// -----

// What is called by a layer lies behind the layer's own; a layer called twice behind the larger of its callers' needs.
tile.task @use rows(%row, %column of 1) (%a: !tile.rows<64>) {
}
// CHECK-LABEL: func.func private @inner
// CHECK: tile.alloc at 512
func.func private @inner() {
  %a = tile.alloc : !tile.rows<64>
  tile.launch @use(%a) : !tile.rows<64>
  return
}
// CHECK-LABEL: func.func private @outer
// CHECK: tile.alloc at 256
func.func private @outer() {
  %a = tile.alloc : !tile.rows<64>
  tile.launch @use(%a) : !tile.rows<64>
  call @inner() : () -> ()
  tile.launch @use(%a) : !tile.rows<64>
  return
}
// CHECK-LABEL: func.func @step
// CHECK: tile.alloc at 0
func.func @step(%batch: !llm.batch) {
  %a = tile.alloc : !tile.rows<64>
  call @inner() : () -> ()
  tile.launch @use(%a) : !tile.rows<64>
  call @outer() : () -> ()
  tile.launch @use(%a) : !tile.rows<64>
  return
}

// -----

// What is exchanged beside the step lies where nobody writes until the step has waited for it: the third buffer is not put
// on the first two, the fourth is.
tile.task @fill rows(%row, %column of 1) (%a: !tile.rows<64>) {
}
// CHECK: module attributes {llmc.arena_bytes_per_row = 768 : i64
// CHECK-LABEL: func.func @step
func.func @step(%batch: !llm.batch) {
  // CHECK: tile.alloc at 0 :
  // CHECK: tile.alloc at 256 :
  // CHECK: tile.alloc at 512 :
  // CHECK: tile.alloc at 0 :
  %a = tile.alloc : !tile.rows<64>
  %b = tile.alloc : !tile.rows<64>
  %c = tile.alloc : !tile.rows<64>
  %d = tile.alloc : !tile.rows<64>
  tile.launch @fill(%a) : !tile.rows<64>
  %t = tile.all_reduce rows %a to %b : !tile.rows<64> -> !tile.token
  tile.launch @fill(%c) : !tile.rows<64>
  tile.wait %t
  tile.launch @fill(%d) : !tile.rows<64>
  return
}
