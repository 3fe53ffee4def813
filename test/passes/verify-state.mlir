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
