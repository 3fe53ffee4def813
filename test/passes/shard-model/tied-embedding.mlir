// RUN: llmc-opt %s --llmc-shard-model="tensor=2 rank=0" | FileCheck %s

// One published tensor, cut by channels where tokens are looked up and by rows where logits are made.
// CHECK-DAG: llm.weight @e.2 : !llm.weight<6x8> {{.*}} {of = array<i64: 6, 16>, parts = [array<i64: -1, 0, 6>, array<i64: {{[0-9]}}, 0, 16>]}
// CHECK-DAG: llm.weight @e : !llm.weight<3x16> {{.*}} {of = array<i64: 6, 16>, parts = [array<i64: {{[0-9]}}, 0, 6>, array<i64: -1, 0, 16>]}
llm.weight @e : !llm.weight<6x16> from [{tensor = "e"}]
// CHECK-LABEL: func.func @step
func.func @step(%batch: !llm.batch) -> tensor<?x6xf32> {
  // CHECK: %[[X:.+]] = llm.embedding %{{.+}}, %{{.+}} {{.*}} : <6x8> -> tensor<?x8xf32>
  // CHECK-NEXT: %[[H:.+]] = llm.all_gather %{{.+}}, %[[X]] : tensor<?x8xf32> {segments = [array<i64: 0, 8, 8, 16>]} -> tensor<?x16xf32>
  // CHECK-NEXT: %[[L:.+]] = llm.linear %[[H]], %{{.+}} : tensor<?x16xf32>, <3x16> -> tensor<?x3xf32>
  // CHECK-NEXT: %[[ALL:.+]] = llm.all_gather %{{.+}}, %[[L]] : tensor<?x3xf32> {segments = [array<i64: 0, 3, 3, 6>]} -> tensor<?x6xf32>
  // CHECK-NEXT: return %[[ALL]]
  %w = llm.use_weight @e : !llm.weight<6x16>
  %x = llm.embedding %batch, %w {scale = 1.0 : f32} : !llm.weight<6x16> -> tensor<?x16xf32>
  %l = llm.linear %x, %w : tensor<?x16xf32>, !llm.weight<6x16> -> tensor<?x6xf32>
  return %l : tensor<?x6xf32>
}
