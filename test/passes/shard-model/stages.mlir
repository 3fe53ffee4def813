// RUN: llmc-opt %s --llmc-shard-model="stages=2 rank=0" | FileCheck %s --check-prefix=EARLY
// RUN: llmc-opt %s --llmc-shard-model="stages=2 rank=1" | FileCheck %s --check-prefix=LATE

// The second stage gets what the first one made of it, computes positions for itself, and hands the logits back.
// EARLY-DAG: llm.weight @a
// EARLY-NOT: llm.weight @b
// LATE-NOT: llm.weight @a
// LATE-DAG: llm.weight @b
llm.weight @a : !llm.weight<16x16> from [{tensor = "a"}]
llm.weight @b : !llm.weight<16x16> from [{tensor = "b"}]
func.func private @layer(%x: tensor<?x16xf32>, %t: tensor<?x2xf32>, %w: !llm.weight<16x16>) -> tensor<?x16xf32> {
  %y = llm.linear %x, %w : tensor<?x16xf32>, !llm.weight<16x16> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
// EARLY-LABEL: func.func @step
// EARLY: llm.rope_table
// EARLY: %[[Y:.+]] = call @layer
// EARLY-NOT: call
// EARLY: llm.send %[[Y]], %{{.+}} {stage = 1 : i64}
// EARLY-NEXT: %[[L:.+]] = llm.receive %{{.+}} {stage = 1 : i64}
// EARLY-NEXT: return %[[L]]
// LATE-LABEL: func.func @step
// LATE: %[[X:.+]] = llm.receive %{{.+}} {stage = 0 : i64}
// LATE: llm.rope_table
// LATE: %[[Z:.+]] = call @layer(%[[X]],
// LATE: llm.send %[[Z]], %{{.+}} {stage = 0 : i64}
// LATE-NEXT: return %[[Z]]
func.func @step(%batch: !llm.batch) -> tensor<?x16xf32> {
  %t = llm.rope_table %batch {frequencies = array<f32: 1.0>, magnitude = 1.0 : f32} : tensor<?x2xf32>
  %x = llm.fill %batch {value = 1.0 : f32} : tensor<?x16xf32>
  %a = llm.use_weight @a : !llm.weight<16x16>
  %y = call @layer(%x, %t, %a) : (tensor<?x16xf32>, tensor<?x2xf32>, !llm.weight<16x16>) -> tensor<?x16xf32>
  %b = llm.use_weight @b : !llm.weight<16x16>
  %z = call @layer(%y, %t, %b) : (tensor<?x16xf32>, tensor<?x2xf32>, !llm.weight<16x16>) -> tensor<?x16xf32>
  return %z : tensor<?x16xf32>
}
