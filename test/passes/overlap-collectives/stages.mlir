// RUN: llmc-opt %s --llmc-overlap-collectives=blocks=3 | FileCheck %s

// Rows go to the next stage while later ones are computed. What is about the rows whose logits are wanted is not cut: an
// exchange of those waits for all that is under way, a task for what it reads. A send is waited for before its rows are written
// again.
tile.task @t rows(%row, %column of 1) (%x: !tile.rows<64>, %y: !tile.rows<64>) {
}
tile.task @wanted logit_rows(%row, %column of 1) (%x: !tile.rows<64>, %y: !tile.rows<64>) {
}
// CHECK-LABEL: func.func @step
func.func @step(%batch: !llm.batch) {
  // CHECK: %[[X:.+]] = tile.alloc
  // CHECK: %[[Y:.+]] = tile.alloc
  %x = tile.alloc : !tile.rows<64>
  %y = tile.alloc : !tile.rows<64>
  %logits = tile.logits : !tile.rows<64>
  // CHECK: %[[R0:.+]] = tile.receive rows %[[X]] from stage 0 {tile.block = 0 : i64}
  // CHECK-NEXT: %[[R1:.+]] = tile.receive rows %[[X]] from stage 0 {tile.block = 1 : i64}
  // CHECK-NEXT: %[[R2:.+]] = tile.receive rows %[[X]] from stage 0 {tile.block = 2 : i64}
  tile.receive rows %x from stage 0 : !tile.rows<64>
  // CHECK: tile.wait %[[R0]]
  // CHECK-NEXT: tile.launch @t(%[[X]], %[[Y]]) {tile.block = 0 : i64}
  // CHECK-NEXT: %[[S0:.+]] = tile.send rows %[[Y]] to stage 2 {tile.block = 0 : i64}
  // CHECK-NEXT: tile.wait %[[R1]]
  // CHECK-NEXT: tile.launch @t(%[[X]], %[[Y]]) {tile.block = 1 : i64}
  // CHECK-NEXT: %[[S1:.+]] = tile.send rows %[[Y]] to stage 2 {tile.block = 1 : i64}
  // CHECK-NEXT: tile.wait %[[R2]]
  // CHECK-NEXT: tile.launch @t(%[[X]], %[[Y]]) {tile.block = 2 : i64}
  // CHECK-NEXT: %[[S2:.+]] = tile.send rows %[[Y]] to stage 2 {tile.block = 2 : i64}
  tile.launch @t(%x, %y) : !tile.rows<64>, !tile.rows<64>
  tile.send rows %y to stage 2 : !tile.rows<64>
  // CHECK-NEXT: tile.launch @wanted(%[[X]], %[[X]]) : !tile.rows<64>, !tile.rows<64>
  tile.launch @wanted(%x, %x) : !tile.rows<64>, !tile.rows<64>
  // CHECK-NEXT: tile.wait %[[S0]] {tile.block = 0 : i64}
  // CHECK-NEXT: tile.launch @t(%[[X]], %[[Y]]) {tile.block = 0 : i64}
  // CHECK-NEXT: %[[E0:.+]] = tile.send
  // CHECK-NEXT: tile.wait %[[S1]] {tile.block = 1 : i64}
  // CHECK-NEXT: tile.launch @t(%[[X]], %[[Y]]) {tile.block = 1 : i64}
  // CHECK-NEXT: %[[E1:.+]] = tile.send
  // CHECK-NEXT: tile.wait %[[S2]] {tile.block = 2 : i64}
  // CHECK-NEXT: tile.launch @t(%[[X]], %[[Y]]) {tile.block = 2 : i64}
  // CHECK-NEXT: %[[E2:.+]] = tile.send
  tile.launch @t(%x, %y) : !tile.rows<64>, !tile.rows<64>
  tile.send rows %y to stage 2 : !tile.rows<64>
  // CHECK-NEXT: tile.wait %[[E0]] {tile.block = 0 : i64}
  // CHECK-NEXT: tile.wait %[[E1]] {tile.block = 1 : i64}
  // CHECK-NEXT: tile.wait %[[E2]] {tile.block = 2 : i64}
  // CHECK-NEXT: tile.receive logit_rows %{{.+}} from stage 2 : <64>
  // CHECK-NEXT: return
  tile.receive logit_rows %logits from stage 2 : !tile.rows<64>
  return
}
