// Ops by which ranks exchange rows. Sums over ranks are MLIR's own `shard.all_reduce`; what is here has no counterpart there.
#ifndef LLMC_DIALECTS_LLM_COLLECTIVE_OPS_TD
#define LLMC_DIALECTS_LLM_COLLECTIVE_OPS_TD
include "dialects/llm/LlmOps.td"

def Llm_FillOp : Llm_ComputeOp<"fill"> {
  let summary = "rows of one number";
  let description = [{
    `result[t, c] = value` for every row of the batch: what a rank without a part of a sum adds to it.
    ```mlir
    %z = llm.fill %batch {value = 0.0 : f32} : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Llm_BatchType:$batch, F32Attr:$value);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$batch attr-dict `:` type($result)";
}

def Llm_AllGatherOp : Llm_Op<"all_gather", [DeclareOpInterfaceMethods<Llm_CostOpInterface>]> {
  let summary = "whole rows of the parts that the ranks of a group hold";
  let description = [{
    An element of `segments` is `array<i64: begin of rank 0, end of rank 0, begin of rank 1, ...>`, ranges of the result's elements
    [0, H * D) or [0, C). Rank r's input is its ranges of all segments, one behind the other; the result has every element where
    it belongs, from the lowest rank that holds it. A rank whose ranges are all empty has no input. `shard.all_gather` knows parts of
    one size only, and one of them per rank.

    | name  | shape             | meaning                                    |
    |-------|-------------------|--------------------------------------------|
    | input | [T, C_r] or heads | this rank's part; absent where it is empty |

    (C1) every segment has a range of each rank, 0 <= begin <= end, inside of the result. (C2) the ranges hold every element of the
    result. (C3) the input has as many elements as some rank's ranges.
    ```mlir
    %y = llm.all_gather %batch, %x : tensor<?x64xf32> {segments = [array<i64: 0, 64, 64, 96>]} -> tensor<?x96xf32>
    ```
  }];
  let arguments = (ins Llm_BatchType:$batch, Optional<Llm_Rows>:$input, ArrayAttr:$segments);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$batch (`,` $input^ `:` type($input))? attr-dict `->` type($result)";
  let hasVerifier = 1;
}

def Llm_SendOp : Llm_Op<"send", [DeclareOpInterfaceMethods<Llm_CostOpInterface>]> {
  let summary = "hand rows to the rank at the same place of another stage";
  let description = [{
    The n-th send from stage a to stage b is what the n-th receive there gets. (C1) stage >= 0.
    ```mlir
    llm.send %h, %batch {stage = 1 : i64} : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$value, Llm_BatchType:$batch, I64Attr:$stage);
  let assemblyFormat = "$value `,` $batch attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Llm_ReceiveOp : Llm_Op<"receive", [DeclareOpInterfaceMethods<Llm_CostOpInterface>]> {
  let summary = "rows of the rank at the same place of another stage";
  let description = [{
    See `llm.send`. `shard.recv` needs a value of the shape that it receives, which a stage does not have. (C1) stage >= 0.
    ```mlir
    %h = llm.receive %batch {stage = 0 : i64} : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Llm_BatchType:$batch, I64Attr:$stage);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$batch attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif // LLMC_DIALECTS_LLM_COLLECTIVE_OPS_TD
