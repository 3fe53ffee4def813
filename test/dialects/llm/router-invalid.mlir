// RUN: llmc-opt %s --verify-diagnostics --split-input-file

func.func @router_c1(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.router' op chooses 5 of 4 experts into 'tensor<?x5xf32>'}}
  %w, %e = llm.router softmax %x {top_k = 5 : i64, groups = 2 : i64, top_groups = 1 : i64, group_sum = 1 : i64, normalize = false, norm_eps = 0.0 : f32, scale = 1.0 : f32, jitter = 0.0 : f32} : tensor<?x8xf32> -> tensor<?x5xf32>
  return
}

// -----

func.func @router_c1_result(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.router' op chooses 2 of 8 experts into 'tensor<?x3xf32>'}}
  %w, %e = llm.router softmax %x {top_k = 2 : i64, groups = 1 : i64, top_groups = 1 : i64, group_sum = 1 : i64, normalize = false, norm_eps = 0.0 : f32, scale = 1.0 : f32, jitter = 0.0 : f32} : tensor<?x8xf32> -> tensor<?x3xf32>
  return
}

// -----

func.func @router_c1_sparse_mixer(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.router' op chooses 3 of 8 experts into 'tensor<?x3xf32>'}}
  %w, %e = llm.router sparse_mixer %x {top_k = 3 : i64, groups = 1 : i64, top_groups = 1 : i64, group_sum = 1 : i64, normalize = false, norm_eps = 0.0 : f32, scale = 1.0 : f32, jitter = 0.0 : f32} : tensor<?x8xf32> -> tensor<?x3xf32>
  return
}

// -----

func.func @router_c2(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.router' op keeps 1 of 3 groups of 8 experts by their 1 largest, expected groups that divide the experts and one or two largest}}
  %w, %e = llm.router softmax %x {top_k = 2 : i64, groups = 3 : i64, top_groups = 1 : i64, group_sum = 1 : i64, normalize = false, norm_eps = 0.0 : f32, scale = 1.0 : f32, jitter = 0.0 : f32} : tensor<?x8xf32> -> tensor<?x2xf32>
  return
}

// -----

func.func @router_c2_top_groups(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.router' op keeps 3 of 2 groups of 8 experts by their 1 largest, expected groups that divide the experts and one or two largest}}
  %w, %e = llm.router softmax %x {top_k = 2 : i64, groups = 2 : i64, top_groups = 3 : i64, group_sum = 1 : i64, normalize = false, norm_eps = 0.0 : f32, scale = 1.0 : f32, jitter = 0.0 : f32} : tensor<?x8xf32> -> tensor<?x2xf32>
  return
}

// -----

func.func @router_c2_sum(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.router' op keeps 4 of 8 groups of 8 experts by their 2 largest, expected groups that divide the experts and one or two largest}}
  %w, %e = llm.router softmax %x {top_k = 2 : i64, groups = 8 : i64, top_groups = 4 : i64, group_sum = 2 : i64, normalize = false, norm_eps = 0.0 : f32, scale = 1.0 : f32, jitter = 0.0 : f32} : tensor<?x8xf32> -> tensor<?x2xf32>
  return
}

// -----

func.func @router_c3(%x: tensor<?x8xf32>, %b: !llm.weight<4>) {
  // expected-error@+1 {{'llm.router' op has a bias of [4], expected [8]}}
  %w, %e = llm.router softmax %x bias %b {top_k = 2 : i64, groups = 1 : i64, top_groups = 1 : i64, group_sum = 1 : i64, normalize = false, norm_eps = 0.0 : f32, scale = 1.0 : f32, jitter = 0.0 : f32} : tensor<?x8xf32>, !llm.weight<4> -> tensor<?x2xf32>
  return
}

// -----

func.func @router_c4(%x: tensor<?x8xf32>, %b: !llm.weight<8>) {
  // expected-error@+1 {{'llm.router' op scores by sparse_mixer with a bias and 1 groups, expected no bias and 1 group}}
  %w, %e = llm.router sparse_mixer %x bias %b {top_k = 2 : i64, groups = 1 : i64, top_groups = 1 : i64, group_sum = 1 : i64, normalize = false, norm_eps = 0.0 : f32, scale = 1.0 : f32, jitter = 0.0 : f32} : tensor<?x8xf32>, !llm.weight<8> -> tensor<?x2xf32>
  return
}

// -----

func.func @router_c4_groups(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.router' op scores by sparse_mixer with no bias and 2 groups, expected no bias and 1 group}}
  %w, %e = llm.router sparse_mixer %x {top_k = 2 : i64, groups = 2 : i64, top_groups = 1 : i64, group_sum = 1 : i64, normalize = false, norm_eps = 0.0 : f32, scale = 1.0 : f32, jitter = 0.0 : f32} : tensor<?x8xf32> -> tensor<?x2xf32>
  return
}

// -----

func.func @router_c5(%x: tensor<?x8xf32>, %e: tensor<?x3xf32>) {
  // expected-error@+1 {{'llm.router' op is given experts in 'tensor<?x3xf32>' with no bias and 1 groups by softmax, expected 'tensor<?x2xf32>' alone}}
  %w, %f = llm.router softmax %x chosen %e {top_k = 2 : i64, groups = 1 : i64, top_groups = 1 : i64, group_sum = 1 : i64, normalize = false, norm_eps = 0.0 : f32, scale = 1.0 : f32, jitter = 0.0 : f32} : tensor<?x8xf32> chosen tensor<?x3xf32> -> tensor<?x2xf32>
  return
}

// -----

func.func @router_c5_bias(%x: tensor<?x8xf32>, %b: !llm.weight<8>, %e: tensor<?x2xf32>) {
  // expected-error@+1 {{'llm.router' op is given experts in 'tensor<?x2xf32>' with a bias and 1 groups by sigmoid, expected 'tensor<?x2xf32>' alone}}
  %w, %f = llm.router sigmoid %x bias %b chosen %e {top_k = 2 : i64, groups = 1 : i64, top_groups = 1 : i64, group_sum = 1 : i64, normalize = false, norm_eps = 0.0 : f32, scale = 1.0 : f32, jitter = 0.0 : f32} : tensor<?x8xf32>, !llm.weight<8> chosen tensor<?x2xf32> -> tensor<?x2xf32>
  return
}
