// Ops with a state of fixed size per sequence: short convolutions and linear attention.
#ifndef LLMC_DIALECTS_LLM_RECURRENT_OPS_TD
#define LLMC_DIALECTS_LLM_RECURRENT_OPS_TD
include "dialects/llm/LlmExpertOps.td"

def Llm_ShortConvOp : Llm_Op<"short_conv", [AllTypesMatch<["input", "result"]>, DeclareOpInterfaceMethods<Llm_CostOpInterface>]> {
  let summary = "causal depthwise convolution along the positions of a sequence";
  let description = [{
    `result[t, c] = sum_(i < K) weight[c, i] * x[p - K + 1 + i, c] + bias[c]` with x the inputs of row t's sequence, p its position,
    x = 0 before the start. The state keeps the last K - 1 inputs of every channel, oldest first, and is updated.

    | name   | shape         | meaning                            |
    |--------|---------------|------------------------------------|
    | input  | [T, C]        | rows of this step                  |
    | weight | [C, K]        | newest input last                  |
    | bias   | [C]           | optional                           |
    | state  | 1 x C x (K-1) | of each sequence                   |

    Source: Gu & Dao 2023, Mamba; `conv_kernel`, `short_conv_kernel_size`, `conv_L_cache` in config.json.
    (C1) weight is [C, K] with the C of the input, K >= 2. (C2) the state is 1 x C x (K - 1). (C3) bias has C elements.
    (C4) no other op of the function updates the state.
    ```mlir
    %y = llm.short_conv %x, %w, %s, %batch : tensor<?x576xf32>, !llm.weight<576x4>, !llm.recurrent<1x576x3>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, Llm_WeightType:$weight, Optional<Llm_WeightType>:$bias, Llm_RecurrentType:$state,
                       Llm_BatchType:$batch);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = [{
    $input `,` $weight (`bias` $bias^)? `,` $state `,` $batch attr-dict
    `:` type($input) `,` type($weight) (`bias` type($bias)^)? `,` type($state)
  }];
  let hasVerifier = 1;
}

def Llm_WindowPoolOp : Llm_Op<"window_pool", [AllTypesMatch<["value", "gate"]>, DeclareOpInterfaceMethods<Llm_CostOpInterface>]> {
  let summary = "softmax-weighted sums over windows of positions, each channel by itself";
  let description = [{
    With r = window, row t at position p lies in window w = p / r (whole numbers). With n = 1 parts
    `result[t, c] = sum_j g_j value[j, c]` over the positions j <= p of window w, the g_j the softmax over them of `gate[j, c]`. With
    n = 2 parts the first C channels of window w - 1, where there is one, take part in sum and softmax beside the last C channels of
    window w. The result of a window's last row is what a compressed cache (`every = r`) keeps.

    | name        | shape                | meaning                                                       |
    |-------------|----------------------|---------------------------------------------------------------|
    | value, gate | [T, n C]             | rows of this step                                             |
    | state       | 1 x 3 x C, 1 x 9 x C | of 1 or 3 running sums per channel, for n = 1 or 2: maximum of the gates times log2(e), sum of weights, weighted sum |
    | window      | positions            | of a window, >= 1                                             |
    | result      | [T, C]               |                                                               |

    Source: DeepSeek-AI 2026 (compressors of keys and values); `compress_ratios` in config.json.
    (C1) value and gate have as many channels as the result, or twice as many. (C2) the state fits. (C3) window >= 1.
    (C4) no other op of the function updates the state.
    ```mlir
    %y = llm.window_pool %v, %g, %s, %batch {window = 4 : i64} : tensor<?x64xf32>, !llm.recurrent<1x9x32> -> tensor<?x32xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$value, Llm_Rows:$gate, Llm_RecurrentType:$state, Llm_BatchType:$batch, I64Attr:$window);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = [{
    $value `,` $gate `,` $state `,` $batch attr-dict `:` type($value) `,` type($state) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Llm_LinearAttentionOp : Llm_Op<"linear_attention", [DeclareOpInterfaceMethods<Llm_CostOpInterface>, AttrSizedOperandSegments,
                                                       AllTypesMatch<["query", "key"]>, AllTypesMatch<["value", "result"]>]> {
  let summary = "attention whose state is one matrix per head: gated linear attention and the gated delta rule";
  let description = [{
    For the rows of a sequence in order, per head h with S = state[h] (K x V), q, k of key head h / (H / H_k), a = decay[t, h] (one
    number, or one per key channel):
    `S = diag(a) S`, `u = beta[t, h] * (v - S^T k)` with beta, else `u = v`, `S = S + k u^T`, `result[t, h] = S^T q`.
    The state is updated; it is zero before a sequence's first row.

    | name  | shape              | meaning                                                     |
    |-------|--------------------|-------------------------------------------------------------|
    | query, key | [T, H_k, K]   | scaled and normalized by other ops; H a multiple of H_k     |
    | value | [T, H, V]          |                                                             |
    | decay | [T, H] or [T, H, K] | factor of what is remembered, 0 .. 1; optional: 1          |
    | beta  | [T, H]             | optional: strength of the delta rule                        |
    | state | H x K x V          | of each sequence                                            |

    With beta and decay per head it is the gated delta rule, per channel Kimi delta attention; without beta, gated linear attention,
    lightning attention, and the scans of Mamba-2 (k = B, q = C, v = dt x, decay = exp(dt A)) and Mamba-1 (V = 1, H = channels).
    Source: Yang et al. 2024, Gated Delta Networks; Kimi Team 2025, Kimi Linear; Dao & Gu 2024, Mamba-2.
    (C1) H is a multiple of H_k. (C2) the state is H x K x V. (C3) decay is [T, H] or [T, H, K]. (C4) beta is [T, H].
    (C5) no other op of the function updates the state.
    ```mlir
    %o = llm.linear_attention %q, %k, %v decay %g beta %b, %s, %batch : tensor<?x2x16xf32>, tensor<?x4x32xf32> decay tensor<?x4x16xf32> beta tensor<?x4xf32>, !llm.recurrent<4x16x32>
    ```
  }];
  let arguments = (ins Llm_Rows:$query, Llm_Rows:$key, Llm_Rows:$value, Optional<Llm_Rows>:$decay, Optional<Llm_Rows>:$beta,
                       Llm_RecurrentType:$state, Llm_BatchType:$batch);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`decay` $decay^)? (`beta` $beta^)? `,` $state `,` $batch attr-dict
    `:` type($query) `,` type($value) (`decay` type($decay)^)? (`beta` type($beta)^)? `,` type($state)
  }];
  let hasVerifier = 1;
}

#endif // LLMC_DIALECTS_LLM_RECURRENT_OPS_TD
