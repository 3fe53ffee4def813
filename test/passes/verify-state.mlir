// RUN: llmc-opt %s --llmc-verify-state | FileCheck %s

llm.state @layers.0.kv : !llm.kv<1x16xf32>
llm.state @layers.1.kv : !llm.kv<1x16xf32>

// Two layers of one kind, each with its own state: the kind's function grows what it is given.
// CHECK-LABEL: func.func private @layer
func.func private @layer(%k: tensor<?x1x16xf32>, %batch: !llm.batch, %kv: !llm.kv<1x16xf32>) {
  %grown = llm.kv_append %kv, %k, %k, %batch : !llm.kv<1x16xf32>, tensor<?x1x16xf32>
  return
}

// CHECK-LABEL: func.func @step
// CHECK-COUNT-2: llm.use_state
// CHECK-COUNT-2: call @layer
func.func @step(%batch: !llm.batch, %k: tensor<?x1x16xf32>) {
  %kv0 = llm.use_state @layers.0.kv : !llm.kv<1x16xf32>
  %kv1 = llm.use_state @layers.1.kv : !llm.kv<1x16xf32>
  call @layer(%k, %batch, %kv0) : (tensor<?x1x16xf32>, !llm.batch, !llm.kv<1x16xf32>) -> ()
  call @layer(%k, %batch, %kv1) : (tensor<?x1x16xf32>, !llm.batch, !llm.kv<1x16xf32>) -> ()
  return
}

llm.state @shared.kv : !llm.kv<1x16xf32>
llm.state @layers.2.memory : !llm.recurrent<1x8x3>

func.func private @reader(%q: tensor<?x1x16xf32>, %batch: !llm.batch, %kv: !llm.kv<1x16xf32>) {
  %o = llm.attention %q, %kv, %batch {scale = 1.0 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x1x16xf32>, !llm.kv<1x16xf32>
  return
}

// Later layers read the cache that the first has grown.
// CHECK-LABEL: func.func @shared_cache
// CHECK: call @layer
// CHECK-COUNT-2: call @reader
func.func @shared_cache(%batch: !llm.batch, %k: tensor<?x1x16xf32>) {
  %kv = llm.use_state @shared.kv : !llm.kv<1x16xf32>
  call @layer(%k, %batch, %kv) : (tensor<?x1x16xf32>, !llm.batch, !llm.kv<1x16xf32>) -> ()
  call @reader(%k, %batch, %kv) : (tensor<?x1x16xf32>, !llm.batch, !llm.kv<1x16xf32>) -> ()
  call @reader(%k, %batch, %kv) : (tensor<?x1x16xf32>, !llm.batch, !llm.kv<1x16xf32>) -> ()
  return
}

func.func private @conv(%x: tensor<?x8xf32>, %w: !llm.weight<8x4>, %batch: !llm.batch, %memory: !llm.recurrent<1x8x3>) {
  %y = llm.short_conv %x, %w, %memory, %batch : tensor<?x8xf32>, !llm.weight<8x4>, !llm.recurrent<1x8x3>
  return
}

// CHECK-LABEL: func.func @recurrent
// CHECK: call @conv
func.func @recurrent(%x: tensor<?x8xf32>, %w: !llm.weight<8x4>, %batch: !llm.batch) {
  %memory = llm.use_state @layers.2.memory : !llm.recurrent<1x8x3>
  call @conv(%x, %w, %batch, %memory) : (tensor<?x8xf32>, !llm.weight<8x4>, !llm.batch, !llm.recurrent<1x8x3>) -> ()
  return
}
