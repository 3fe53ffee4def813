// Symbols, and the ops that every decoder has. LlmDialectOps.td names the other files.
#ifndef LLMC_DIALECTS_LLM_OPS_TD
#define LLMC_DIALECTS_LLM_OPS_TD
include "dialects/llm/LlmInterfaces.td"
include "dialects/llm/LlmTypes.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Llm_Op<string mnemonic, list<Trait> traits = []> : Op<Llm_Dialect, mnemonic, traits>;
class Llm_ComputeOp<string mnemonic, list<Trait> traits = []>
    : Llm_Op<mnemonic, [Pure, DeclareOpInterfaceMethods<Llm_CostOpInterface>] # traits>;

// [T, C] or [T, H, D]; T is dynamic.
def Llm_Rows : Type<CPred<"::llmc::llm::isRowsType($_self)">, "rows: tensor<?xCxf32> or tensor<?xHxDxf32>, sizes positive",
                    "::mlir::RankedTensorType">;

def Llm_WeightOp : Llm_Op<"weight", [Symbol]> {
  let summary = "a weight of the model: where it comes from, never its data";
  let description = [{
    `W = join(sources) + add`; sources are joined along their first dimension, those of a weight [E, N, K] along N. Each
    is a dictionary:

    | entry       | meaning                                                                                          |
    |-------------|--------------------------------------------------------------------------------------------------|
    | `tensor`    | published name                                                                                   |
    | `type`      | how it is stored, where that is known                                                            |
    | `stack`     | the tensors with 0 .. stack - 1 for `{expert}` in the name follow each other, each seen as below |
    | `dims`      | the shape that the stored elements are seen as; else the stored one                              |
    | `take`      | `array<i64: begin, end, begin, end, ...>`: the range of every dimension; else all                |
    | `order`     | dimension i is then dimension `order[i]`                                                         |
    | `rows`      | `array<i64: begin, end>` of dimension 0, instead of `take`                                       |
    | `unpermute` | rows of each head of so many go from interleaved pairs to halves                                 |
    | `map`       | `neg_exp` is `-exp(x)` of every element; `unit_rows` divides every row by its length             |

    What comes out is reshaped to rows of the weight.

    Of a model that ranks share, a rank has a part of W: `of` is the shape of W then, and `parts` has, for each of its
    dimensions, `array<i64: partition, begin, size, ...>`. The rank's ranges there follow each other: of each triple,
    `begin + [b, e)` with [b, e) its range of that partition of `size` elements (of `llmc.partitions` of the module,
    `array<i64: begin of rank 0, end of rank 0, ...>` each); partition -1 is all of them on every rank.

    (C1) there is at least one source. (C2) every source is a dictionary of these entries that names a tensor.
    (C3) rows are `array<i64: begin, end>`, 0 <= begin < end. (C4) unpermute is even and positive. (C5) stack is positive
    where the name has `{expert}`, absent where it has not. (C6) dims are positive. (C7) take is a range of every
    dimension, 0 <= begin < end, and inside of dims. (C8) order names every dimension once. (C9) map is known. (C10) there are parts where there is `of`: triples for each dimension of it, in ascending
    order and inside of it.
    ```mlir
    llm.weight @final_norm : !llm.weight<576> from [{tensor = "model.norm.weight"} ]
    llm.weight @gate : !llm.weight<4x96x64> from [{tensor = "gate_up", dims = array<i64: 4, 96, 2, 64>, take = array<i64: 0, 4, 0, 96, 0, 1, 0, 64>} ]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<Llm_WeightType>:$type, ArrayAttr:$sources,
                       OptionalAttr<F64Attr>:$add, OptionalAttr<DenseI64ArrayAttr>:$of, OptionalAttr<ArrayAttr>:$parts);
  let assemblyFormat = "$sym_name `:` $type `from` $sources attr-dict";
  let hasVerifier = 1;
}

def Llm_StateOp : Llm_Op<"state", [Symbol]> {
  let summary = "state that every sequence owns, kept between steps";
  let description = [{
    ```mlir
    llm.state @layers.0.kv : !llm.kv<3x64xf32>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<Llm_StateType>:$type);
  let assemblyFormat = "$sym_name `:` $type attr-dict";
}

def Llm_UseWeightOp : Llm_Op<"use_weight", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the weight behind a symbol";
  let description = [{
    (C1) the symbol is an `llm.weight` of the result's type.
    ```mlir
    %w = llm.use_weight @final_norm : !llm.weight<576>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$symbol);
  let results = (outs Llm_WeightType:$result);
  let assemblyFormat = "$symbol attr-dict `:` type($result)";
}

def Llm_UseStateOp : Llm_Op<"use_state", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the state behind a symbol, of all sequences of the batch";
  let description = [{
    (C1) the symbol is an `llm.state` of the result's type.
    ```mlir
    %kv = llm.use_state @layers.0.kv : !llm.kv<3x64xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$symbol);
  let results = (outs Llm_StateType:$result);
  let assemblyFormat = "$symbol attr-dict `:` type($result)";
}

def Llm_EmbeddingOp : Llm_ComputeOp<"embedding"> {
  let summary = "rows of the embedding for the tokens of the batch";
  let description = [{
    `result[t, c] = weight[token(t), c] * scale`.

    | name   | shape  | meaning                    |
    |--------|--------|----------------------------|
    | batch  | -      | gives the token of row t   |
    | weight | [V, C] | one row per token          |

    With `exact` the table is kept as f32 whatever form weights have: its numbers are indices, or few.
    (C1) weight is [V, C] with the C of the result.
    ```mlir
    %h = llm.embedding %batch, %w {scale = 1.0 : f32} : !llm.weight<49152x576> -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Llm_BatchType:$batch, Llm_WeightType:$weight, F32Attr:$scale, UnitAttr:$exact);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$batch `,` $weight attr-dict `:` type($weight) `->` type($result)";
  let hasVerifier = 1;
}

def Llm_RmsNormOp : Llm_ComputeOp<"rms_norm", [AllTypesMatch<["input", "result"]>]> {
  let summary = "root-mean-square normalization over the last dimension";
  let description = [{
    `result[.., c] = input[.., c] / sqrt(mean_k(input[.., k]^2) + eps) * weight[c]`; the mean is taken in f32.

    | name   | shape            | meaning                                                |
    |--------|------------------|--------------------------------------------------------|
    | input  | [T, C], [T, H, D] | activations; with heads each head is normalized alone |
    | weight | [C], [D], [H * D] | gain per channel, optional (1); with H * D elements each head has its own |
    | eps    | scalar           | added to the mean square, unitless, > 0                |

    Source: Zhang & Sennrich 2019, RMSNorm; `rms_norm_eps` in config.json.
    (C1) weight has as many elements as the last dimension or as a row. (C2) eps > 0.
    ```mlir
    %y = llm.rms_norm %x, %w {eps = 1.0e-6 : f32} : tensor<?x576xf32>, !llm.weight<576>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, Optional<Llm_WeightType>:$weight, F32Attr:$eps);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input (`,` $weight^)? attr-dict `:` type($input) (`,` type($weight)^)?";
  let hasVerifier = 1;
}

def Llm_LinearOp : Llm_ComputeOp<"linear"> {
  let summary = "matrix product with a weight, and a bias";
  let description = [{
    `result[t, n] = sum_k input[t, k] * weight[n, k] + bias[n]`.

    | name   | shape  | meaning                      |
    |--------|--------|------------------------------|
    | input  | [T, K] | activations                  |
    | weight | [N, K] | one row per output channel   |
    | bias   | [N]    | optional                     |

    (C1) weight is [N, K] with the K of the input and the N of the result. (C2) bias has N elements.
    ```mlir
    %y = llm.linear %x, %w : tensor<?x576xf32>, !llm.weight<192x576> -> tensor<?x192xf32>
    %z = llm.linear %x, %w bias %b : tensor<?x576xf32>, !llm.weight<192x576>, !llm.weight<192> -> tensor<?x192xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, Llm_WeightType:$weight, Optional<Llm_WeightType>:$bias);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = [{
    $input `,` $weight (`bias` $bias^)? attr-dict `:` type($input) `,` type($weight) (`,` type($bias)^)? `->` type($result)
  }];
  let hasVerifier = 1;
}

def Llm_FusedLinearOp : Llm_ComputeOp<"fused_linear"> {
  let summary = "several linears of one input as one matrix product";
  let description = [{
    `result_i[t, n] = sum_k input[t, k] * weight[offset_i + n, k] + bias[offset_i + n]`, offset_i = N_0 + ... + N_(i-1).
    Made by `llmc-fuse-linears`; task formation leaves none.

    (C1) weight is [N, K] with the K of the input, N the sum of the results' channels. (C2) bias has N elements.
    (C3) there are at least two results.
    ```mlir
    %q, %k = llm.fused_linear %x, %w : tensor<?x576xf32>, !llm.weight<768x576> -> tensor<?x576xf32>, tensor<?x192xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, Llm_WeightType:$weight, Optional<Llm_WeightType>:$bias);
  let results = (outs Variadic<Llm_Rows>:$results);
  let assemblyFormat = [{
    $input `,` $weight (`bias` $bias^)? attr-dict `:` type($input) `,` type($weight) (`,` type($bias)^)? `->` type($results)
  }];
  let hasVerifier = 1;
}

def Llm_Activation : I32EnumAttr<"Activation", "activation functions; llm.activation says what they compute", [
  I32EnumAttrCase<"Silu", 0, "silu">, I32EnumAttrCase<"GeluTanh", 1, "gelu_tanh">, I32EnumAttrCase<"Gelu", 2, "gelu">,
  I32EnumAttrCase<"GeluSigmoid", 3, "gelu_sigmoid">, I32EnumAttrCase<"Relu", 4, "relu">, I32EnumAttrCase<"Relu2", 5, "relu2">,
  I32EnumAttrCase<"Sigmoid", 6, "sigmoid">, I32EnumAttrCase<"Tanh", 7, "tanh">, I32EnumAttrCase<"Exp", 8, "exp">,
  I32EnumAttrCase<"Softplus", 9, "softplus">, I32EnumAttrCase<"Sqrt", 10, "sqrt">
]> {
  let cppNamespace = "::llmc::llm";
  let genSpecializedAttr = 0;
}
def Llm_ActivationAttr : EnumAttr<Llm_Dialect, Llm_Activation, "activation">;

def Llm_Scoring : I32EnumAttr<"Scoring", "how a router makes scores of logits; llm.router says what they compute", [
  I32EnumAttrCase<"Softmax", 0, "softmax">, I32EnumAttrCase<"Sigmoid", 1, "sigmoid">,
  I32EnumAttrCase<"SqrtSoftplus", 2, "sqrt_softplus">, I32EnumAttrCase<"None", 3, "none">,
  I32EnumAttrCase<"SparseMixer", 4, "sparse_mixer">
]> {
  let cppNamespace = "::llmc::llm";
  let genSpecializedAttr = 0;
}
def Llm_ScoringAttr : EnumAttr<Llm_Dialect, Llm_Scoring, "scoring">;

def Llm_Pairing : I32EnumAttr<"Pairing", "which channels of a head turn together", [
  I32EnumAttrCase<"Halves", 0, "halves">, I32EnumAttrCase<"Adjacent", 1, "adjacent">
]> {
  let cppNamespace = "::llmc::llm";
  let genSpecializedAttr = 0;
}
def Llm_PairingAttr : EnumAttr<Llm_Dialect, Llm_Pairing, "pairing">;

def Llm_GatedActivationOp : Llm_ComputeOp<"gated_activation", [SameOperandsAndResultType]> {
  let summary = "the middle of a gated feed-forward block";
  let description = [{
    `result = f(gate) * up` elementwise, f as in `llm.activation`. Source: Shazeer 2020, GLU Variants Improve Transformer.
    ```mlir
    %y = llm.gated_activation silu %gate, %up : tensor<?x1536xf32>
    ```
  }];
  let arguments = (ins Llm_ActivationAttr:$activation, Llm_Rows:$gate, Llm_Rows:$up);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$activation $gate `,` $up attr-dict `:` type($result)";
}

def Llm_AddOp : Llm_ComputeOp<"add", [SameOperandsAndResultType, Commutative]> {
  let summary = "sum of two activations";
  let description = [{
    `result = lhs + rhs` elementwise.
    ```mlir
    %s = llm.add %a, %b : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$lhs, Llm_Rows:$rhs);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

def Llm_ScaleOp : Llm_ComputeOp<"scale", [SameOperandsAndResultType]> {
  let summary = "product with a constant, and an offset";
  let description = [{
    `result = input * factor + offset` elementwise.
    ```mlir
    %y = llm.scale %x {factor = 0.22 : f32} : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, F32Attr:$factor, DefaultValuedAttr<F32Attr, "0.0f">:$offset);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}

def Llm_SoftcapOp : Llm_ComputeOp<"softcap", [SameOperandsAndResultType]> {
  let summary = "smooth clamp";
  let description = [{
    `result = cap * tanh(input / cap)` elementwise. (C1) cap > 0.
    Source: `final_logit_softcapping` in config.json.
    ```mlir
    %y = llm.softcap %x {cap = 30.0 : f32} : tensor<?x256xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, F32Attr:$cap);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Llm_SelectRowsOp : Llm_ComputeOp<"select_rows", [AllTypesMatch<["input", "result"]>]> {
  let summary = "the rows whose logits are wanted";
  let description = [{
    `result[r, c] = input[logit_row(r), c]`: R rows out of T.
    ```mlir
    %y = llm.select_rows %x, %batch : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, Llm_BatchType:$batch);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input `,` $batch attr-dict `:` type($result)";
}

def Llm_RecordOp : Llm_Op<"record"> {
  let summary = "hand a value to whoever watches the step";
  let description = [{
    Record `index` of the step is `value`: 0 after the embedding, i after layer i, layers + 1 after the final norm. Costs
    nothing unless the caller asks for records (`llmc logits --hidden`). (C1) index >= 0.
    ```mlir
    llm.record %h, %batch {index = 0 : i64} : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$value, Llm_BatchType:$batch, I64Attr:$index);
  let assemblyFormat = "$value `,` $batch attr-dict `:` type($value)";
  let hasVerifier = 1;
}

#endif // LLMC_DIALECTS_LLM_OPS_TD
