// Products with a matrix of their own for every expert or head, and the router that picks experts.
#ifndef LLMC_DIALECTS_LLM_EXPERT_OPS_TD
#define LLMC_DIALECTS_LLM_EXPERT_OPS_TD
include "dialects/llm/LlmRowOps.td"

def Llm_RouterOp : Llm_ComputeOp<"router", [AllTypesMatch<["weights", "experts"]>, AttrSizedOperandSegments]> {
  let summary = "the experts of every row, and their weights";
  let description = [{
    From scores z = input[t]: `s = f(z)` over all experts, f by `scoring`; the choice goes by `c = s + bias`. With groups > 1 the
    experts are that many groups of equal size; a group counts its largest c, or the sum of its two largest (`group_sum` = 2); all
    but the best `top_groups` groups leave. The `top_k` largest c are chosen, the lower index first where they are equal,
    in descending order of c. `weights = s` of the chosen ones, then divided by their sum + norm_eps when `normalize`, then times
    `scale`; `experts` are their indices as f32. Where `chosen` is given its experts, in its order, take the place of the largest.

    | scoring       | s                                                                          |
    |---------------|----------------------------------------------------------------------------|
    | softmax       | softmax of z over all experts                                              |
    | sigmoid       | 1 / (1 + exp(-z))                                                          |
    | sqrt_softplus | sqrt(log(1 + exp(z)))                                                      |
    | none          | z                                                                          |
    | sparse_mixer  | top_k = 2: the best by z, weight = softmax at it of z, with experts whose `(m - z_e) / max(abs z_e, m) > 2 jitter` masked, m = max z; the second the same with the first masked |

    | name   | shape  | meaning                               |
    |--------|--------|---------------------------------------|
    | input  | [T, E] | of the gate's product                 |
    | bias   | [E]    | optional: changes the choice only     |
    | chosen | [T, top_k] | optional: indices as f32, 0 .. E - 1, e.g. a table of tokens |
    | weights, experts | [T, top_k] |                         |

    Source: Shazeer et al. 2017, sparsely gated mixture of experts; DeepSeek-AI 2024, arXiv:2412.19437 (groups, bias); Liu et al. 2023, SparseMixer.
    (C1) 1 <= top_k <= experts of the groups that stay, and the results have top_k channels. (C2) groups divide E, 1 <= top_groups <= groups.
    (C3) bias has E elements. (C4) sparse_mixer has neither bias nor groups. (C5) chosen is [T, top_k], without bias, groups and sparse_mixer.
    ```mlir
    %w, %e = llm.router sigmoid %x bias %b {top_k = 4 : i64, groups = 2 : i64, top_groups = 1 : i64, group_sum = 2 : i64, normalize = true, norm_eps = 1.0e-20 : f32, scale = 2.5 : f32, jitter = 0.0 : f32} : tensor<?x16xf32>, !llm.weight<16> -> tensor<?x4xf32>
    %u, %f = llm.router sqrt_softplus %x chosen %c {top_k = 4 : i64, groups = 1 : i64, top_groups = 1 : i64, group_sum = 1 : i64, normalize = true, norm_eps = 1.0e-20 : f32, scale = 1.5 : f32, jitter = 0.0 : f32} : tensor<?x16xf32> chosen tensor<?x4xf32> -> tensor<?x4xf32>
    ```
  }];
  let arguments = (ins Llm_ScoringAttr:$scoring, Llm_Rows:$input, Optional<Llm_WeightType>:$bias, Optional<Llm_Rows>:$chosen, I64Attr:$top_k,
                       I64Attr:$groups, I64Attr:$top_groups, I64Attr:$group_sum, BoolAttr:$normalize,
                       F32Attr:$norm_eps, F32Attr:$scale, F32Attr:$jitter);
  let results = (outs Llm_Rows:$weights, Llm_Rows:$experts);
  let assemblyFormat = [{
    $scoring $input (`bias` $bias^)? (`chosen` $chosen^)? attr-dict
    `:` type($input) (`,` type($bias)^)? (`chosen` type($chosen)^)? `->` type($weights)
  }];
  let hasVerifier = 1;
}

def Llm_ExpertLinearOp : Llm_ComputeOp<"expert_linear"> {
  let summary = "matrix product of each row with the weights of its experts";
  let description = [{
    For slot i < k of row t, e = experts[t, i]: `result[t, i, n] = sum_c x[c] * weight[e, n, c] + bias[e, n]`, x = input[t] or, when
    the input has slots, input[t, i]. Only the experts that are named are read. A
    number outside of 0 .. E - 1 names no expert (of this rank): the slot is 0.

    | name    | shape                | meaning                                      |
    |---------|----------------------|----------------------------------------------|
    | input   | [T, K] or [T, k, K]  | activations, one for all slots or one each   |
    | weight  | [E, N, K]            | a matrix per expert                          |
    | experts | [T, k]               | of `llm.router`                              |
    | bias    | [E, N]               | optional                                     |

    (C1) weight is [E, N, K] with the K of the input and the N of the result. (C2) the result, and an input with slots, have as many
    slots as `experts` has channels. (C3) bias is [E, N].
    ```mlir
    %y = llm.expert_linear %x, %w, %e : tensor<?x576xf32>, !llm.weight<16x192x576>, tensor<?x4xf32> -> tensor<?x4x192xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, Llm_WeightType:$weight, Llm_Rows:$experts, Optional<Llm_WeightType>:$bias);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = [{
    $input `,` $weight `,` $experts (`bias` $bias^)? attr-dict
    `:` type($input) `,` type($weight) `,` type($experts) (`,` type($bias)^)? `->` type($result)
  }];
  let hasVerifier = 1;
}

def Llm_HeadLinearOp : Llm_ComputeOp<"head_linear"> {
  let summary = "matrix product of each head with a weight of its own";
  let description = [{
    `result[t, h, n] = sum_c input[t, h, c] * weight[h, n, c]`.

    | name   | shape     | meaning                                                        |
    |--------|-----------|----------------------------------------------------------------|
    | input  | [T, H, K] | heads                                                          |
    | weight | [H, N, K] | a matrix per head: latent attention absorbs its up-projections so |

    Source: DeepSeek-AI 2024, arXiv:2405.04434, section 2.1. (C1) weight is [H, N, K] with the input's H and K and the result's N.
    ```mlir
    %y = llm.head_linear %q, %w : tensor<?x9x64xf32>, !llm.weight<9x512x64> -> tensor<?x9x512xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, Llm_WeightType:$weight);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input `,` $weight attr-dict `:` type($input) `,` type($weight) `->` type($result)";
  let hasVerifier = 1;
}

def Llm_CombineOp : Llm_ComputeOp<"combine"> {
  let summary = "weighted sum over slots";
  let description = [{
    `result[t, c] = sum_i weights[t, i] * input[t, i, c]`, i ascending.

    | name    | shape     | meaning                                     |
    |---------|-----------|---------------------------------------------|
    | input   | [T, n, C] | what the experts, or several residual streams, hold |
    | weights | [T, n]    |                                             |

    (C1) weights have a channel per slot of the input, the result its channels.
    ```mlir
    %y = llm.combine %x, %w : tensor<?x4x576xf32>, tensor<?x4xf32> -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, Llm_Rows:$weights);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input `,` $weights attr-dict `:` type($input) `,` type($weights) `->` type($result)";
  let hasVerifier = 1;
}

#endif // LLMC_DIALECTS_LLM_EXPERT_OPS_TD
