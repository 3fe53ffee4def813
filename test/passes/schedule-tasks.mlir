// RUN: llmc-opt %s --llmc-schedule-tasks=target=x86-64-v4 | FileCheck %s --check-prefixes=CHECK,V4
// RUN: llmc-opt %s --llmc-schedule-tasks=target=x86-64-v4-vnni | FileCheck %s --check-prefixes=CHECK,VNNI
// RUN: llmc-opt %s --llmc-schedule-tasks=target=x86-64-v4-amx | FileCheck %s --check-prefixes=CHECK,AMX
// RUN: llmc-opt %s --llmc-schedule-tasks=target=x86-64-v3 | FileCheck %s --check-prefixes=CHECK,V3

// The instruction follows the target; that it is missing is said.
// CHECK-LABEL: tile.task @bf16_dot
// V4-SAME: schedule {instruction = "vdpbf16ps", kernel_rows = 12 : i64, reason = "bf16 weights"
// VNNI-SAME: schedule {instruction = "fma", kernel_rows = 12 : i64, reason = "bf16 weights, expanded: no fast bf16 dot on x86-64-v4-vnni"
// V3-SAME: schedule {instruction = "fma", kernel_rows = 6 : i64, reason = "bf16 weights, expanded: no fast bf16 dot on x86-64-v3"
// AMX-SAME: schedule {instruction = "tdpbf16ps", kernel_rows = 16 : i64, reason = "bf16 weights"
// CHECK-SAME: shape = "dot"
tile.task @bf16_dot rows(%row, %column of 1) (%a: !tile.rows<64>, %w: !llm.weight<32x64, bf16, tile = 32, panel = 32>, %out: !tile.rows<32>) {
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%row, %c0] : !tile.rows<64> -> tensor<64xf32>
  %b = arith.truncf %x : tensor<64xf32> to tensor<64xbf16>
  %y = tile.dot %b, %w[%column] : tensor<64xbf16>, !llm.weight<32x64, bf16, tile = 32, panel = 32> -> tensor<32xf32>
  tile.store %y, %out[%row, %c0] : tensor<32xf32>, !tile.rows<32>
}

// Where few rows of inputs fit the cache, more of them share a part of the depth.
// CHECK-LABEL: tile.task @long_rows
// V4-SAME: schedule {depth_block = 1344 : i64, instruction = "vdpbf16ps", kernel_rows = 12 : i64, reason = "bf16 weights", row_block = 120 : i64
// V3-SAME: schedule {depth_block = 448 : i64, instruction = "fma"
// AMX-SAME: schedule {instruction = "tdpbf16ps"
tile.task @long_rows rows(%row, %column of 1) (%a: !tile.rows<8000>, %w: !llm.weight<64x8000, bf16, tile = 64, panel = 64>, %out: !tile.rows<64>) {
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%row, %c0] : !tile.rows<8000> -> tensor<8000xf32>
  %b = arith.truncf %x : tensor<8000xf32> to tensor<8000xbf16>
  %y = tile.dot %b, %w[%column] : tensor<8000xbf16>, !llm.weight<64x8000, bf16, tile = 64, panel = 64> -> tensor<64xf32>
  tile.store %y, %out[%row, %c0] : tensor<64xf32>, !tile.rows<64>
}

// CHECK-LABEL: tile.task @quantized_dot
// V4-SAME: instruction = "vpdpbusd"
// VNNI-SAME: instruction = "vpdpbusd"
// V3-SAME: instruction = "vpmaddubsw"
// AMX-SAME: instruction = "tdpbssd+vpdpbusd"
// CHECK-SAME: shape = "quantized_dot"
// AMX-SAME: tile_rows = 16 : i64
tile.task @quantized_dot rows(%row, %column of 1) (%a: !tile.rows<64>, %w: !llm.weight<16x64, i4, tile = 16, panel = 16>, %out: !tile.rows<16>) {
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%row, %c0] : !tile.rows<64> -> tensor<64xf32>
  %codes, %scales = tile.quantize %x : tensor<64xf32> -> tensor<64xi16>, tensor<2xf32>
  %y = tile.scaled_dot %codes, %scales, %w[%column] : tensor<64xi16>, tensor<2xf32>, !llm.weight<16x64, i4, tile = 16, panel = 16> -> tensor<16xf32>
  tile.store %y, %out[%row, %c0] : tensor<16xf32>, !tile.rows<16>
}

// 24 query rows share a page, 128 in matrix tiles: with 3 heads per key-value head that is 8 or 42 rows of the batch.
// CHECK-LABEL: tile.task @grouped_heads
// V4-SAME: schedule {instruction = "fma", kernel_rows = 6 : i64
// V3-SAME: schedule {instruction = "fma", kernel_rows = 3 : i64
// AMX-SAME: schedule {instruction = "tdpbf16ps", kernel_rows = 16 : i64
// CHECK-SAME: reason = "3 query heads per key-value head"
// V4-SAME: row_block = 8 : i64
// V3-SAME: row_block = 8 : i64
// AMX-SAME: row_block = 42 : i64
// CHECK-SAME: shape = "attend"
tile.task @grouped_heads rows(%row, %column of 2) (%q: !tile.rows<192>, %kv: !llm.kv<2x32xbf16, page = 64, panel = 16, pack = 2, block = 32>, %batch: !llm.batch) {
  %c96 = arith.constant 96 : index
  %at = arith.muli %column, %c96 : index
  %x = tile.load %q[%row, %at] : !tile.rows<192> -> tensor<96xf32>
  %y = tile.attend %x, %kv[%column], %batch[%row] {scale = 0.25 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<96xf32>, !llm.kv<2x32xbf16, page = 64, panel = 16, pack = 2, block = 32>
  tile.store %y, %q[%row, %at] : tensor<96xf32>, !tile.rows<192>
}

// Pairs without blocks go through an instruction that adds pair after pair, or what stands for it.
// CHECK-LABEL: tile.task @paired_heads
// V4-SAME: schedule {instruction = "vdpbf16ps", kernel_rows = 12 : i64, products = "dots"
// CHECK-SAME: shape = "attend"
tile.task @paired_heads rows(%row, %column of 2) (%q: !tile.rows<192>, %kv: !llm.kv<2x32xbf16, page = 64, panel = 16, pack = 2>, %batch: !llm.batch) {
  %c96 = arith.constant 96 : index
  %at = arith.muli %column, %c96 : index
  %x = tile.load %q[%row, %at] : !tile.rows<192> -> tensor<96xf32>
  %y = tile.attend %x, %kv[%column], %batch[%row] {scale = 0.25 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<96xf32>, !llm.kv<2x32xbf16, page = 64, panel = 16, pack = 2>
  tile.store %y, %q[%row, %at] : tensor<96xf32>, !tile.rows<192>
}

// Without pairs a vector of keys is one register, and twice as many rows share it.
// CHECK-LABEL: tile.task @expanded_heads
// V4-SAME: schedule {instruction = "fma", kernel_rows = 12 : i64
// V3-SAME: schedule {instruction = "fma", kernel_rows = 4 : i64
// AMX-SAME: schedule {instruction = "fma", kernel_rows = 12 : i64
// CHECK-SAME: shape = "attend"
tile.task @expanded_heads rows(%row, %column of 2) (%q: !tile.rows<192>, %kv: !llm.kv<2x32xbf16, page = 64, panel = 16>, %batch: !llm.batch) {
  %c96 = arith.constant 96 : index
  %at = arith.muli %column, %c96 : index
  %x = tile.load %q[%row, %at] : !tile.rows<192> -> tensor<96xf32>
  %y = tile.attend %x, %kv[%column], %batch[%row] {scale = 0.25 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<96xf32>, !llm.kv<2x32xbf16, page = 64, panel = 16>
  tile.store %y, %q[%row, %at] : tensor<96xf32>, !tile.rows<192>
}

// Heads that are no multiple of a tile's 32 channels, and caches of f32, are summed by vectors.
// CHECK-LABEL: tile.task @half_a_tile
// CHECK-SAME: instruction = "fma"
tile.task @half_a_tile rows(%row, %column of 1) (%q: !tile.rows<48>, %kv: !llm.kv<1x48xbf16, page = 64, panel = 16, pack = 2, block = 32>, %batch: !llm.batch) {
  %c0 = arith.constant 0 : index
  %x = tile.load %q[%row, %c0] : !tile.rows<48> -> tensor<48xf32>
  %y = tile.attend %x, %kv[%column], %batch[%row] {scale = 0.25 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<48xf32>, !llm.kv<1x48xbf16, page = 64, panel = 16, pack = 2, block = 32>
  tile.store %y, %q[%row, %c0] : tensor<48xf32>, !tile.rows<48>
}

// Rows of a latent cache are turned into panels for 64 query rows at a time; whatever the target, in f32.
// CHECK-LABEL: tile.task @latent
// CHECK-SAME: schedule {instruction = "fma"
// CHECK-SAME: products = "rows", reason = "8 query heads per key-value head, latent rows turned into panels of f32", row_block = 8 : i64, shape = "attend"
tile.task @latent rows(%row, %column of 1) (%q: !tile.rows<384>, %kv: !llm.kv<1x48xbf16, latent = 32, page = 64, panel = 1>, %batch: !llm.batch) {
  %c0 = arith.constant 0 : index
  %x = tile.load %q[%row, %c0] : !tile.rows<384> -> tensor<384xf32>
  %y = tile.attend %x, %kv[%column], %batch[%row] {scale = 0.25 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<384xf32>, !llm.kv<1x48xbf16, latent = 32, page = 64, panel = 1>
  tile.store %y, %q[%row, %c0] : tensor<256xf32>, !tile.rows<384>
}

// Every row selects its own positions: one at a time.
// CHECK-LABEL: tile.task @selected
// CHECK-SAME: schedule {instruction = "fma"
// CHECK-SAME: products = "rows", reason = "1 query heads per key-value head, selected positions gathered as f32", row_block = 1 : i64, shape = "attend"
tile.task @selected rows(%row, %column of 1) (%q: !tile.rows<32>, %kv: !llm.kv<1x32xbf16, page = 64, panel = 16, pack = 2, block = 32>, %batch: !llm.batch) {
  %c0 = arith.constant 0 : index
  %x = tile.load %q[%row, %c0] : !tile.rows<32> -> tensor<32xf32>
  %l = tile.load %q[%row, %c0] : !tile.rows<32> -> tensor<8xf32>
  %y = tile.attend %x, %kv[%column], %batch[%row] selected %l : tensor<8xf32> {scale = 0.25 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<32xf32>, !llm.kv<1x32xbf16, page = 64, panel = 16, pack = 2, block = 32>
  tile.store %y, %q[%row, %c0] : tensor<32xf32>, !tile.rows<32>
}

// An indexer of four heads: sixteen rows share what its keys cost.
// CHECK-LABEL: tile.task @indexer
// CHECK-SAME: products = "rows", reason = "4 heads of an indexer", row_block = 16 : i64, shape = "select"
tile.task @indexer rows(%row, %column of 1) (%q: !tile.rows<64>, %kv: !llm.kv<1x16xbf16, latent = 16, page = 64, panel = 1>, %batch: !llm.batch) {
  %c0 = arith.constant 0 : index
  %x = tile.load %q[%row, %c0] : !tile.rows<64> -> tensor<64xf32>
  %w = tile.load %q[%row, %c0] : !tile.rows<64> -> tensor<4xf32>
  %y = tile.select_positions %x, %w, %kv, %batch[%row] : tensor<64xf32>, tensor<4xf32>, !llm.kv<1x16xbf16, latent = 16, page = 64, panel = 1> -> tensor<8xf32>
  tile.store %y, %q[%row, %c0] : tensor<8xf32>, !tile.rows<64>
}

// CHECK-LABEL: tile.task @no_product
// CHECK-SAME: schedule {instruction = "vector", kernel_rows = 1 : i64, reason = "no dot and no attention", row_block = 1 : i64, shape = "rows", tile_rows = 0 : i64}
tile.task @no_product rows(%row, %column of 1) (%a: !tile.rows<7>) {
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%row, %c0] : !tile.rows<7> -> tensor<7xf32>
  tile.store %x, %a[%row, %c0] : tensor<7xf32>, !tile.rows<7>
}

// Rows of a sequence follow each other: none are taken together.
// CHECK-LABEL: tile.task @in_order
// CHECK-SAME: schedule {instruction = "fma", kernel_rows = 1 : i64, reason = "linear attention: rows of a sequence in order", row_block = 1 : i64, shape = "recurrent"
tile.task @in_order rows(%row, %column of 1) (%a: !tile.rows<16>, %s: !llm.recurrent<1x16x16>, %batch: !llm.batch) {
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%row, %c0] : !tile.rows<16> -> tensor<16xf32>
  %y = tile.recur %x, %x, %x, %s[%column], %batch[%row] : tensor<16xf32>, tensor<16xf32>, !llm.recurrent<1x16x16>
  tile.store %y, %a[%row, %c0] : tensor<16xf32>, !tile.rows<16>
}
