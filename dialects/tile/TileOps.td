// Ops of the tile dialect: the program level (task, launch, alloc) and what a task's body is made of.
#ifndef LLMC_DIALECTS_TILE_OPS_TD
#define LLMC_DIALECTS_TILE_OPS_TD
include "dialects/llm/LlmTypes.td"
include "dialects/tile/TileEnums.td"
include "dialects/tile/TileTypes.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

class Tile_Op<string mnemonic, list<Trait> traits = []> : Op<Tile_Dialect, mnemonic, traits>;
class Tile_BodyOp<string mnemonic, list<Trait> traits = []>
    : Tile_Op<mnemonic, [ParentOneOf<["TaskOp", "WhenOp"]>] # traits>;

// A tile of elements: tensor<Nxf32>, N static and positive.
class Tile_TileOf<string elements, string predicate>
    : Type<CPred<"::llmc::tile::isTileType($_self) && ::llvm::cast<::mlir::RankedTensorType>($_self).getElementType()." #
                 predicate>,
           "tile: one static positive dimension of " # elements, "::mlir::RankedTensorType">;
def Tile_Tile : Tile_TileOf<"f32", "isF32()">;
def Tile_Codes : AnyTypeOf<[Tile_TileOf<"i16", "isSignlessInteger(16)">, Tile_TileOf<"i8", "isSignlessInteger(8)">],
                           "tile of i16 or i8", "::mlir::RankedTensorType">;
def Tile_DotInput : AnyTypeOf<[Tile_Tile, Tile_TileOf<"bf16", "isBF16()">], "tile of f32 or bf16",
                              "::mlir::RankedTensorType">;

//===-- program -----------------------------------------------------------------------------------------------------===//

def Tile_TaskOp : Tile_Op<"task", [Symbol, IsolatedFromAbove, NoTerminator, SingleBlock]> {
  let summary = "one future kernel: what happens to one row and one tile of columns";
  let description = [{
    The body's arguments are the row, the index of the column tile, and the task's operands. The grid is all rows of the
    space times `columns` tiles. A task whose arguments hold no dot has one column tile.

    (C1) columns >= 1. (C2) the first two arguments are indices. (C3) the others are rows, weights, states or the batch.
    ```mlir
    tile.task @add rows(%row, %column of 9) (%a: !tile.rows<576>, %out: !tile.rows<576>) {
      %c64 = arith.constant 64 : index
      %at = arith.muli %column, %c64 : index
      %x = tile.load %a[%row, %at] : !tile.rows<576> -> tensor<64xf32>
      tile.store %x, %out[%row, %at] : tensor<64xf32>, !tile.rows<576>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Tile_SpaceAttr:$space, I64Attr:$columns,
                       OptionalAttr<DictionaryAttr>:$schedule);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Value getRow() { return getBody().getArgument(0); }
    ::mlir::Value getColumn() { return getBody().getArgument(1); }
    ::llvm::ArrayRef<::mlir::BlockArgument> getOperandArguments() { return getBody().getArguments().drop_front(2); }
  }];
}

def Tile_LaunchOp : Tile_Op<"launch", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "run a task over its whole grid";
  let description = [{
    Starts when every earlier launch of the step is done (code generation may find that it need not wait). With `recording`
    it runs only in steps whose caller asked for records.

    (C1) the symbol is a `tile.task`. (C2) the operands are those of the task, in number and type.
    ```mlir
    tile.launch @add(%h, %s) : !tile.rows<576>, !tile.rows<576>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$task, Variadic<AnyType>:$operands, UnitAttr:$recording);
  let assemblyFormat = "$task `(` $operands `)` (`recording` $recording^)? attr-dict (`:` type($operands)^)?";
}

def Tile_AllocOp : Tile_Op<"alloc", [MemoryEffects<[MemAlloc]>]> {
  let summary = "a buffer of the step";
  let description = [{
    `offset` is set by `llmc-plan-memory`: bytes per row of the batch before this buffer in the arena. (C1) offset >= 0.
    ```mlir
    %s = tile.alloc : !tile.rows<576>
    ```
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$offset);
  let results = (outs Tile_RowsType:$result);
  let assemblyFormat = "(`at` $offset^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_LogitsOp : Tile_Op<"logits", [Pure]> {
  let summary = "the buffer that the step's logits go to";
  let description = [{
    ```mlir
    %l = tile.logits : !tile.rows<49152>
    ```
  }];
  let results = (outs Tile_RowsType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

//===-- memory ------------------------------------------------------------------------------------------------------===//

def Tile_LoadOp : Tile_BodyOp<"load"> {
  let summary = "part of a row";
  let description = [{
    `result[i] = rows[row][column + i]`; elements past the channels are unspecified but finite.
    ```mlir
    %x = tile.load %a[%row, %at] : !tile.rows<576> -> tensor<64xf32>
    ```
  }];
  let arguments = (ins Tile_RowsType:$rows, Index:$row, Index:$column);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$rows `[` $row `,` $column `]` attr-dict `:` type($rows) `->` type($result)";
}

def Tile_StoreOp : Tile_BodyOp<"store"> {
  let summary = "write part of a row";
  let description = [{
    `rows[row][column + i] = value[i]`; may reach into the padding of the row.
    ```mlir
    tile.store %x, %out[%row, %at] : tensor<64xf32>, !tile.rows<576>
    ```
  }];
  let arguments = (ins Tile_Tile:$value, Tile_RowsType:$rows, Index:$row, Index:$column);
  let assemblyFormat = "$value `,` $rows `[` $row `,` $column `]` attr-dict `:` type($value) `,` type($rows)";
}

def Tile_LoadVectorOp : Tile_BodyOp<"load_vector"> {
  let summary = "part of a plain weight: a gain or a bias";
  let description = [{
    `result[i] = weight[column + i]`, zero past its end; vectors of a plain list follow each other. (C1) the weight has one
    dimension, or is plain.
    ```mlir
    %g = tile.load_vector %w[%at] : !llm.weight<576, plain> -> tensor<64xf32>
    ```
  }];
  let arguments = (ins Llm_WeightType:$weight, Index:$column);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$weight `[` $column `]` attr-dict `:` type($weight) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_GatherOp : Tile_BodyOp<"gather"> {
  let summary = "one output channel of a packed weight, dequantised";
  let description = [{
    `result[k] = weight[index, k]`: a row of the embedding. (C1) the weight is packed, K the result's elements.
    ```mlir
    %x = tile.gather %w[%token] : !llm.weight<49152x576, bf16, tile = 64, panel = 64> -> tensor<576xf32>
    ```
  }];
  let arguments = (ins Llm_WeightType:$weight, Index:$index);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$weight `[` $index `]` attr-dict `:` type($weight) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_BatchOp : Tile_BodyOp<"batch", [Pure]> {
  let summary = "the token, the position or the wanted row of a row";
  let description = [{
    ```mlir
    %p = tile.batch position %batch[%row]
    ```
  }];
  let arguments = (ins Tile_BatchFactAttr:$fact, Llm_BatchType:$batch, Index:$row);
  let results = (outs Index:$result);
  let assemblyFormat = "$fact $batch `[` $row `]` attr-dict";
}

def Tile_RecordOp : Tile_BodyOp<"record"> {
  let summary = "write record `index` of a row";
  let description = [{
    (C1) index >= 0.
    ```mlir
    tile.record %x, %batch[%row] at 3 : tensor<576xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$value, Llm_BatchType:$batch, Index:$row, I64Attr:$index);
  let assemblyFormat = "$value `,` $batch `[` $row `]` `at` $index attr-dict `:` type($value)";
  let hasVerifier = 1;
}

//===-- arithmetic --------------------------------------------------------------------------------------------------===//

def Tile_DotOp : Tile_BodyOp<"dot"> {
  let summary = "a row times one tile of a packed weight";
  let description = [{
    `result[n] = sum_k input[k] * weight[column * tile + n, k]`, summed in f32 in ascending order of k: single products with
    f32 inputs, pairs (odd k first, then even) with bf16. Of a weight packed as f8 each group of 32 k is summed up apart, from
    zero, with the codes: `result = fma(sum, scale, result)`. Columns past the weight's last row are zero. Of a stack of
    matrices [E, N, K] the one with index `matrix` is taken; without one of that index the result is 0 and no weight is read.

    (C1) the weight is packed, its form bf16 as the input, or f32 or f8 with an input of f32. (C2) the input has K elements, the result the tile's.
    (C3) a stack, and nothing else, has a matrix.
    ```mlir
    %y = tile.dot %x, %w[%column] : tensor<576xbf16>, !llm.weight<960x576, bf16, tile = 64, panel = 64> -> tensor<64xf32>
    %z = tile.dot %x, %v[%column] of %e : tensor<576xbf16>, !llm.weight<8x960x576, bf16, tile = 64, panel = 64> -> tensor<64xf32>
    ```
  }];
  let arguments = (ins Tile_DotInput:$input, Llm_WeightType:$weight, Index:$column, Optional<Index>:$matrix);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $input `,` $weight `[` $column `]` (`of` $matrix^)? attr-dict `:` type($input) `,` type($weight) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_QuantizeOp : Tile_BodyOp<"quantize", [Pure]> {
  let summary = "16-bit or 8-bit codes and one scale per 32 elements";
  let description = [{
    Group g holds elements 32g .. 32g + 31 (zero past the end): `scale[g] = max_i |x_i| / L`, `code[i] = round_to_even(x_i * (1 / scale[g]))`, all
    zero when the maximum is 0. L is 127 for codes of i8, 32512 for i16. Error at most scale / 2 per element: with eight bits one
    large element of a group drowns its neighbours. 32512 = 255 * 127 + 127 lets a kernel split a code into two bytes of -127 .. 127, 255 * hi + lo.
    (C1) codes and scales hold the elements in whole groups of 32, the number of groups even.
    ```mlir
    %c, %s = tile.quantize %x : tensor<576xf32> -> tensor<576xi16>, tensor<18xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$input);
  let results = (outs Tile_Codes:$codes, Tile_Tile:$scales);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($codes) `,` type($scales)";
  let hasVerifier = 1;
}

def Tile_ScaledDotOp : Tile_BodyOp<"scaled_dot"> {
  let summary = "quantised row times one tile of a quantised weight";
  let description = [{
    Per group g of 32, with the exact integer sums `q = sum_k code_k * c_k` (which fits 32 bits) and `s = sum_k code_k`, the weight's codes c, its
    scale d and minimum m of that group and column: `result = fma(f32(q), d * scale[g], result)`, then with minima
    `result = fma(f32(s), m * scale[g], result)`; groups in ascending order.
    Codes of i8 are -128 .. 127, of i4 -8 .. 7, of i4m 0 .. 15. Those of f4 are twice the four-bit floats, -12 .. 12, and have half the scale; each half of a
    group has its own: the first 16 are summed up, scaled and added, then the others. `matrix` as in `tile.dot`.

    (C1) the weight is packed as i8, i4, i4m or f4. (C2) codes and scales are those of a row of K elements. (C3) a stack, and
    nothing else, has a matrix.
    ```mlir
    %y = tile.scaled_dot %c, %s, %w[%column] : tensor<576xi16>, tensor<18xf32>, !llm.weight<960x576, i4, tile = 64, panel = 16> -> tensor<64xf32>
    ```
  }];
  let arguments = (ins Tile_Codes:$codes, Tile_Tile:$scales, Llm_WeightType:$weight, Index:$column,
                       Optional<Index>:$matrix);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $codes `,` $scales `,` $weight `[` $column `]` (`of` $matrix^)? attr-dict `:` type($codes) `,` type($scales) `,` type($weight) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_ReduceOp : Tile_BodyOp<"reduce", [Pure]> {
  let summary = "sum or maximum of a tile";
  let description = [{
    Sixteen partial results (element i goes to partial i mod 16, in ascending order), then halves: 8, 4, 2, 1.
    ```mlir
    %s = tile.reduce add %x : tensor<576xf32>
    ```
  }];
  let arguments = (ins Tile_ReductionAttr:$reduction, Tile_Tile:$input);
  let results = (outs F32:$result);
  let assemblyFormat = "$reduction $input attr-dict `:` type($input)";
}

def Tile_SplatOp : Tile_BodyOp<"splat", [Pure]> {
  let summary = "one number in every element";
  let description = [{
    ```mlir
    %v = tile.splat %s : tensor<576xf32>
    ```
  }];
  let arguments = (ins F32:$input);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}

def Tile_SliceOp : Tile_BodyOp<"slice", [Pure]> {
  let summary = "consecutive elements of a tile";
  let description = [{
    `result[i] = input[offset + i]`. (C1) offset + size of the result is at most the size of the input.
    ```mlir
    %a = tile.slice %x at 32 : tensor<64xf32> -> tensor<32xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$input, I64Attr:$offset);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$input `at` $offset attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_ConcatOp : Tile_BodyOp<"concat", [Pure]> {
  let summary = "tiles one after the other";
  let description = [{
    (C1) the result has as many elements as all inputs.
    ```mlir
    %y = tile.concat %a, %b : tensor<32xf32>, tensor<32xf32> -> tensor<64xf32>
    ```
  }];
  let arguments = (ins Variadic<Tile_Tile>:$inputs);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$inputs attr-dict `:` type($inputs) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_RepeatOp : Tile_BodyOp<"repeat", [Pure]> {
  let summary = "each element several times in a row";
  let description = [{
    `result[i] = input[i / n]`, n = elements of the result / elements of the input. (C1) n is whole.
    ```mlir
    %y = tile.repeat %x : tensor<9xf32> -> tensor<576xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$input);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_SwapPairsOp : Tile_BodyOp<"swap_pairs", [Pure, SameOperandsAndResultType]> {
  let summary = "neighbours change places";
  let description = [{
    `result[2i] = input[2i + 1]`, `result[2i + 1] = input[2i]`. (C1) the number of elements is even.
    ```mlir
    %y = tile.swap_pairs %x : tensor<64xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$input);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_ChooseOp : Tile_BodyOp<"choose", [Pure]> {
  let summary = "places of the largest elements";
  let description = [{
    The elements are `groups` groups of equal size. A group counts the sum of its `group_sum` largest elements; all but
    the `top_groups` that count most leave. The result are the places of the largest elements that stay, as f32, in
    descending order of the elements; where groups or elements are equal the lower place comes first.

    (C1) groups divide the elements. (C2) 1 <= top_groups <= groups. (C3) group_sum is 1 or 2 and at most the size of a
    group. (C4) the result has at most as many elements as stay.
    ```mlir
    %e = tile.choose %x {groups = 4 : i64, top_groups = 2 : i64, group_sum = 2 : i64} : tensor<64xf32> -> tensor<8xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$input, I64Attr:$groups, I64Attr:$top_groups, I64Attr:$group_sum);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_PickOp : Tile_BodyOp<"pick", [Pure, AllTypesMatch<["places", "result"]>]> {
  let summary = "elements at given places";
  let description = [{
    `result[i] = input[places[i]]`, places as `tile.choose` makes them; one that is none is taken for the nearest.
    ```mlir
    %w = tile.pick %x at %e : tensor<64xf32>, tensor<8xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$input, Tile_Tile:$places);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$input `at` $places attr-dict `:` type($input) `,` type($places)";
}

def Tile_SinkhornOp : Tile_BodyOp<"sinkhorn", [Pure, SameOperandsAndResultType]> {
  let summary = "a square matrix, scaled until its rows and columns sum to one";
  let description = [{
    The n x n elements are M, row by row. `M[i, j] /= sum_i M[i, j] + eps`, then `iterations - 1` times `M[i, j] /= sum_j M[i, j] + eps`,
    `M[i, j] /= sum_i M[i, j] + eps`. Sums over i are in ascending order; sums over j have sixteen places, zero where there is no
    column, put together by halves: 8, 4, 2, 1. eps is added last.

    (C1) the elements are a square matrix of at most 16 x 16. (C2) iterations >= 1. (C3) eps > 0.
    ```mlir
    %y = tile.sinkhorn %x {iterations = 20 : i64, eps = 1.0e-6 : f32} : tensor<16xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$input, I64Attr:$iterations, F32Attr:$eps);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Rows, and columns; 0 where the elements are no square.
    int64_t matrixSize();
  }];
}

//===-- control -----------------------------------------------------------------------------------------------------===//

def Tile_WhenOp : Tile_BodyOp<"when", [NoTerminator, SingleBlock]> {
  let summary = "only for some of the column tiles";
  let description = [{
    The body runs for begin <= column < end: the queries, keys and values of one matrix product part here.
    (C1) 0 <= begin < end. (C2) the body has no arguments.
    ```mlir
    tile.when %column in 0 to 9 {
      tile.store %x, %out[%row, %at] : tensor<64xf32>, !tile.rows<576>
    }
    ```
  }];
  let arguments = (ins Index:$column, I64Attr:$begin, I64Attr:$end);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$column `in` $begin `to` $end attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

//===-- cache -------------------------------------------------------------------------------------------------------===//

def Tile_AppendOp : Tile_BodyOp<"append"> {
  let summary = "write the key or the value of one row and head into its page";
  let description = [{
    Rounded to the cache's element type, nearest even; as i8 `scale = max_d |x_d| / 127` and
    `code[d] = round_to_even(x_d * (1 / scale))`, all zero when the maximum is 0. (C1) the cache is paged. (C2) a key has the
    channels of the cache's keys, a value those of its values; a latent cache takes keys only. A cache with every = r takes the rows at
    positions p with r dividing p + 1; others are not written.
    ```mlir
    tile.append key %k, %kv[%head], %batch[%row] : tensor<64xf32>, !llm.kv<3x64xbf16, page = 64, panel = 16>
    ```
  }];
  let arguments = (ins Tile_KvHalfAttr:$half, Tile_Tile:$value, Llm_KvType:$kv, Index:$head, Llm_BatchType:$batch,
                       Index:$row);
  let assemblyFormat = "$half $value `,` $kv `[` $head `]` `,` $batch `[` $row `]` attr-dict `:` type($value) `,` type($kv)";
  let hasVerifier = 1;
}

def Tile_AttendOp : Tile_BodyOp<"attend", [InferTypeOpAdaptor, AttrSizedOperandSegments]> {
  let summary = "attention of one row's query heads that share a key-value head, over its pages";
  let description = [{
    The query holds G heads of D channels, the result G heads of the cache's value channels. Pages are taken in order; scores of
    one page are computed together, the softmax is online: with m the running maximum of `score * log2(e)`,
    `p = exp2(score * log2(e) - m)`, sum and result are scaled by `exp2(m_old - m_new)` at each page. Masked positions (after
    the row's own, before its window, outside its chunk of positions) contribute nothing; the result is 0 where all are masked.

    With span > 0 positions 0 .. span - 1, span .. 2 span - 1, ... have maximum, sum and result of their own, which are
    then put together in ascending order: `m' = max(m, m_s)`, `sum' = fma(sum_s, exp2(m_s - m'), sum * exp2(m - m'))`, the result
    likewise, from m = -1e30 and zeros. So spans may be computed by different workers; `partials` is room for theirs.

    Of a cache with every = r, j counts its rows, of which (p + 1) / r are seen at position p; a page is as many rows as other caches have
    positions in one, taken together from wherever they lie.

    The logsum of a head is `m * ln 2 + log(sum)`, sinks included, -1e30 where everything is masked.

    With alibi `fma(slope * log2(e), j - p, score * log2(e))` stands for `score * log2(e)`. Sinks, one of each head, are put in
    last: `s = sink * log2(e)`, `m' = max(m, s)`, `sum' = fma(sum, exp2(m - m'), exp2(s - m'))`, and the result times `exp2(m - m')`.

    With `selected`, a list of positions (those below 0 name none, none comes twice), the entries of the list take the place of
    positions in pages and spans, and of every page of entries those that name no position, or a masked one, are left out
    before anything is computed.

    A cache that is packed in pairs makes both products those of bf16 pairs, unless positions are selected: query and p are
    rounded to bf16 (to nearest even), and the sum of p takes it rounded. Over the channels (of a score) or positions of the page
    (of a result), pair after pair, first the odd, then the even product is added by fma. With `block = 32` so many at a time, the
    even ones and the odd ones are each added up by fma from 0, both sums are added, and their sum to what there is. Numbers
    below the smallest normal one count as zero of their sign.
    With other caches everything is f32, one fma after the other in ascending order. A score of i8 keys is the sum over
    their codes times the key's scale; a result takes `p * scale` of each value's codes.

    (C1) the cache is paged. (C2) the query holds whole heads. (C3) scale > 0; softcap, window and chunk >= 0, the last two 0 and no slopes
    where the cache has every > 1. (C4) span >= 0 is a multiple of the page. (C5) partials have room for every query head of the task: its result of whole vectors of 16, 16 sums,
    16 for the maximum. (C6) one sink for each head of the query. (C7) one slope for each head of the task, those of column c
    from c * G on. (C8) a logsum for each head exactly when `with_logsum`.
    ```mlir
    %o = tile.attend %q, %kv[%head], %batch[%row] {scale = 0.125 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<192xf32>, !llm.kv<3x64xbf16, page = 64, panel = 16>
    ```
  }];
  let arguments = (ins Tile_Tile:$query, Llm_KvType:$kv, Index:$head, Llm_BatchType:$batch, Index:$row,
                       Optional<Tile_RowsType>:$partials, Optional<Tile_Tile>:$sinks, Optional<Tile_Tile>:$selected,
                       F32Attr:$scale, F32Attr:$softcap, I64Attr:$window, DefaultValuedAttr<I64Attr, "0">:$chunk,
                       OptionalAttr<DenseF32ArrayAttr>:$alibi, DefaultValuedAttr<I64Attr, "0">:$span,
                       UnitAttr:$with_logsum);
  let results = (outs Tile_Tile:$result, Optional<Tile_Tile>:$logsum);
  let assemblyFormat = [{
    $query `,` $kv `[` $head `]` `,` $batch `[` $row `]` (`partials` $partials^ `:` type($partials))?
    (`sinks` $sinks^ `:` type($sinks))? (`selected` $selected^ `:` type($selected))? attr-dict
    `:` type($query) `,` type($kv)
  }];
  let hasVerifier = 1;
}

def Tile_SelectPositionsOp : Tile_BodyOp<"select_positions"> {
  let summary = "the positions of one row with the largest scores of an indexer";
  let description = [{
    The query holds H heads, the cache one head of keys. `score_j = fma(weight[h], max(0, query[h] . key[j]), score_j)`
    for ascending h, from 0, the product as tile.attend makes it, for positions j up to the row's own. The result names the n
    positions of largest score, the lower one where scores are equal, in ascending order, then -1. Of a cache with every = r they are
    rows, of which (p + 1) / r are searched. With span > 0 spans of as
    many positions may be searched by different workers; `partials` is room for what they find.

    (C1) the cache is paged. (C2) it has one head. (C3) the query holds whole heads, with a weight for each. (C4) span >= 0 is a
    multiple of the page. (C5) partials have room for 2 n elements.
    ```mlir
    %p = tile.select_positions %q, %w, %kv, %batch[%row] : tensor<128xf32>, tensor<4xf32>, !llm.kv<1x32xbf16, latent = 32, page = 64, panel = 1> -> tensor<8xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$query, Tile_Tile:$weights, Llm_KvType:$kv, Llm_BatchType:$batch, Index:$row,
                       Optional<Tile_RowsType>:$partials, DefaultValuedAttr<I64Attr, "0">:$span);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $query `,` $weights `,` $kv `,` $batch `[` $row `]` (`partials` $partials^ `:` type($partials))? attr-dict
    `:` type($query) `,` type($weights) `,` type($kv) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // LLMC_DIALECTS_TILE_OPS_TD
