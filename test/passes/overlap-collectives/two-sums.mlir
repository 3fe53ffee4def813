// RUN: llmc-opt %s --llmc-overlap-collectives --llmc-plan-memory | FileCheck %s

// Attention and feed-forward side by side: two sums are under way, and nothing is put where the first one's operands are
// until the step waits for both.
tile.task @t rows(%row, %column of 1) (%x: !tile.rows<64>, %y: !tile.rows<64>) {
}
tile.task @both rows(%row, %column of 1) (%a: !tile.rows<64>, %b: !tile.rows<64>, %y: !tile.rows<64>) {
}
// CHECK-LABEL: func.func @step
func.func @step(%batch: !llm.batch) {
  // CHECK: %[[X:.+]] = tile.alloc at 0 :
  // CHECK: %[[P:.+]] = tile.alloc at 256 :
  // CHECK: %[[A:.+]] = tile.alloc at 512 :
  %x = tile.alloc : !tile.rows<64>
  %p = tile.alloc : !tile.rows<64>
  %a = tile.alloc : !tile.rows<64>
  tile.launch @t(%x, %p) : !tile.rows<64>, !tile.rows<64>
  tile.all_reduce rows %p to %a : !tile.rows<64>
  %q = tile.alloc : !tile.rows<64>
  tile.launch @t(%x, %q) : !tile.rows<64>, !tile.rows<64>
  %b = tile.alloc : !tile.rows<64>
  tile.all_reduce rows %q to %b : !tile.rows<64>
  // CHECK: %[[A0:.+]] = tile.all_reduce rows %[[P]] to %[[A]] {tile.block = 0 : i64}
  // CHECK: %[[A1:.+]] = tile.all_reduce rows %[[P]] to %[[A]] {tile.block = 1 : i64}
  // CHECK: %[[Q:.+]] = tile.alloc at 768 :
  // CHECK: %[[B:.+]] = tile.alloc at 1024 :
  // CHECK: %[[B0:.+]] = tile.all_reduce rows %[[Q]] to %[[B]] {tile.block = 0 : i64}
  // CHECK: %[[B1:.+]] = tile.all_reduce rows %[[Q]] to %[[B]] {tile.block = 1 : i64}
  // CHECK-NEXT: tile.wait %[[A0]], %[[B0]] {tile.block = 0 : i64}
  // CHECK-NEXT: tile.launch @both(%[[A]], %[[B]], %[[X]]) {tile.block = 0 : i64}
  // CHECK-NEXT: tile.wait %[[A1]], %[[B1]] {tile.block = 1 : i64}
  // CHECK-NEXT: tile.launch @both(%[[A]], %[[B]], %[[X]]) {tile.block = 1 : i64}
  tile.launch @both(%a, %b, %x) : !tile.rows<64>, !tile.rows<64>, !tile.rows<64>
  return
}
