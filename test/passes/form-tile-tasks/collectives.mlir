// RUN: llmc-opt %s --llmc-form-tile-tasks --split-input-file | FileCheck %s

// What ranks exchange goes from buffer to buffer: the product before it stores, and what follows loads. A sum takes the place
// of a term that nobody else reads.

shard.grid @ranks(shape = 1x2)

// CHECK-LABEL: func.func private @partial_sum(
// CHECK-SAME: %[[X:[^ ]+]]: !tile.rows<64>, %[[W:[^ ]+]]: !llm.weight<64x64, f32, {{.+}}>, %[[Y:[^ ]+]]: !tile.rows<64>)
// CHECK: %[[P:.+]] = tile.alloc : <64>
// CHECK: tile.launch @partial_sum.0(%[[X]], %[[W]], %[[P]])
// CHECK-NOT: tile.alloc
// CHECK: tile.all_reduce rows %[[P]] to %[[P]] : <64>
// CHECK: tile.launch @partial_sum.1(%[[P]], %[[X]], %[[Y]])
func.func private @partial_sum(%x: tensor<?x64xf32>, %w: !llm.weight<64x64, f32>) -> tensor<?x64xf32> {
  %p = llm.linear %x, %w : tensor<?x64xf32>, !llm.weight<64x64, f32> -> tensor<?x64xf32>
  %s = shard.all_reduce %p on @ranks grid_axes = [1] : tensor<?x64xf32> -> tensor<?x64xf32>
  %y = llm.add %s, %x : tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

shard.grid @ranks(shape = 1x2)

// A rank without a part of the sum adds zeros; a sum that is returned needs no buffer of its own.
// CHECK: tile.task @nothing.0 rows(%[[ROW:.+]], %{{.+}} of 1)
// CHECK: %[[Z:.+]] = arith.constant dense<0.000000e+00> : tensor<64xf32>
// CHECK: tile.store %[[Z]], %{{.+}}[%[[ROW]],
// CHECK-LABEL: func.func private @nothing
// CHECK-SAME: %[[Y:[^ ]+]]: !tile.rows<64>)
// CHECK: tile.launch @nothing.0(%[[P:.+]])
// CHECK: tile.all_reduce rows %[[P]] to %[[Y]] : <64>
func.func private @nothing(%batch: !llm.batch) -> tensor<?x64xf32> {
  %z = llm.fill %batch {value = 0.0 : f32} : tensor<?x64xf32>
  %s = shard.all_reduce %z on @ranks grid_axes = [1] : tensor<?x64xf32> -> tensor<?x64xf32>
  return %s : tensor<?x64xf32>
}

// -----

// Heads side by side are gathered as what they are, and a rank may have no part.
// CHECK-LABEL: func.func private @parts
// CHECK-SAME: (%{{.+}}: !llm.batch, %[[X:.+]]: !tile.rows<64>, %[[Y:.+]]: !tile.rows<96>, %[[Z:.+]]: !tile.rows<96>)
// CHECK: tile.all_gather rows %[[X]] : !tile.rows<64> to %[[Y]] : <96> {segments = [array<i64: 0, 64, 64, 96>]}
// CHECK: tile.all_gather rows to %[[Z]] : <96> {segments = [array<i64: 0, 0, 0, 96>]}
func.func private @parts(%batch: !llm.batch, %x: tensor<?x64xf32>) -> (tensor<?x3x32xf32>, tensor<?x96xf32>) {
  %heads = llm.split_heads %x : tensor<?x64xf32> -> tensor<?x2x32xf32>
  %y = llm.all_gather %batch, %heads : tensor<?x2x32xf32> {segments = [array<i64: 0, 64, 64, 96>]} -> tensor<?x3x32xf32>
  %z = llm.all_gather %batch {segments = [array<i64: 0, 0, 0, 96>]} -> tensor<?x96xf32>
  return %y, %z : tensor<?x3x32xf32>, tensor<?x96xf32>
}

// -----

// The first stage gets the logits of the last: these are rows whose logits are wanted.
// CHECK-LABEL: func.func @step
// CHECK: %[[L:.+]] = tile.logits : <96>
// CHECK: tile.launch @step.0(
// CHECK: tile.send rows %[[H:.+]] to stage 1 : <64>
// CHECK: tile.receive logit_rows %[[L]] from stage 1 : <96>
func.func @step(%batch: !llm.batch) -> tensor<?x96xf32> {
  %h = llm.fill %batch {value = 1.0 : f32} : tensor<?x64xf32>
  llm.send %h, %batch {stage = 1 : i64} : tensor<?x64xf32>
  %l = llm.receive %batch {stage = 1 : i64} : tensor<?x96xf32>
  return %l : tensor<?x96xf32>
}

// -----

shard.grid @ranks(shape = 2x2)

// The last stage: what it receives is rows of the batch, what it sends back is not. A sum that begins with nothing is over
// the rows that it is added to.
// CHECK: tile.task @step.0 logit_rows
// CHECK-LABEL: func.func @step
// CHECK: %[[L:.+]] = tile.logits : <64>
// CHECK: tile.receive rows %{{.+}} from stage 0 : <64>
// CHECK: tile.launch @step.0(%[[Z:.+]])
// CHECK: tile.all_reduce logit_rows %[[Z]] to %{{.+}} : <64>
// CHECK: tile.send logit_rows %[[L]] to stage 0 : <64>
func.func @step(%batch: !llm.batch) -> tensor<?x64xf32> {
  %h = llm.receive %batch {stage = 0 : i64} : tensor<?x64xf32>
  %r = llm.select_rows %h, %batch : tensor<?x64xf32>
  %z = llm.fill %batch {value = 0.0 : f32} : tensor<?x64xf32>
  %s = shard.all_reduce %z on @ranks grid_axes = [1] : tensor<?x64xf32> -> tensor<?x64xf32>
  %l = llm.add %s, %r : tensor<?x64xf32>
  llm.send %l, %batch {stage = 0 : i64} : tensor<?x64xf32>
  return %l : tensor<?x64xf32>
}
