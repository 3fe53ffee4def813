// Ops that treat every row alone and hold no matrix product: elementwise maths, norms beside RMS, moving channels.
#ifndef LLMC_DIALECTS_LLM_ROW_OPS_TD
#define LLMC_DIALECTS_LLM_ROW_OPS_TD
include "dialects/llm/LlmOps.td"

def Llm_LayerNormOp : Llm_ComputeOp<"layer_norm", [AttrSizedOperandSegments, AllTypesMatch<["input", "result"]>]> {
  let summary = "mean and variance normalization over the last dimension";
  let description = [{
    `result[.., c] = (input[.., c] - mean) / sqrt(variance + eps) * weight[c] + bias[c]`, mean and (biased) variance over the
    last dimension in f32; without weight the gain is 1, without bias nothing is added.

    | name   | shape             | meaning                                                        |
    |--------|-------------------|----------------------------------------------------------------|
    | input  | [T, C], [T, H, D] | activations; with heads each head is normalized alone          |
    | weight | [C], [D], [H * D] | optional gain; with H * D elements each head has its own       |
    | bias   | as weight         | optional                                                       |
    | eps    | scalar            | added to the variance, unitless, > 0                           |

    Source: Ba et al. 2016, Layer Normalization; `layer_norm_eps`, `layer_norm_epsilon` in config.json.
    (C1) weight and bias have as many elements as the last dimension or as a row. (C2) eps > 0. (C3) a bias needs a weight.
    ```mlir
    %y = llm.layer_norm %x, %w bias %b {eps = 1.0e-5 : f32} : tensor<?x576xf32>, !llm.weight<576>, !llm.weight<576>
    %z = llm.layer_norm %x {eps = 1.0e-5 : f32} : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, Optional<Llm_WeightType>:$weight, Optional<Llm_WeightType>:$bias, F32Attr:$eps);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = [{
    $input (`,` $weight^)? (`bias` $bias^)? attr-dict `:` type($input) (`,` type($weight)^)? (`,` type($bias)^)?
  }];
  let hasVerifier = 1;
}

def Llm_ActivationOp : Llm_ComputeOp<"activation", [SameOperandsAndResultType]> {
  let summary = "an elementwise function";
  let description = [{
    `result = f(input)` elementwise; f is one of

    | name         | f(x)                                                   |
    |--------------|--------------------------------------------------------|
    | silu         | x / (1 + exp(-x))                                      |
    | gelu         | x/2 (1 + erf(x / sqrt 2))                              |
    | gelu_tanh    | x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))          |
    | gelu_sigmoid | x / (1 + exp(-1.702 x))                                |
    | relu, relu2  | max(x, 0), its square                                  |
    | sigmoid      | 1 / (1 + exp(-x))                                      |
    | tanh, exp    |                                                        |
    | softplus     | log(1 + exp(x)), x where x > 20                        |
    | sqrt         | sqrt(x), x >= 0                                        |

    Source: Hendrycks & Gimpel 2016, GELU; So et al. 2021, Primer (squared ReLU).
    ```mlir
    %y = llm.activation sigmoid %x : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Llm_ActivationAttr:$activation, Llm_Rows:$input);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$activation $input attr-dict `:` type($result)";
}

def Llm_XieluOp : Llm_ComputeOp<"xielu", [AllTypesMatch<["input", "result"]>]> {
  let summary = "a parametrised activation: quadratic above zero, exponential below";
  let description = [{
    With p = softplus(weight[0]), n = beta + softplus(weight[1]): `result = p x^2 + beta x` where x > 0, else
    `(exp(min(x, eps)) - 1 - x) n + beta x`.

    | name      | shape  | meaning                              |
    |-----------|--------|--------------------------------------|
    | weight    | [2]    | of the positive and the negative side |
    | beta, eps | scalar | slope at 0; eps < 0 bounds the exponent |

    Source: Huang & Schlag 2024, xIELU. (C1) weight has two elements.
    ```mlir
    %y = llm.xielu %x, %w {beta = 0.5 : f32, eps = -1.0e-6 : f32} : tensor<?x576xf32>, !llm.weight<2>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, Llm_WeightType:$weight, F32Attr:$beta, F32Attr:$eps);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input `,` $weight attr-dict `:` type($input) `,` type($weight)";
  let hasVerifier = 1;
}

def Llm_MultiplyOp : Llm_ComputeOp<"multiply", [AllTypesMatch<["lhs", "result"]>]> {
  let summary = "product of two activations";
  let description = [{
    `result = lhs * rhs` elementwise; rhs may have one number per head, `[T, H]` beside `[T, H, D]`, or one per row, `[T, 1]`.
    (C1) rhs has the type of lhs, or one channel per head or per row of it.
    ```mlir
    %y = llm.multiply %a, %b : tensor<?x576xf32>, tensor<?x576xf32>
    %z = llm.multiply %q, %g : tensor<?x9x64xf32>, tensor<?x9xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$lhs, Llm_Rows:$rhs);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs)";
  let hasVerifier = 1;
}

def Llm_AffineOp : Llm_ComputeOp<"affine", [AttrSizedOperandSegments, AllTypesMatch<["input", "result"]>]> {
  let summary = "stored gain and offset";
  let description = [{
    `result = input * weight + bias` elementwise: per channel (weight has C, or D elements for every head alike, or H * D),
    with `per_head` one number for each head (H elements), and one number for all with 1 element.

    | name         | shape                        | meaning                                      |
    |--------------|------------------------------|----------------------------------------------|
    | weight, bias | [C], [D], [H * D], [H], [1]  | each optional: gain 1, offset 0              |

    (C1) there is a weight or a bias. (C2) their sizes are such as above. (C3) `per_head` needs heads.
    ```mlir
    %y = llm.affine %x gain %w bias %b : tensor<?x576xf32> gain !llm.weight<576> bias !llm.weight<576>
    %z = llm.affine %q gain %h {per_head} : tensor<?x9x64xf32> gain !llm.weight<9>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, Optional<Llm_WeightType>:$weight, Optional<Llm_WeightType>:$bias,
                       UnitAttr:$per_head);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = [{
    $input (`gain` $weight^)? (`bias` $bias^)? attr-dict
    `:` type($input) (`gain` type($weight)^)? (`bias` type($bias)^)?
  }];
  let hasVerifier = 1;
}

def Llm_ClampOp : Llm_ComputeOp<"clamp", [SameOperandsAndResultType]> {
  let summary = "bounds";
  let description = [{
    `result = min(max(input, low), high)` elementwise; either bound may be infinite. (C1) low <= high.
    ```mlir
    %y = llm.clamp %x {low = -7.0 : f32, high = 7.0 : f32} : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, F32Attr:$low, F32Attr:$high);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Llm_SoftmaxOp : Llm_ComputeOp<"softmax", [SameOperandsAndResultType]> {
  let summary = "softmax over the last dimension";
  let description = [{
    `result[.., c] = exp(input[.., c] - m) / sum_k exp(input[.., k] - m)`, m the largest of the last dimension.
    ```mlir
    %y = llm.softmax %x : tensor<?x8xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$input);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}

def Llm_SinkhornOp : Llm_ComputeOp<"sinkhorn", [SameOperandsAndResultType]> {
  let summary = "a matrix of every row, scaled until its rows and columns sum to one";
  let description = [{
    With M = input[t], n x n and not negative, `M[i, j] /= sum_i M[i, j] + eps`, and then `iterations - 1` times
    `M[i, j] /= sum_j M[i, j] + eps`, `M[i, j] /= sum_i M[i, j] + eps`: columns last.

    | name       | shape     | meaning                                   |
    |------------|-----------|-------------------------------------------|
    | input      | [T, n, n] | e.g. a softmax of scores                  |
    | iterations | -         | normalizations of the columns             |
    | eps        | scalar    | added to every sum, > 0                   |

    Source: Sinkhorn & Knopp 1967; Xie et al. 2025, manifold-constrained hyper-connections; `hc_sinkhorn_iters` in config.json.
    (C1) the input is [T, n, n]. (C2) iterations >= 1. (C3) eps > 0.
    ```mlir
    %m = llm.sinkhorn %x {iterations = 20 : i64, eps = 1.0e-6 : f32} : tensor<?x4x4xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, I64Attr:$iterations, F32Attr:$eps);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Llm_SliceOp : Llm_ComputeOp<"slice"> {
  let summary = "consecutive channels";
  let description = [{
    `result[.., c] = input[.., begin + c]`, of every head where there are heads. (C1) begin >= 0, and begin + the result's channels is at
    most the input's channels; rows and heads are the same.
    ```mlir
    %y = llm.slice %x at 512 : tensor<?x576xf32> -> tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, I64Attr:$begin);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input `at` $begin attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Llm_ConcatOp : Llm_ComputeOp<"concat"> {
  let summary = "channels one after the other";
  let description = [{
    `result[.., c]` takes the channels of the inputs in order, of every head where there are heads. (C1) the inputs have the
    rank and heads of the result and its channels together.
    ```mlir
    %y = llm.concat %a, %b : tensor<?x512xf32>, tensor<?x64xf32> -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Variadic<Llm_Rows>:$inputs);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$inputs attr-dict `:` type($inputs) `->` type($result)";
  let hasVerifier = 1;
}

def Llm_RepeatHeadsOp : Llm_ComputeOp<"repeat_heads"> {
  let summary = "each head several times in a row";
  let description = [{
    `result[t, h, d] = input[t, h / times, d]`. (C1) the result has `times` heads for each of the input.
    ```mlir
    %y = llm.repeat_heads %x {times = 3 : i64} : tensor<?x3x64xf32> -> tensor<?x9x64xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, I64Attr:$times);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Llm_PositionEmbeddingOp : Llm_ComputeOp<"position_embedding"> {
  let summary = "a learned vector for every position";
  let description = [{
    `result[t, c] = weight[p(t) + offset, c]`, p(t) the position of row t, modulo `period` where there is one.

    | name   | shape  | meaning                                         |
    |--------|--------|-------------------------------------------------|
    | weight | [P, C] | one row per position                            |
    | offset | rows   | before the one of position 0 (OPT keeps two)    |
    | period | positions | that the table repeats after; 0: it does not |

    A position past the table takes its last row; a program is not compiled for more positions than the table has.
    (C1) weight is [P, C] with the C of the result, 0 <= offset < P. (C2) period >= 0, and offset + period is at most P.
    ```mlir
    %p = llm.position_embedding %batch, %w {offset = 2 : i64} : !llm.weight<2050x768> -> tensor<?x768xf32>
    ```
  }];
  let arguments = (ins Llm_BatchType:$batch, Llm_WeightType:$weight, I64Attr:$offset,
                       DefaultValuedAttr<I64Attr, "0">:$period);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$batch `,` $weight attr-dict `:` type($weight) `->` type($result)";
  let hasVerifier = 1;
}

def Llm_PositionScaleOp : Llm_ComputeOp<"position_scale", [AllTypesMatch<["input", "result"]>]> {
  let summary = "a factor that grows with the position";
  let description = [{
    `result = input * (1 + scale * log(1 + floor((p(t) + offset) / period)))`: queries of models that sharpen attention in long
    contexts. Source: `attn_temperature_tuning`, `floor_scale`, `attn_scale` in config.json.
    (C1) period >= 1, offset >= 0 positions.
    ```mlir
    %y = llm.position_scale %q, %batch {scale = 0.1 : f32, period = 8192 : i64, offset = 1 : i64} : tensor<?x9x64xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, Llm_BatchType:$batch, F32Attr:$scale, I64Attr:$period, I64Attr:$offset);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input `,` $batch attr-dict `:` type($input)";
  let hasVerifier = 1;
}

#endif // LLMC_DIALECTS_LLM_ROW_OPS_TD
