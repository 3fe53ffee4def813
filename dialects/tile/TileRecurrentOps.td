// Ops that carry a state of fixed size from row to row of a sequence.
#ifndef LLMC_DIALECTS_TILE_RECURRENT_OPS_TD
#define LLMC_DIALECTS_TILE_RECURRENT_OPS_TD
include "dialects/tile/TileOps.td"

def Tile_ConvolveOp : Tile_BodyOp<"convolve", [AllTypesMatch<["input", "result"]>]> {
  let summary = "causal convolution of one row's tile of channels, which updates the state";
  let description = [{
    With K taps, x_(K-1) the input and x_0 .. x_(K-2) the state of these channels (zero in the first row of a sequence that starts),
    `result[c] = sum_i weight[column * tile + c, i] * x_i[c]`, one fma after the other from 0 in ascending i. The state becomes
    x_1 .. x_(K-1). A task with this op takes the rows of a sequence in their order.

    (C1) the weight is packed as f32, its tile the size of the input. (C2) the state is 1 x C x (K - 1) for a weight of [C, K], in
    lanes of keys. (C3) its blocks have as many lanes as the tile.
    ```mlir
    %y = tile.convolve %x, %w[%column], %state, %batch[%row] : tensor<64xf32>, !llm.weight<576x4, f32, tile = 64, panel = 64>, !llm.recurrent<1x576x3>
    ```
  }];
  let arguments = (ins Tile_Tile:$input, Llm_WeightType:$weight, Index:$column, Llm_RecurrentType:$state,
                       Llm_BatchType:$batch, Index:$row);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $input `,` $weight `[` $column `]` `,` $state `,` $batch `[` $row `]` attr-dict
    `:` type($input) `,` type($weight) `,` type($state)
  }];
  let hasVerifier = 1;
}

def Tile_RecurOp : Tile_BodyOp<"recur", [AttrSizedOperandSegments, AllTypesMatch<["query", "key"]>,
                                         AllTypesMatch<["value", "result"]>]> {
  let summary = "one row of linear attention for some values of a head, or for some heads, which updates their state";
  let description = [{
    Values v = column * n .. column * n + n - 1 of all H * V belong to this tile, n its size: of one head, or of n / V whole heads with
    one query and key. S[k, v] is the state (zero in the first row of a sequence that starts), a the decay of v's head: one number or one
    for every k. A task with this op takes the rows of a sequence in their order.

    With beta: `p = sum_k (a[k] * q[k]) * S[k, v]`, `y = sum_k (a[k] * key[k]) * S[k, v]`, `u = beta * (value[v] - y)`,
    `S[k, v] = fma(key[k], u, a[k] * S[k, v])`, `result[v] = fma(sum_k q[k] * key[k], u, p)`.
    Without: `S[k, v] = fma(key[k], value[v], a[k] * S[k, v])`, `result[v] = sum_k q[k] * S[k, v]`.
    Without a decay there is no factor a.

    Every product in parentheses and every `a[k] * S` is rounded. Sums are fma from 0 in ascending k into partial sums. Where lanes of
    the state are keys, and for q * key, there are sixteen (k goes to partial k mod 16), put together by halves: 8, 4, 2, 1. Else there
    are two, of the even and of the odd k, which are then added. Whatever the chunks of a sequence are: the bits are the same.

    (C1) the query has K elements. (C2) with lanes of values, n is V or the lanes of a block, whichever is less; with lanes of keys,
    n is the values of whole heads whose number divides H. (C3) the decay has a number, or K, for each head of the tile. (C4) beta has a
    number for each.
    ```mlir
    %o = tile.recur %q, %k, %v decay %a beta %b, %state[%column], %batch[%row] : tensor<16xf32>, tensor<32xf32> decay tensor<16xf32> beta tensor<1xf32>, !llm.recurrent<4x16x32>
    ```
  }];
  let arguments = (ins Tile_Tile:$query, Tile_Tile:$key, Tile_Tile:$value, Optional<Tile_Tile>:$decay,
                       Optional<Tile_Tile>:$beta, Llm_RecurrentType:$state, Index:$column, Llm_BatchType:$batch,
                       Index:$row);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`decay` $decay^)? (`beta` $beta^)? `,` $state `[` $column `]` `,` $batch `[` $row `]` attr-dict
    `:` type($query) `,` type($value) (`decay` type($decay)^)? (`beta` type($beta)^)? `,` type($state)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Heads that the tile holds: one, or more where lanes are keys.
    int64_t numHeads();
  }];
}

def Tile_PoolOp : Tile_BodyOp<"pool", [AllTypesMatch<["value", "gate"]>]> {
  let summary = "one row of a softmax-weighted sum over windows of positions, which updates the state";
  let description = [{
    Value and gate hold n tiles of channels, n = 1 or 2, the result one. A running sum of a channel is three lines of the state: the
    maximum m of its gates times log2(e), the sum l of weights and the weighted sum s; it is empty where l = 0. Sum 0 is over the
    row's window with the last tile; with n = 2, sum 1 is over the window with the first tile and sum 2 what sum 1 was at the end of
    the window before. Where a window begins (the position is a multiple of `window`) sum 2 becomes sum 1, and sums 0 and 1 are
    emptied.

    Then the row joins sum 0, and sum 1: with g = gate * log2(e), `m' = max(m, g)` (g of an empty sum), `f = exp2(m - m')`,
    `e = exp2(g - m')`, `l' = fma(l, f, e)`, `s' = fma(s, f, e * value)`. The result is `s / l` of sum 0, with n = 2 of sums 0 and 2
    together: m' the larger maximum of those that are not empty, f and e those of sums 0 and 2, `l = fma(l0, f, l2 * e)`,
    `s = fma(s0, f, s2 * e)`. A task with this op takes the rows of a sequence in their order.

    (C1) value and gate have as many elements as the result, or twice as many. (C2) the state has one head, lanes of values, and as many
    keys as the sums have lines. (C3) the result has the lanes of a block. (C4) window >= 1.
    ```mlir
    %y = tile.pool %v, %g, %state[%column], %batch[%row] {window = 4 : i64} : tensor<64xf32>, !llm.recurrent<1x9x64> -> tensor<32xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$value, Tile_Tile:$gate, Llm_RecurrentType:$state, Index:$column, Llm_BatchType:$batch,
                       Index:$row, I64Attr:$window);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $value `,` $gate `,` $state `[` $column `]` `,` $batch `[` $row `]` attr-dict
    `:` type($value) `,` type($state) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // LLMC_DIALECTS_TILE_RECURRENT_OPS_TD
