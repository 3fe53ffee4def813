// Ops of the program level by which ranks exchange whole buffers: between launches, never inside of a task.
#ifndef LLMC_DIALECTS_TILE_COLLECTIVE_OPS_TD
#define LLMC_DIALECTS_TILE_COLLECTIVE_OPS_TD
include "dialects/tile/TileOps.td"

// A buffer has room for all rows of the batch; `space` says how many of them are exchanged. With a token the exchange is
// started only: it runs beside the step, in the order of the step, and its operands are its own until tile.wait.
class Tile_CollectiveOp<string mnemonic, list<Trait> traits = []> : Tile_Op<mnemonic, traits> {
  let results = (outs Optional<Tile_TokenType>:$token);
}

def Tile_AllReduceOp : Tile_CollectiveOp<"all_reduce", [AllTypesMatch<["input", "result"]>]> {
  let summary = "sum of the rows of all ranks of a group";
  let description = [{
    `result[t, c] = ((x_0[t, c] + x_1[t, c]) + x_2[t, c]) + ...`, x_r the input of rank r of the group, whoever adds: every rank gets
    the same bits. Input and result may be one buffer.
    ```mlir
    tile.all_reduce rows %a to %s : !tile.rows<576>
    %t = tile.all_reduce rows %a to %s : !tile.rows<576> -> !tile.token
    ```
  }];
  let arguments = (ins Tile_SpaceAttr:$space, Tile_RowsType:$input, Tile_RowsType:$result);
  let assemblyFormat = "$space $input `to` $result attr-dict `:` type($input) (`->` qualified(type($token))^)?";
}

def Tile_AllGatherOp : Tile_CollectiveOp<"all_gather"> {
  let summary = "whole rows of the parts that the ranks of a group hold";
  let description = [{
    An element of `segments` is `array<i64: begin of rank 0, end of rank 0, begin of rank 1, ...>`, ranges of the result's channels.
    Rank r's input is its ranges of all segments, one behind the other; channel c of the result is taken from the lowest rank that
    holds it. A rank whose ranges are all empty has no input.

    (C1) every segment has a range of each rank, 0 <= begin <= end, inside of the result. (C2) the ranges hold every channel of the
    result. (C3) the input has as many channels as some rank's ranges.
    ```mlir
    tile.all_gather rows %p : !tile.rows<64> to %whole : !tile.rows<96> {segments = [array<i64: 0, 64, 64, 96>]}
    ```
  }];
  let arguments = (ins Tile_SpaceAttr:$space, Optional<Tile_RowsType>:$input, Tile_RowsType:$result,
                       ArrayAttr:$segments);
  let assemblyFormat = [{
    $space ($input^ `:` type($input))? `to` $result `:` type($result) attr-dict (`->` qualified(type($token))^)?
  }];
  let hasVerifier = 1;
}

def Tile_SendOp : Tile_CollectiveOp<"send"> {
  let summary = "hand rows to the rank at the same place of another stage";
  let description = [{
    The n-th send from stage a to stage b is what the n-th receive there gets. (C1) stage >= 0.
    ```mlir
    tile.send rows %a to stage 1 : !tile.rows<576>
    ```
  }];
  let arguments = (ins Tile_SpaceAttr:$space, Tile_RowsType:$input, I64Attr:$stage);
  let assemblyFormat = [{
    $space $input `to` `stage` $stage attr-dict `:` type($input) (`->` qualified(type($token))^)?
  }];
  let hasVerifier = 1;
}

def Tile_ReceiveOp : Tile_CollectiveOp<"receive"> {
  let summary = "rows of the rank at the same place of another stage";
  let description = [{
    See `tile.send`. (C1) stage >= 0.
    ```mlir
    tile.receive rows %a from stage 0 : !tile.rows<576>
    ```
  }];
  let arguments = (ins Tile_SpaceAttr:$space, Tile_RowsType:$result, I64Attr:$stage);
  let assemblyFormat = [{
    $space $result `from` `stage` $stage attr-dict `:` type($result) (`->` qualified(type($token))^)?
  }];
  let hasVerifier = 1;
}

def Tile_WaitOp : Tile_Op<"wait"> {
  let summary = "until exchanges are done";
  let description = [{
    Their buffers are the step's again.
    ```mlir
    tile.wait %t
    ```
  }];
  let arguments = (ins Variadic<Tile_TokenType>:$tokens);
  let assemblyFormat = "$tokens attr-dict";
}

#endif // LLMC_DIALECTS_TILE_COLLECTIVE_OPS_TD
