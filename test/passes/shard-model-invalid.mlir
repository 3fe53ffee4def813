// RUN: not llmc-opt %s --llmc-shard-model="stages=2 rank=2" 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: not llmc-opt %s --llmc-shard-model="stages=3" 2>&1 | FileCheck %s --check-prefix=LAYERS
// RUN: not llmc-opt %s --llmc-shard-model="stages=2" 2>&1 | FileCheck %s --check-prefix=SHARED

// RANK: error: rank 2 of 2 stages of 1 x 1 ranks does not exist
// LAYERS: error: {{.*}}has 2 layers, which 3 pipeline stages cannot share
// SHARED: error: {{.*}}cannot be cut into 2 stages: layers that read the same keys and values stay together
llm.state @kv : !llm.kv<1x16xf32>
func.func private @grow(%x: tensor<?x16xf32>, %batch: !llm.batch, %kv: !llm.kv<1x16xf32>) -> tensor<?x16xf32> {
  %h = llm.split_heads %x : tensor<?x16xf32> -> tensor<?x1x16xf32>
  %g = llm.kv_append %kv, %h, %h, %batch : !llm.kv<1x16xf32>, tensor<?x1x16xf32>
  return %x : tensor<?x16xf32>
}
func.func private @read(%x: tensor<?x16xf32>, %batch: !llm.batch, %kv: !llm.kv<1x16xf32>) -> tensor<?x16xf32> {
  %h = llm.split_heads %x : tensor<?x16xf32> -> tensor<?x1x16xf32>
  %a = llm.attention %h, %kv, %batch {scale = 0.25 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x1x16xf32>, !llm.kv<1x16xf32>
  %y = llm.merge_heads %a : tensor<?x1x16xf32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
func.func @step(%batch: !llm.batch) -> tensor<?x16xf32> {
  %x = llm.fill %batch {value = 1.0 : f32} : tensor<?x16xf32>
  %kv = llm.use_state @kv : !llm.kv<1x16xf32>
  %y = call @grow(%x, %batch, %kv) : (tensor<?x16xf32>, !llm.batch, !llm.kv<1x16xf32>) -> tensor<?x16xf32>
  %z = call @read(%y, %batch, %kv) : (tensor<?x16xf32>, !llm.batch, !llm.kv<1x16xf32>) -> tensor<?x16xf32>
  return %z : tensor<?x16xf32>
}
