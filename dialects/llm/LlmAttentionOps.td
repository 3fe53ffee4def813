// Attention: heads, rotary position embedding, the key-value cache and the attention op itself.
#ifndef LLMC_DIALECTS_LLM_ATTENTION_OPS_TD
#define LLMC_DIALECTS_LLM_ATTENTION_OPS_TD
include "dialects/llm/LlmOps.td"

def Llm_SplitHeadsOp : Llm_ComputeOp<"split_heads"> {
  let summary = "channels as heads";
  let description = [{
    `result[t, h, d] = input[t, h * D + d]`. (C1) the input has H * D channels.
    ```mlir
    %q = llm.split_heads %x : tensor<?x576xf32> -> tensor<?x9x64xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$input);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Llm_MergeHeadsOp : Llm_ComputeOp<"merge_heads"> {
  let summary = "heads as channels";
  let description = [{
    `result[t, h * D + d] = input[t, h, d]`. (C1) the result has H * D channels.
    ```mlir
    %y = llm.merge_heads %o : tensor<?x9x64xf32> -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$input);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Llm_RopeTableOp : Llm_ComputeOp<"rope_table"> {
  let summary = "angles of the rotary position embedding for every row";
  let description = [{
    `result[t, i] = cos(p(t) * f_i) * magnitude` and `result[t, n + i] = sin(p(t) * f_i) * magnitude` for i < n, p(t) the
    position of row t. The product is rounded to f32 before the cosine, as published models do.

    | name        | shape | meaning                                    |
    |-------------|-------|--------------------------------------------|
    | frequencies | [n]   | radians per position, scaling included     |
    | magnitude   | scalar| attention factor of long-context scalings  |

    Source: Su et al. 2021, RoFormer; `rope_theta`, `rope_scaling` in config.json.
    (C1) there is at least one frequency. (C2) the result has 2n channels.
    ```mlir
    %r = llm.rope_table %batch {frequencies = array<f32: 1.0, 0.1>, magnitude = 1.0 : f32} : tensor<?x4xf32>
    ```
  }];
  let arguments = (ins Llm_BatchType:$batch, DenseF32ArrayAttr:$frequencies, F32Attr:$magnitude);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$batch attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Llm_RopeOp : Llm_ComputeOp<"rope", [AllTypesMatch<["input", "result"]>]> {
  let summary = "rotary position embedding, halves paired";
  let description = [{
    With n frequencies, for i < n: `result[t, h, i] = x_i cos_i - x_(n+i) sin_i`, `result[t, h, n+i] = x_(n+i) cos_i + x_i sin_i`,
    x = input[t, h]; channels from 2n on pass unchanged.

    | name  | shape     | meaning                        |
    |-------|-----------|--------------------------------|
    | input | [T, H, D] | queries or keys                |
    | table | [T, 2n]   | of `llm.rope_table`            |

    (C1) the input has heads. (C2) 2n is at most D. (C3) the table has as many cosines as sines.
    ```mlir
    %y = llm.rope %q, %r : tensor<?x9x64xf32>, tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, Llm_Rows:$table);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input `,` $table attr-dict `:` type($input) `,` type($table)";
  let hasVerifier = 1;
}

def Llm_KvAppendOp : Llm_Op<"kv_append", [AllTypesMatch<["kv", "result"]>, AllTypesMatch<["key", "value"]>,
                                           DeclareOpInterfaceMethods<Llm_CostOpInterface>]> {
  let summary = "grow the cache of every sequence by the rows of this step";
  let description = [{
    Row t becomes position p(t) of its sequence. The result is the grown state, the only one attention may read.

    | name       | shape        | meaning                          |
    |------------|--------------|----------------------------------|
    | kv         | H x D        | state before the step            |
    | key, value | [T, H, D]    | of the rows of this step         |

    (C1) keys and values have the heads and channels of the state. (C2) the state has not grown in this step: it is no
    result of another `llm.kv_append`. (C3) no other `llm.kv_append` grows the same state.
    ```mlir
    %kv1 = llm.kv_append %kv, %k, %v, %batch : !llm.kv<3x64xf32>, tensor<?x3x64xf32>
    ```
  }];
  let arguments = (ins Llm_KvType:$kv, Llm_Rows:$key, Llm_Rows:$value, Llm_BatchType:$batch);
  let results = (outs Llm_KvType:$result);
  let assemblyFormat = "$kv `,` $key `,` $value `,` $batch attr-dict `:` type($kv) `,` type($key)";
  let hasVerifier = 1;
}

def Llm_AttentionOp : Llm_ComputeOp<"attention", [AllTypesMatch<["query", "result"]>]> {
  let summary = "causal attention over the cache";
  let description = [{
    For row t of sequence s at position p and head h, with g = h / (H / H_kv) its key-value head:
    `score_j = softcap(scale * query[t, h] . key[s, j, g])` for positions j <= p, and j > p - window when window > 0;
    `result[t, h] = sum_j softmax_j(score) * value[s, j, g]`. `softcap(x) = cap * tanh(x / cap)` when cap > 0, else x.

    | name    | shape     | meaning                                          |
    |---------|-----------|--------------------------------------------------|
    | query   | [T, H, D] | rows of this step                                |
    | kv      | H_kv x D  | grown by `llm.kv_append` in this step            |
    | scale   | scalar    | usually 1 / sqrt(D), > 0                         |
    | softcap | scalar    | 0: none                                          |
    | window  | positions | 0: all                                           |

    Source: Vaswani et al. 2017; Ainslie et al. 2023, GQA; `sliding_window`, `attn_logit_softcapping` in config.json.
    (C1) query has heads, and D is the state's. (C2) H is a multiple of H_kv. (C3) scale > 0, softcap >= 0, window >= 0.
    (C4) the state is the result of an `llm.kv_append`.
    ```mlir
    %o = llm.attention %q, %kv1, %batch {scale = 0.125 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x9x64xf32>, !llm.kv<3x64xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$query, Llm_KvType:$kv, Llm_BatchType:$batch, F32Attr:$scale, F32Attr:$softcap,
                       I64Attr:$window);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$query `,` $kv `,` $batch attr-dict `:` type($query) `,` type($kv)";
  let hasVerifier = 1;
}

#endif // LLMC_DIALECTS_LLM_ATTENTION_OPS_TD
