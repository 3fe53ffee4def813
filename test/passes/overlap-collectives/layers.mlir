// RUN: llmc-opt %s --llmc-overlap-collectives=rows=5 | FileCheck %s

// The example in Passes.td has one layer; here the exchange of a layer is waited for in the next one.
// CHECK: module attributes {llmc.row_blocks = 2 : i64, llmc.rows_per_block = 5 : i64}
tile.task @t rows(%row, %column of 1) (%x: !tile.rows<64>, %y: !tile.rows<64>) {
}

// What two parts need is an operand; what one needs stays inside.
// CHECK: func.func private @layer.part.0(%[[X:.+]]: !tile.rows<64>, %[[P:.+]]: !tile.rows<64>)
// CHECK-NEXT: %[[OWN:.+]] = tile.alloc
// CHECK-NEXT: tile.launch @t(%[[X]], %[[OWN]])
// CHECK-NEXT: tile.launch @t(%[[OWN]], %[[P]])
// CHECK-NEXT: return
// CHECK: func.func private @layer.part.1(%[[S:.+]]: !tile.rows<64>, %[[Y:.+]]: !tile.rows<64>)
// CHECK-NEXT: tile.launch @t(%[[S]], %[[Y]])
// CHECK-NEXT: return
// CHECK-NOT: func.func private
func.func private @layer(%x: !tile.rows<64>, %y: !tile.rows<64>) {
  %a = tile.alloc : !tile.rows<64>
  tile.launch @t(%x, %a) : !tile.rows<64>, !tile.rows<64>
  %p = tile.alloc : !tile.rows<64>
  tile.launch @t(%a, %p) : !tile.rows<64>, !tile.rows<64>
  %s = tile.alloc : !tile.rows<64>
  tile.all_reduce rows %p to %s : !tile.rows<64>
  tile.launch @t(%s, %y) : !tile.rows<64>, !tile.rows<64>
  return
}

// CHECK-LABEL: func.func @step
func.func @step(%batch: !llm.batch) {
  %x = tile.alloc : !tile.rows<64>
  %y = tile.alloc : !tile.rows<64>
  %z = tile.alloc : !tile.rows<64>
  // CHECK: call @layer.part.0({{.+}}) {tile.block = 0 : i64, tile.layer = 0 : i64}
  // CHECK-NEXT: %[[A0:.+]] = tile.all_reduce rows {{.+}} {tile.block = 0 : i64}
  // CHECK-NEXT: call @layer.part.0({{.+}}) {tile.block = 1 : i64, tile.layer = 0 : i64}
  // CHECK-NEXT: %[[A1:.+]] = tile.all_reduce rows {{.+}} {tile.block = 1 : i64}
  call @layer(%x, %y) : (!tile.rows<64>, !tile.rows<64>) -> ()
  // CHECK: tile.wait %[[A0]] {tile.block = 0 : i64}
  // CHECK-NEXT: call @layer.part.1({{.+}}) {tile.block = 0 : i64, tile.layer = 0 : i64}
  // CHECK-NEXT: call @layer.part.0({{.+}}) {tile.block = 0 : i64, tile.layer = 1 : i64}
  // CHECK-NEXT: %[[B0:.+]] = tile.all_reduce rows {{.+}} {tile.block = 0 : i64}
  // CHECK-NEXT: tile.wait %[[A1]] {tile.block = 1 : i64}
  // CHECK-NEXT: call @layer.part.1({{.+}}) {tile.block = 1 : i64, tile.layer = 0 : i64}
  // CHECK-NEXT: call @layer.part.0({{.+}}) {tile.block = 1 : i64, tile.layer = 1 : i64}
  // CHECK-NEXT: %[[B1:.+]] = tile.all_reduce rows {{.+}} {tile.block = 1 : i64}
  call @layer(%y, %z) : (!tile.rows<64>, !tile.rows<64>) -> ()
  // CHECK-NEXT: tile.wait %[[B0]] {tile.block = 0 : i64}
  // CHECK-NEXT: call @layer.part.1({{.+}}) {tile.block = 0 : i64, tile.layer = 1 : i64}
  // CHECK-NEXT: tile.wait %[[B1]] {tile.block = 1 : i64}
  // CHECK-NEXT: call @layer.part.1({{.+}}) {tile.block = 1 : i64, tile.layer = 1 : i64}
  // CHECK-NEXT: return
  return
}
