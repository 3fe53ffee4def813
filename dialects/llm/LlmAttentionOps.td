// Attention: heads, rotary position embedding, the key-value cache and the attention op itself.
#ifndef LLMC_DIALECTS_LLM_ATTENTION_OPS_TD
#define LLMC_DIALECTS_LLM_ATTENTION_OPS_TD
include "dialects/llm/LlmRowOps.td"

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
    position of row t, rounded down to a multiple of `step`. The product is rounded to f32 before the cosine, as published models do.

    | name        | shape | meaning                                    |
    |-------------|-------|--------------------------------------------|
    | frequencies | [n]   | radians per position, scaling included     |
    | magnitude   | scalar| attention factor of long-context scalings  |
    | step        | positions | that share their angles; 1: none       |

    Source: Su et al. 2021, RoFormer; `rope_theta`, `rope_scaling` in config.json.
    (C1) there is at least one frequency. (C2) the result has 2n channels. (C3) step >= 1.
    ```mlir
    %r = llm.rope_table %batch {frequencies = array<f32: 1.0, 0.1>, magnitude = 1.0 : f32} : tensor<?x4xf32>
    ```
  }];
  let arguments = (ins Llm_BatchType:$batch, DenseF32ArrayAttr:$frequencies, F32Attr:$magnitude,
                       DefaultValuedAttr<I64Attr, "1">:$step);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$batch attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Llm_RopeOp : Llm_ComputeOp<"rope", [AllTypesMatch<["input", "result"]>]> {
  let summary = "rotary position embedding";
  let description = [{
    With n frequencies, x = input[t, h] from channel `first` on, and i < n: pairs are (i, n + i) with `halves`, (2i, 2i + 1) with
    `adjacent`; with a, b the elements of pair i, `a' = a cos_i - b sin_i`, `b' = b cos_i + a sin_i`, in place. With `inverse` sines
    change their sign. Other channels pass unchanged.

    | name  | shape     | meaning                              |
    |-------|-----------|--------------------------------------|
    | input | [T, H, D] | queries or keys                      |
    | table | [T, 2n]   | of `llm.rope_table`                  |
    | first | channel   | where the turning channels begin     |

    Source: Su et al. 2021, RoFormer (adjacent); Black et al. 2022 (halves).
    (C1) the input has heads. (C2) first >= 0 and first + 2n is at most D. (C3) the table has as many cosines as sines.
    ```mlir
    %y = llm.rope %q, %r : tensor<?x9x64xf32>, tensor<?x64xf32>
    %z = llm.rope %q, %s {first = 32 : i64, pairing = #llm<pairing adjacent>} : tensor<?x9x64xf32>, tensor<?x32xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$input, Llm_Rows:$table, DefaultValuedAttr<Llm_PairingAttr, "Pairing::Halves">:$pairing,
                       DefaultValuedAttr<I64Attr, "0">:$first, UnitAttr:$inverse);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = "$input `,` $table attr-dict `:` type($input) `,` type($table)";
  let hasVerifier = 1;
}

def Llm_KvAppendOp : Llm_Op<"kv_append", [AllTypesMatch<["kv", "result"]>, DeclareOpInterfaceMethods<Llm_CostOpInterface>]> {
  let summary = "grow the cache of every sequence by the rows of this step";
  let description = [{
    Row t becomes position p(t) of its sequence; of a state with every = r it becomes row (p(t) + 1) / r - 1 where r divides p(t) + 1, and
    is left out elsewhere. The result is the grown state, the only one attention may read.

    | name       | shape                 | meaning                                             |
    |------------|-----------------------|-----------------------------------------------------|
    | kv         | H x D                 | state before the step                               |
    | key, value | [T, H, D], [T, H, D_v] | of the rows of this step; a latent cache has no value |

    (C1) keys have the heads and channels of the state, values its heads and value channels; there is a value unless the
    cache is latent. (C2) the state has not grown in this step: it is no result of another `llm.kv_append`. (C3) no other
    `llm.kv_append` grows the same state.
    ```mlir
    %kv1 = llm.kv_append %kv, %k, %v, %batch : !llm.kv<3x64xf32>, tensor<?x3x64xf32>
    %kv2 = llm.kv_append %latents, %c, %batch : !llm.kv<1x576xf32, latent = 512>, tensor<?x1x576xf32>
    ```
  }];
  let arguments = (ins Llm_KvType:$kv, Llm_Rows:$key, Optional<Llm_Rows>:$value, Llm_BatchType:$batch);
  let results = (outs Llm_KvType:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Llm_AttentionOp : Llm_ComputeOp<"attention", [InferTypeOpAdaptor, AttrSizedOperandSegments]> {
  let summary = "causal attention over the cache";
  let description = [{
    For row t of sequence s at position p and head h, with g = h / (H / H_kv) its key-value head:
    `score_j = softcap(scale * query[t, h] . key[s, j, g]) + alibi[h] * (j - p)` for positions j <= p, j > p - window when window > 0,
    `j / chunk = p / chunk` (whole numbers) when chunk > 0, and only the positions that `selected` names when it is given;
    `result[t, h] = sum_j p_j * value[s, j, g]`, p the softmax of the scores; 0 where no position is left. With sinks, `sinks[h]` is one
    more score that takes its part of the softmax and adds no value. Of a state with every = r, j counts its rows, of which t sees the
    first (p + 1) / r. `logsum[t, h]` is the logarithm of the sum of exp(score) over what takes part, sinks too, -1e30 where nothing does: attention over two states is theirs weighted by the softmax of their logsums. `softcap(x) = cap * tanh(x / cap)` when cap > 0, else x. The value of a latent cache is the
    beginning of its key.

    | name     | shape     | meaning                                                          |
    |----------|-----------|------------------------------------------------------------------|
    | query    | [T, H, D] | rows of this step                                                |
    | kv       | H_kv x D  | grown by `llm.kv_append` in this step, here or in an earlier layer |
    | sinks    | [H]       | optional                                                         |
    | selected | [T, n]    | optional: positions as f32, those below 0 name none              |
    | scale    | scalar    | usually 1 / sqrt(D), > 0                                         |
    | softcap  | scalar    | 0: none                                                          |
    | window   | positions | 0: all                                                           |
    | chunk    | positions | 0: all                                                           |
    | alibi    | [H]       | slopes, optional                                                 |

    Source: Vaswani et al. 2017; Ainslie et al. 2023, GQA; Press et al. 2021, ALiBi; Xiao et al. 2023, attention sinks; DeepSeek-AI 2024,
    arXiv:2405.04434 (latent caches); `sliding_window`, `attention_chunk_size`, `attn_logit_softcapping` in config.json.
    (C1) query has heads, and D is the state's. (C2) H is a multiple of H_kv. (C3) scale > 0, softcap >= 0, window >= 0, chunk >= 0.
    (C4) the state is the result of an `llm.kv_append`, or one that an earlier layer has grown. (C5) sinks and alibi have H elements.
    (C6) selected has no heads. (C7) there is a logsum exactly when `with_logsum`, with a channel per head. (C8) a state with every > 1 is read
    without window, chunk and alibi.
    ```mlir
    %o = llm.attention %q, %kv1, %batch {scale = 0.125 : f32, softcap = 0.0 : f32, window = 0 : i64} : tensor<?x9x64xf32>, !llm.kv<3x64xf32>
    %m, %l = llm.attention %q, %kv4, %batch {scale = 0.125 : f32, softcap = 0.0 : f32, window = 0 : i64, with_logsum} : tensor<?x9x64xf32>, !llm.kv<1x64xf32, latent = 64, every = 4>
    ```
  }];
  let arguments = (ins Llm_Rows:$query, Llm_KvType:$kv, Llm_BatchType:$batch, Optional<Llm_WeightType>:$sinks,
                       Optional<Llm_Rows>:$selected, F32Attr:$scale, F32Attr:$softcap, I64Attr:$window,
                       DefaultValuedAttr<I64Attr, "0">:$chunk, OptionalAttr<DenseF32ArrayAttr>:$alibi,
                       UnitAttr:$with_logsum);
  let results = (outs Llm_Rows:$result, Optional<Llm_Rows>:$logsum);
  let assemblyFormat = [{
    $query `,` $kv `,` $batch (`sinks` $sinks^ `:` type($sinks))? (`selected` $selected^ `:` type($selected))? attr-dict
    `:` type($query) `,` type($kv)
  }];
  let hasVerifier = 1;
}

def Llm_SelectPositionsOp : Llm_ComputeOp<"select_positions"> {
  let summary = "the positions that sparse attention looks at";
  let description = [{
    For row t of sequence s at position p: `score_j = sum_h weights[t, h] * max(0, query[t, h] . key[s, j])` for j <= p; the result names
    the `n` positions of largest score, the lower one where they are equal, in ascending order, then -1 where there are fewer. Of a state with
    every = r they are rows, of which t sees the first (p + 1) / r.

    | name    | shape     | meaning                                       |
    |---------|-----------|-----------------------------------------------|
    | query   | [T, H, D] | of the indexer                                |
    | weights | [T, H]    | scale included                                |
    | kv      | 1 x D     | the indexer's keys, grown in this step        |
    | result  | [T, n]    | positions as f32                              |

    Source: DeepSeek-AI 2025 (lightning indexer); `index_topk` in config.json.
    (C1) query has heads, and D is the state's. (C2) the state has one head. (C3) weights have a channel per head.
    (C4) the state is the result of an `llm.kv_append`.
    ```mlir
    %p = llm.select_positions %iq, %iw, %ikv, %batch : tensor<?x4x32xf32>, tensor<?x4xf32>, !llm.kv<1x32xf32, latent = 32> -> tensor<?x8xf32>
    ```
  }];
  let arguments = (ins Llm_Rows:$query, Llm_Rows:$weights, Llm_KvType:$kv, Llm_BatchType:$batch);
  let results = (outs Llm_Rows:$result);
  let assemblyFormat = [{
    $query `,` $weights `,` $kv `,` $batch attr-dict `:` type($query) `,` type($weights) `,` type($kv) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // LLMC_DIALECTS_LLM_ATTENTION_OPS_TD
