// RUN: llmc-opt %s --llmc-shard-model="experts=2 tensor=2 rank=3" | FileCheck %s
// RUN: llmc-opt %s --llmc-shard-model="experts=2 tensor=2 rank=2" | FileCheck %s --check-prefix=FIRST

// Five experts on two pairs of ranks; each pair shares the inner channels of its experts. Numbers count from the rank's first
// expert; slots of others are zero. Routed and shared experts are summed up together, before the norm that follows. The
// first rank of a pair has the bias of the last product.
// CHECK-DAG: llm.weight @first_expert.[[P:[0-9]+]] : !llm.weight<1> from [{tensor = "constant [0,0,-3,-3] 1"}] {of = array<i64: 4>, parts = [array<i64: {{[0-9]+}}, 0, 4>]}
// CHECK-DAG: llm.weight @up : !llm.weight<2x16x8>
// CHECK-DAG: llm.weight @down : !llm.weight<2x8x16>
// CHECK-DAG: llm.weight @shared.up : !llm.weight<16x8>
// CHECK-NOT: llm.weight @bias
// FIRST-DAG: llm.weight @bias : !llm.weight<2x8>
llm.weight @router : !llm.weight<5x8> from [{tensor = "router"}]
llm.weight @up : !llm.weight<5x32x8> from [{tensor = "up"}]
llm.weight @down : !llm.weight<5x8x32> from [{tensor = "down"}]
llm.weight @bias : !llm.weight<5x8> from [{tensor = "bias"}]
llm.weight @shared.up : !llm.weight<64x8> from [{tensor = "shared.up"}]
llm.weight @shared.down : !llm.weight<8x64> from [{tensor = "shared.down"}]
// CHECK-LABEL: func.func private @layer
func.func private @layer(%x: tensor<?x8xf32>, %r: !llm.weight<5x8>, %u: !llm.weight<5x32x8>, %d: !llm.weight<5x8x32>, %b: !llm.weight<5x8>,
                         %su: !llm.weight<64x8>, %sd: !llm.weight<8x64>) -> tensor<?x8xf32> {
  %z = llm.linear %x, %r : tensor<?x8xf32>, !llm.weight<5x8> -> tensor<?x5xf32>
  // CHECK: %[[W:.+]], %[[E:.+]] = llm.router
  %w, %e = llm.router softmax %z {top_k = 2 : i64, groups = 1 : i64, top_groups = 1 : i64, group_sum = 1 : i64, normalize = true, norm_eps = 0.0 : f32, scale = 1.0 : f32, jitter = 0.0 : f32} : tensor<?x5xf32> -> tensor<?x2xf32>
  // CHECK-NEXT: %[[OWN:.+]] = llm.affine %[[E]] bias %{{.+}} : tensor<?x2xf32> bias !llm.weight<1>
  // CHECK-NEXT: %[[H:.+]] = llm.expert_linear %{{.+}}, %{{.+}}, %[[OWN]] : tensor<?x8xf32>, <2x16x8>, tensor<?x2xf32> -> tensor<?x2x16xf32>
  %h = llm.expert_linear %x, %u, %e : tensor<?x8xf32>, !llm.weight<5x32x8>, tensor<?x2xf32> -> tensor<?x2x32xf32>
  %a = llm.activation silu %h : tensor<?x2x32xf32>
  // CHECK: llm.expert_linear %{{.+}}, %{{.+}}, %[[OWN]] : tensor<?x2x16xf32>, <2x8x16>, tensor<?x2xf32> -> tensor<?x2x8xf32>
  // FIRST: llm.expert_linear %{{.+}}, %{{.+}}, %{{.+}} bias %{{.+}} : tensor<?x2x16xf32>, <2x8x16>, tensor<?x2xf32>, !llm.weight<2x8> -> tensor<?x2x8xf32>
  %o = llm.expert_linear %a, %d, %e bias %b : tensor<?x2x32xf32>, !llm.weight<5x8x32>, tensor<?x2xf32>, !llm.weight<5x8> -> tensor<?x2x8xf32>
  // CHECK-NEXT: %[[ROUTED:.+]] = llm.combine %{{.+}}, %[[W]]
  %c = llm.combine %o, %w : tensor<?x2x8xf32>, tensor<?x2xf32> -> tensor<?x8xf32>
  %s = llm.linear %x, %su : tensor<?x8xf32>, !llm.weight<64x8> -> tensor<?x64xf32>
  %t = llm.activation silu %s : tensor<?x64xf32>
  // CHECK: %[[SHARED:.+]] = llm.linear %{{.+}}, %{{.+}} : tensor<?x16xf32>, <8x16> -> tensor<?x8xf32>
  %v = llm.linear %t, %sd : tensor<?x64xf32>, !llm.weight<8x64> -> tensor<?x8xf32>
  // CHECK-NEXT: %[[BOTH:.+]] = llm.add %[[ROUTED]], %[[SHARED]]
  // CHECK-NEXT: %[[SUM:.+]] = shard.all_reduce %[[BOTH]]
  // CHECK-NEXT: llm.rms_norm %[[SUM]]
  %y = llm.add %c, %v : tensor<?x8xf32>
  %n = llm.rms_norm %y {eps = 1.0e-5 : f32} : tensor<?x8xf32>
  return %n : tensor<?x8xf32>
}
func.func @step(%batch: !llm.batch) -> tensor<?x8xf32> {
  %x = llm.fill %batch {value = 1.0 : f32} : tensor<?x8xf32>
  %r = llm.use_weight @router : !llm.weight<5x8>
  %u = llm.use_weight @up : !llm.weight<5x32x8>
  %d = llm.use_weight @down : !llm.weight<5x8x32>
  %b = llm.use_weight @bias : !llm.weight<5x8>
  %su = llm.use_weight @shared.up : !llm.weight<64x8>
  %sd = llm.use_weight @shared.down : !llm.weight<8x64>
  %y = call @layer(%x, %r, %u, %d, %b, %su, %sd) : (tensor<?x8xf32>, !llm.weight<5x8>, !llm.weight<5x32x8>, !llm.weight<5x8x32>, !llm.weight<5x8>, !llm.weight<64x8>, !llm.weight<8x64>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}
