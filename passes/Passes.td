// What each pass buys, needs and leaves, with a module before and after. A test runs every one (and cse on both sides).
#ifndef LLMC_PASSES_TD
#define LLMC_PASSES_TD
include "mlir/Pass/PassBase.td"

def VerifyStatePass : Pass<"llmc-verify-state", "::mlir::ModuleOp"> {
  let summary = "check that every state grows once per step, before anything reads it";
  let description = [{
    What an op's own verifier cannot see: one call grows each `llm.state` (a cache by `llm.kv_append`, a recurrent state by the op that
    updates it), later calls may read what it has grown into (layers that share a cache), and no call names a function that is
    missing. Changes nothing.
    Before:
    ```mlir
    llm.state @kv : !llm.kv<1x16xf32>
    func.func private @layer(%k: tensor<?x1x16xf32>, %batch: !llm.batch, %kv: !llm.kv<1x16xf32>) {
      %grown = llm.kv_append %kv, %k, %k, %batch : !llm.kv<1x16xf32>, tensor<?x1x16xf32>
      return
    }
    func.func @step(%batch: !llm.batch, %k: tensor<?x1x16xf32>) {
      %kv = llm.use_state @kv : !llm.kv<1x16xf32>
      call @layer(%k, %batch, %kv) : (tensor<?x1x16xf32>, !llm.batch, !llm.kv<1x16xf32>) -> ()
      return
    }
    ```
    After: the same.
  }];
}

def ShardModelPass : Pass<"llmc-shard-model", "::mlir::ModuleOp"> {
  let summary = "make the program of one rank: local shapes, its layers, explicit collectives";
  let description = [{
    Ranks form `stages` groups of `experts` x `tensor`. A group shares every layer that it has: heads with their state, the inner channels of
    feed-forward blocks, the vocabulary; experts are dealt out to `experts` ranks, of each of which `tensor` share every matrix.
    What is cut follows from the operators' rules (ShardingRules.cpp), and no size needs to be a multiple of the ranks. Numerics change by
    the order of sums only. Rank number `stage * ranks of a group + rank in the group`. Weights keep the whole weight's sources and say
    which part is theirs. One rank: changes nothing.
    Before with `tensor=2 rank=1`:
    ```mlir
    llm.weight @up : !llm.weight<128x64> from [{tensor = "up"} ]
    llm.weight @down : !llm.weight<64x128> from [{tensor = "down"} ]
    func.func private @layer(%x: tensor<?x64xf32>, %batch: !llm.batch, %up: !llm.weight<128x64>, %down: !llm.weight<64x128>) -> tensor<?x64xf32> {
      %h = llm.linear %x, %up : tensor<?x64xf32>, !llm.weight<128x64> -> tensor<?x128xf32>
      %a = llm.activation silu %h : tensor<?x128xf32>
      %y = llm.linear %a, %down : tensor<?x128xf32>, !llm.weight<64x128> -> tensor<?x64xf32>
      return %y : tensor<?x64xf32>
    }
    func.func @step(%batch: !llm.batch) -> tensor<?x64xf32> {
      %x = llm.fill %batch {value = 1.0 : f32} : tensor<?x64xf32>
      %u = llm.use_weight @up : !llm.weight<128x64>
      %d = llm.use_weight @down : !llm.weight<64x128>
      %y = call @layer(%x, %batch, %u, %d) : (tensor<?x64xf32>, !llm.batch, !llm.weight<128x64>, !llm.weight<64x128>) -> tensor<?x64xf32>
      return %y : tensor<?x64xf32>
    }
    ```
    After:
    ```mlir
    module attributes {llmc.partitions = [array<i64: 0, 64, 64, 128>], llmc.rank = 1 : i64, llmc.ranks = 2 : i64, llmc.stage = 0 : i64, llmc.stages = 1 : i64} {
      shard.grid @ranks(shape = 1x2)
      llm.weight @up : !llm.weight<64x64> from [{tensor = "up"} ] {of = array<i64: 128, 64>, parts = [array<i64: 0, 0, 128>, array<i64: -1, 0, 64>]}
      llm.weight @down : !llm.weight<64x64> from [{tensor = "down"} ] {of = array<i64: 64, 128>, parts = [array<i64: -1, 0, 64>, array<i64: 0, 0, 128>]}
      func.func private @layer(%x: tensor<?x64xf32>, %batch: !llm.batch, %up: !llm.weight<64x64>, %down: !llm.weight<64x64>) -> tensor<?x64xf32> {
        %h = llm.linear %x, %up : tensor<?x64xf32>, !llm.weight<64x64> -> tensor<?x64xf32>
        %a = llm.activation silu %h : tensor<?x64xf32>
        %y = llm.linear %a, %down : tensor<?x64xf32>, !llm.weight<64x64> -> tensor<?x64xf32>
        %s = shard.all_reduce %y on @ranks grid_axes = [1] : tensor<?x64xf32> -> tensor<?x64xf32>
        return %s : tensor<?x64xf32>
      }
      func.func @step(%batch: !llm.batch) -> tensor<?x64xf32> {
        %x = llm.fill %batch {value = 1.0 : f32} : tensor<?x64xf32>
        %u = llm.use_weight @up : !llm.weight<64x64>
        %d = llm.use_weight @down : !llm.weight<64x64>
        %y = call @layer(%x, %batch, %u, %d) : (tensor<?x64xf32>, !llm.batch, !llm.weight<64x64>, !llm.weight<64x64>) -> tensor<?x64xf32>
        return %y : tensor<?x64xf32>
      }
    }
    ```
  }];
  let options = [Option<"experts", "experts", "int64_t", "1", "ranks of a group that hold different experts">,
                 Option<"tensor", "tensor", "int64_t", "1", "ranks that share every matrix">,
                 Option<"stages", "stages", "int64_t", "1", "groups, each with its own layers">,
                 Option<"rank", "rank", "int64_t", "0", "the rank whose program it is">];
  let dependentDialects = ["::mlir::shard::ShardDialect"];
}

def FuseLinearsPass : Pass<"llmc-fuse-linears", "::mlir::ModuleOp"> {
  let summary = "make one matrix product of linears that read the same input";
  let description = [{
    Queries, keys and values, and gate and up, become one `llm.fused_linear`: the input is normalised, rounded and read
    once, and one barrier serves all. Weights are concatenated as symbols, one per call of the layer. Linears are left
    alone when only some have a bias, or when their widths are no multiple of 16 (gate and up may have any width).
    Before:
    ```mlir
    llm.weight @q : !llm.weight<32x64> from [{tensor = "q"} ]
    llm.weight @k : !llm.weight<16x64> from [{tensor = "k"} ]
    func.func private @layer(%x: tensor<?x64xf32>, %wq: !llm.weight<32x64>, %wk: !llm.weight<16x64>) -> (tensor<?x32xf32>, tensor<?x16xf32>) {
      %q = llm.linear %x, %wq : tensor<?x64xf32>, !llm.weight<32x64> -> tensor<?x32xf32>
      %k = llm.linear %x, %wk : tensor<?x64xf32>, !llm.weight<16x64> -> tensor<?x16xf32>
      return %q, %k : tensor<?x32xf32>, tensor<?x16xf32>
    }
    func.func @step(%x: tensor<?x64xf32>) -> (tensor<?x32xf32>, tensor<?x16xf32>) {
      %wq = llm.use_weight @q : !llm.weight<32x64>
      %wk = llm.use_weight @k : !llm.weight<16x64>
      %y:2 = call @layer(%x, %wq, %wk) : (tensor<?x64xf32>, !llm.weight<32x64>, !llm.weight<16x64>) -> (tensor<?x32xf32>, tensor<?x16xf32>)
      return %y#0, %y#1 : tensor<?x32xf32>, tensor<?x16xf32>
    }
    ```
    After:
    ```mlir
    llm.weight @"q+k" : !llm.weight<48x64> from [{tensor = "q"}, {tensor = "k"} ]
    func.func private @layer(%x: tensor<?x64xf32>, %w: !llm.weight<48x64>) -> (tensor<?x32xf32>, tensor<?x16xf32>) {
      %y:2 = llm.fused_linear %x, %w : tensor<?x64xf32>, !llm.weight<48x64> -> tensor<?x32xf32>, tensor<?x16xf32>
      return %y#0, %y#1 : tensor<?x32xf32>, tensor<?x16xf32>
    }
    func.func @step(%x: tensor<?x64xf32>) -> (tensor<?x32xf32>, tensor<?x16xf32>) {
      %w = llm.use_weight @"q+k" : !llm.weight<48x64>
      %y:2 = call @layer(%x, %w) : (tensor<?x64xf32>, !llm.weight<48x64>) -> (tensor<?x32xf32>, tensor<?x16xf32>)
      return %y#0, %y#1 : tensor<?x32xf32>, tensor<?x16xf32>
    }
    ```
  }];
}

def ChooseWeightFormsPass : Pass<"llmc-choose-weight-forms", "::mlir::ModuleOp"> {
  let summary = "choose how each weight is stored for the kernels";
  let description = [{
    Changes numerics: weights are rounded to the chosen form, and with `bf16`, `i8`, `i4`, `i4m` and `f4` the input of the
    product is rounded too (to bf16, or to 16 bits per group of 32). Decides from the types of the sources, the option
    `weights` and the use of the weight; vectors become `plain`. A layer kind whose calls end with different forms is
    cloned, one function per combination.
    Before:
    ```mlir
    llm.weight @w : !llm.weight<32x64> from [{tensor = "w", type = "BF16"} ]
    func.func @step(%x: tensor<?x64xf32>) -> tensor<?x32xf32> {
      %w = llm.use_weight @w : !llm.weight<32x64>
      %y = llm.linear %x, %w : tensor<?x64xf32>, !llm.weight<32x64> -> tensor<?x32xf32>
      return %y : tensor<?x32xf32>
    }
    ```
    After:
    ```mlir
    llm.weight @w : !llm.weight<32x64, bf16> from [{tensor = "w", type = "BF16"} ] {fate = "kept", reason = "stored as BF16, kept exactly"}
    func.func @step(%x: tensor<?x64xf32>) -> tensor<?x32xf32> {
      %w = llm.use_weight @w : !llm.weight<32x64, bf16>
      %y = llm.linear %x, %w : tensor<?x64xf32>, !llm.weight<32x64, bf16> -> tensor<?x32xf32>
      return %y : tensor<?x32xf32>
    }
    ```
  }];
  let options = [Option<"weights", "weights", "std::string", "\"stored\"", "stored, f32, bf16, int8 or int4">];
}

def LowerKvToPagesPass : Pass<"llmc-lower-kv-to-pages", "::mlir::ModuleOp"> {
  let summary = "give every cache its pages and element type";
  let description = [{
    Changes numerics unless the element type is f32: keys and values are rounded when they are appended. Keys lie in panels
    of 16 positions, so that a kernel scores 16 positions at a time; those of latent caches lie in rows, which values are read
    from too (panel = 1). bf16 heads of whole panels are packed in pairs where the
    target multiplies pairs, which rounds queries and probabilities of attention too (tile.attend).
    Before:
    ```mlir
    llm.state @kv : !llm.kv<1x17xf32>
    func.func @step(%k: tensor<?x1x17xf32>, %batch: !llm.batch) {
      %kv = llm.use_state @kv : !llm.kv<1x17xf32>
      %grown = llm.kv_append %kv, %k, %k, %batch : !llm.kv<1x17xf32>, tensor<?x1x17xf32>
      return
    }
    ```
    After:
    ```mlir
    llm.state @kv : !llm.kv<1x17xbf16, page = 64, panel = 16>
    func.func @step(%k: tensor<?x1x17xf32>, %batch: !llm.batch) {
      %kv = llm.use_state @kv : !llm.kv<1x17xbf16, page = 64, panel = 16>
      %grown = llm.kv_append %kv, %k, %k, %batch : !llm.kv<1x17xbf16, page = 64, panel = 16>, tensor<?x1x17xf32>
      return
    }
    ```
  }];
  let options = [Option<"element", "element", "std::string", "\"bf16\"", "f32, bf16, f16 or int8">,
                 Option<"page", "page", "int64_t", "64", "positions per page, a multiple of 16">,
                 Option<"target", "target", "std::string", "\"host\"", "a name that `llmc doctor` lists">];
}

def FormTileTasksPass : Pass<"llmc-form-tile-tasks", "::mlir::ModuleOp"> {
  let summary = "cut the model into tasks, each one future kernel";
  let description = [{
    Every matrix product and every attention becomes the anchor of a task. What feeds a product row by row (norms, casts) is
    inlined before it; what follows it within a column tile (bias, head norm, rope, cache write, activation, residual) is
    inlined behind it; what is left becomes row tasks. Activations become `!tile.rows` buffers, results are written to
    operands. Weights get their tiles: a head for queries, keys and values, interleaved blocks of 32 for gate and up,
    otherwise 64 columns. Needs chosen weight forms and paged caches.
    Before:
    ```mlir
    llm.weight @w : !llm.weight<32x64, bf16> from [{tensor = "w"} ]
    func.func private @layer(%x: tensor<?x64xf32>, %r: tensor<?x32xf32>, %w: !llm.weight<32x64, bf16>) -> tensor<?x32xf32> {
      %y = llm.linear %x, %w : tensor<?x64xf32>, !llm.weight<32x64, bf16> -> tensor<?x32xf32>
      %s = llm.add %r, %y : tensor<?x32xf32>
      return %s : tensor<?x32xf32>
    }
    ```
    After:
    ```mlir
    llm.weight @w : !llm.weight<32x64, bf16> from [{tensor = "w"} ]
    tile.task @layer.0 rows(%row, %column of 1) (%x: !tile.rows<64>, %w: !llm.weight<32x64, bf16, tile = 32, panel = 32>, %r: !tile.rows<32>, %out: !tile.rows<32>) {
      %c0 = arith.constant 0 : index
      %a = tile.load %x[%row, %c0] : !tile.rows<64> -> tensor<64xf32>
      %b = arith.truncf %a : tensor<64xf32> to tensor<64xbf16>
      %y = tile.dot %b, %w[%column] : tensor<64xbf16>, !llm.weight<32x64, bf16, tile = 32, panel = 32> -> tensor<32xf32>
      %c32 = arith.constant 32 : index
      %at = arith.muli %column, %c32 : index
      %l = tile.load %r[%row, %at] : !tile.rows<32> -> tensor<32xf32>
      %s = arith.addf %l, %y : tensor<32xf32>
      tile.store %s, %out[%row, %at] : tensor<32xf32>, !tile.rows<32>
    }
    func.func private @layer(%x: !tile.rows<64>, %r: !tile.rows<32>, %w: !llm.weight<32x64, bf16, tile = 32, panel = 32>, %out: !tile.rows<32>) {
      tile.launch @layer.0(%x, %w, %r, %out) : !tile.rows<64>, !llm.weight<32x64, bf16, tile = 32, panel = 32>, !tile.rows<32>, !tile.rows<32>
      return
    }
    ```
  }];
  let dependentDialects = ["::llmc::tile::TileDialect"];
}

def NarrowActivationsPass : Pass<"llmc-narrow-activations", "::mlir::ModuleOp"> {
  let summary = "quantise activations to 8 bits instead of 16";
  let description = [{
    What multiplies a quantised weight gets codes of one byte: half the products, an error of 1/254 instead of 1/65024 of a group's largest
    element.
    Before:
    ```mlir
    tile.task @t rows(%row, %column of 1) (%x: !tile.rows<64>, %w: !llm.weight<32x64, i8, tile = 32, panel = 16>, %out: !tile.rows<32>) {
      %c0 = arith.constant 0 : index
      %a = tile.load %x[%row, %c0] : !tile.rows<64> -> tensor<64xf32>
      %c, %s = tile.quantize %a : tensor<64xf32> -> tensor<64xi16>, tensor<2xf32>
      %y = tile.scaled_dot %c, %s, %w[%column] : tensor<64xi16>, tensor<2xf32>, !llm.weight<32x64, i8, tile = 32, panel = 16> -> tensor<32xf32>
      tile.store %y, %out[%row, %c0] : tensor<32xf32>, !tile.rows<32>
    }
    ```
    After:
    ```mlir
    tile.task @t rows(%row, %column of 1) (%x: !tile.rows<64>, %w: !llm.weight<32x64, i8, tile = 32, panel = 16>, %out: !tile.rows<32>) {
      %c0 = arith.constant 0 : index
      %a = tile.load %x[%row, %c0] : !tile.rows<64> -> tensor<64xf32>
      %c, %s = tile.quantize %a : tensor<64xf32> -> tensor<64xi8>, tensor<2xf32>
      %y = tile.scaled_dot %c, %s, %w[%column] : tensor<64xi8>, tensor<2xf32>, !llm.weight<32x64, i8, tile = 32, panel = 16> -> tensor<32xf32>
      tile.store %y, %out[%row, %c0] : tensor<32xf32>, !tile.rows<32>
    }
    ```
  }];
}

def OverlapCollectivesPass : Pass<"llmc-overlap-collectives", "::mlir::ModuleOp"> {
  let summary = "exchange one block of rows with other ranks while another is computed";
  let description = [{
    Of two blocks of rows, one is on its way while the tasks between two exchanges compute the other: rows do not see each other, but
    through caches and states, and there an earlier block of a step is what an earlier step is. Results are the same, bit for bit.
    Layers are cut at their exchanges: every part becomes a function, and what they hand each other a buffer of the step. An
    op with `tile.block` is about that block, whose rows are known when a step runs: a step of fewer than `blocks` times `rows` rows has
    fewer blocks, and what is about the others does nothing. Weights are read once a block, which costs about as much as eight rows: hence
    the least number of rows. Before an op that takes what is under way stands `tile.wait`. What is about the rows whose logits are wanted
    stays as it is. Without exchanges: changes nothing.
    Before:
    ```mlir
    tile.task @t rows(%row, %column of 1) (%x: !tile.rows<64>, %y: !tile.rows<64>) {
      %c0 = arith.constant 0 : index
      %v = tile.load %x[%row, %c0] : !tile.rows<64> -> tensor<64xf32>
      tile.store %v, %y[%row, %c0] : tensor<64xf32>, !tile.rows<64>
    }
    func.func private @layer(%x: !tile.rows<64>, %y: !tile.rows<64>) {
      %p = tile.alloc : !tile.rows<64>
      tile.launch @t(%x, %p) : !tile.rows<64>, !tile.rows<64>
      %s = tile.alloc : !tile.rows<64>
      tile.all_reduce rows %p to %s : !tile.rows<64>
      tile.launch @t(%s, %y) : !tile.rows<64>, !tile.rows<64>
      return
    }
    func.func @step(%batch: !llm.batch) {
      %x = tile.alloc : !tile.rows<64>
      %y = tile.alloc : !tile.rows<64>
      call @layer(%x, %y) : (!tile.rows<64>, !tile.rows<64>) -> ()
      return
    }
    ```
    After:
    ```mlir
    module attributes {llmc.row_blocks = 2 : i64, llmc.rows_per_block = 64 : i64} {
      tile.task @t rows(%row, %column of 1) (%x: !tile.rows<64>, %y: !tile.rows<64>) {
        %c0 = arith.constant 0 : index
        %v = tile.load %x[%row, %c0] : !tile.rows<64> -> tensor<64xf32>
        tile.store %v, %y[%row, %c0] : tensor<64xf32>, !tile.rows<64>
      }
      func.func private @layer.part.0(%x: !tile.rows<64>, %p: !tile.rows<64>) {
        tile.launch @t(%x, %p) : !tile.rows<64>, !tile.rows<64>
        return
      }
      func.func private @layer.part.1(%s: !tile.rows<64>, %y: !tile.rows<64>) {
        tile.launch @t(%s, %y) : !tile.rows<64>, !tile.rows<64>
        return
      }
      func.func @step(%batch: !llm.batch) {
        %x = tile.alloc : !tile.rows<64>
        %y = tile.alloc : !tile.rows<64>
        %p = tile.alloc : !tile.rows<64>
        %s = tile.alloc : !tile.rows<64>
        call @layer.part.0(%x, %p) {tile.block = 0 : i64, tile.layer = 0 : i64} : (!tile.rows<64>, !tile.rows<64>) -> ()
        %a = tile.all_reduce rows %p to %s {tile.block = 0 : i64} : !tile.rows<64> -> !tile.token
        call @layer.part.0(%x, %p) {tile.block = 1 : i64, tile.layer = 0 : i64} : (!tile.rows<64>, !tile.rows<64>) -> ()
        %b = tile.all_reduce rows %p to %s {tile.block = 1 : i64} : !tile.rows<64> -> !tile.token
        tile.wait %a {tile.block = 0 : i64}
        call @layer.part.1(%s, %y) {tile.block = 0 : i64, tile.layer = 0 : i64} : (!tile.rows<64>, !tile.rows<64>) -> ()
        tile.wait %b {tile.block = 1 : i64}
        call @layer.part.1(%s, %y) {tile.block = 1 : i64, tile.layer = 0 : i64} : (!tile.rows<64>, !tile.rows<64>) -> ()
        return
      }
    }
    ```
  }];
  let options = [Option<"blocks", "blocks", "int64_t", "2", "of rows, in turn">,
                 Option<"rows", "rows", "int64_t", "64", "the fewest of a block">];
}

def ScheduleTasksPass : Pass<"llmc-schedule-tasks", "::mlir::ModuleOp"> {
  let summary = "choose for every task how many rows its kernels take at a time";
  let description = [{
    Adds the `schedule` attribute, plain data computed from the task and the target: rows per block and, for products, the
    row counts for which kernels are made. Results do not depend on it.
    Before:
    ```mlir
    tile.task @t rows(%row, %column of 1) (%a: !tile.rows<64>, %b: !tile.rows<64>) {
      %c0 = arith.constant 0 : index
      %x = tile.load %a[%row, %c0] : !tile.rows<64> -> tensor<64xf32>
      tile.store %x, %b[%row, %c0] : tensor<64xf32>, !tile.rows<64>
    }
    ```
    After:
    ```mlir
    tile.task @t rows(%row, %column of 1) (%a: !tile.rows<64>, %b: !tile.rows<64>) schedule {instruction = "vector", kernel_rows = 1, reason = "no dot and no attention", row_block = 1, shape = "rows", tile_rows = 0} {
      %c0 = arith.constant 0 : index
      %x = tile.load %a[%row, %c0] : !tile.rows<64> -> tensor<64xf32>
      tile.store %x, %b[%row, %c0] : tensor<64xf32>, !tile.rows<64>
    }
    ```
  }];
  let options = [Option<"target", "target", "std::string", "\"host\"", "a name that `llmc doctor` lists">];
}

def PlanMemoryPass : Pass<"llmc-plan-memory", "::mlir::ModuleOp"> {
  let summary = "give every buffer, weight and state its place";
  let description = [{
    Buffers of the step share one arena by live range: those of `@step`, and those of the layer that runs behind what `@step`
    needs while it runs. Of several orders of placing them the best is taken.
    Offsets of buffers are bytes per row of the batch; weights, and the layers' parts of a cache page and of a slot of recurrent state,
    get byte offsets. The sums go to the module: `llmc.max_tokens`, `llmc.arena_bytes_per_row`, `llmc.weight_bytes`,
    `llmc.page_bytes`; with `llmc.page_positions` where there are pages, and `llmc.state_bytes` (of a slot) where there
    is recurrent state.
    Before:
    ```mlir
    llm.weight @g : !llm.weight<64, plain> from [{tensor = "g"} ]
    tile.task @t rows(%row, %column of 1) (%a: !tile.rows<64>) {
    }
    func.func @step(%batch: !llm.batch) {
      %a = tile.alloc : !tile.rows<64>
      tile.launch @t(%a) : !tile.rows<64>
      return
    }
    ```
    After:
    ```mlir
    module attributes {llmc.max_tokens = 512, llmc.arena_bytes_per_row = 256, llmc.weight_bytes = 256, llmc.page_bytes = 0} {
      llm.weight @g : !llm.weight<64, plain> from [{tensor = "g"} ] {offset = 0 : i64}
      tile.task @t rows(%row, %column of 1) (%a: !tile.rows<64>) {
      }
      func.func @step(%batch: !llm.batch) {
        %a = tile.alloc at 0 : !tile.rows<64>
        tile.launch @t(%a) : !tile.rows<64>
        return
      }
    }
    ```
  }];
  let options = [Option<"maxTokens", "max-tokens", "int64_t", "512", "rows of the largest step">];
}

#endif // LLMC_PASSES_TD
