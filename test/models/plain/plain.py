"""plain.py WORK FAMILY...: small models with random weights, computed here by the formulas of their papers over plain
lists, against `llmc logits --executor reference`. For families that no library at hand computes."""
import array
import json
import math
import pathlib
import struct
import subprocess
import sys

IDS = [3, 17, 41, 5, 28, 33, 9, 14]


def read_tensors(path):
    data = path.read_bytes()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:end])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        assert entry["dtype"] == "F32", (name, entry["dtype"])
        tensors[name] = shaped(list(array.array("f", data[end + first : end + last])), entry["shape"])
    return tensors


def shaped(flat, shape):
    for size in reversed(shape[1:]):
        flat = [flat[i : i + size] for i in range(0, len(flat), size)]
    return flat


def linear(weight, x, bias=None):
    y = [sum(w * v for w, v in zip(row, x)) for row in weight]
    return [a + b for a, b in zip(y, bias)] if bias else y


def add(a, b):
    return [x + y for x, y in zip(a, b)]


def times(a, b):
    return [x * y for x, y in zip(a, b)]


def scaled(a, factor):
    return [x * factor for x in a]


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def silu(x):
    return [v * sigmoid(v) for v in x]


def softplus(x):
    return math.log1p(math.exp(-abs(x))) + max(x, 0)


def softmax(x):
    e = [math.exp(v - max(x)) for v in x]
    return [v / sum(e) for v in e]


def rms(x, gain, eps):
    factor = 1 / math.sqrt(sum(v * v for v in x) / len(x) + eps)
    return [v * factor * g for v, g in zip(x, gain)]


def parts(x, count):
    size = len(x) // count
    return [x[i * size : (i + 1) * size] for i in range(count)]


def joined(lists):
    return [v for part in lists for v in part]


def turned(x, position, width, base):
    """Pairs (i, i + width / 2) of the first channels."""
    half, out = width // 2, list(x)
    for i in range(half):
        angle = position * base ** (-2 * i / width)
        a, b = x[i], x[i + half]
        out[i], out[i + half] = a * math.cos(angle) - b * math.sin(angle), b * math.cos(angle) + a * math.sin(angle)
    return out


def attention(queries, keys, values, scale, window=0):
    """Of every row [head][dim] over the rows up to it; heads share keys evenly."""
    out = []
    for t, row in enumerate(queries):
        group = len(row) // len(keys[0])
        heads = []
        for h, q in enumerate(row):
            seen = range(max(0, t - window + 1) if window else 0, t + 1)
            p = softmax([scale * sum(a * b for a, b in zip(q, keys[s][h // group])) for s in seen])
            heads.append([sum(w * values[s][h // group][d] for w, s in zip(p, seen)) for d in range(len(values[0][0]))])
        out.append(joined(heads))
    return out


def convolved(rows, weight, bias=None):
    """Causal, each channel by itself; weight [C][1][K] or [C][K], the last tap at the row itself."""
    taps = [w[0] if isinstance(w[0], list) else w for w in weight]
    out = []
    for t in range(len(rows)):
        row = []
        for c, w in enumerate(taps):
            row.append(sum(w[j] * rows[t - len(w) + 1 + j][c] for j in range(len(w)) if t - len(w) + 1 + j >= 0) + (bias[c] if bias else 0))
        out.append(row)
    return out


def recurrence(rows):
    """rows of [head] (q, k, v, decay of each key, beta or None): the state is a matrix per head."""
    states, out = None, []
    for row in rows:
        if states is None:
            states = [[[0.0] * len(v) for _ in k] for _, k, v, _, _ in row]
        heads = []
        for state, (q, k, v, decay, beta) in zip(states, row):
            for i, d in enumerate(decay):
                state[i] = scaled(state[i], d)
            if beta is not None:  # the delta rule: what the state says of k is replaced in part
                said = [sum(k[i] * state[i][j] for i in range(len(k))) for j in range(len(v))]
                v = [beta * (a - b) for a, b in zip(v, said)]
            for i in range(len(k)):
                state[i] = [s + k[i] * a for s, a in zip(state[i], v)]
            heads.append([sum(q[i] * state[i][j] for i in range(len(q))) for j in range(len(v))])
        out.append(heads)
    return out


def gated_mlp(w, prefix, x):
    return linear(w[prefix + "down_proj.weight"], times(silu(linear(w[prefix + "gate_proj.weight"], x)), linear(w[prefix + "up_proj.weight"], x)))


def unit(x):
    return scaled(x, 1 / math.sqrt(sum(v * v for v in x) + 1e-6))


def experts_of(probabilities, count):
    return sorted(range(len(probabilities)), key=lambda e: -probabilities[e])[:count]


#===-- families: config, and the logits of a sequence ----------------------------------------------------------------


GLA = {"model_type": "gla", "hidden_size": 32, "num_heads": 2, "num_hidden_layers": 2, "vocab_size": 50, "expand_k": 0.5,
       "expand_v": 1, "intermediate_size": 48, "norm_eps": 1e-6, "tie_word_embeddings": False, "hidden_act": "swish"}


def gla(c, w):
    h = [w["model.embeddings.weight"][i] for i in IDS]
    for n in range(c["num_hidden_layers"]):
        p = f"model.layers.{n}."
        rows, gates = [], []
        for x in (rms(r, w[p + "attn_norm.weight"], 1e-6) for r in h):
            q, k, v = (parts(linear(w[p + f"attn.{s}_proj.weight"], x), 2) for s in "qkv")
            low = linear(w[p + "attn.gk_proj.1.weight"], linear(w[p + "attn.gk_proj.0.weight"], x), w[p + "attn.gk_proj.1.bias"])
            decay = parts([math.exp(-softplus(-g) / 16) for g in low], 2)
            rows.append([(scaled(q[i], len(q[i]) ** -0.5), k[i], v[i], decay[i], None) for i in range(2)])
            gates.append(silu(linear(w[p + "attn.g_proj.weight"], x)))
        for t, heads in enumerate(recurrence(rows)):
            o = joined(rms(head, w[p + "attn.g_norm_swish_gate.weight"], 1e-6) for head in heads)
            h[t] = add(h[t], linear(w[p + "attn.o_proj.weight"], times(o, gates[t])))
        h = [add(r, gated_mlp(w, p + "mlp.", rms(r, w[p + "mlp_norm.weight"], 1e-6))) for r in h]
    return [linear(w["lm_head.weight"], rms(r, w["model.norm.weight"], 1e-6)) for r in h]


DELTANET = {"model_type": "gated_deltanet", "hidden_size": 32, "num_heads": 2, "head_dim": 8, "expand_v": 2, "num_hidden_layers": 2,
            "vocab_size": 50, "conv_size": 4, "norm_eps": 1e-6, "use_gate": True, "use_short_conv": True, "tie_word_embeddings": False}


def deltanet(c, w):
    h = [w["model.embeddings.weight"][i] for i in IDS]
    for n in range(c["num_hidden_layers"]):
        p = f"model.layers.{n}."
        xs = [rms(r, w[p + "attn_norm.weight"], 1e-6) for r in h]
        q, k, v = ([silu(r) for r in convolved([linear(w[p + f"attn.{s}_proj.weight"], x) for x in xs], w[p + f"attn.{s}_conv1d.weight"])] for s in "qkv")
        rows = []
        for t, x in enumerate(xs):
            beta = [sigmoid(b) for b in linear(w[p + "attn.b_proj.weight"], x)]
            a = add(linear(w[p + "attn.a_proj.weight"], x), w[p + "attn.dt_bias"])
            decay = [math.exp(-math.exp(rate) * softplus(s)) for rate, s in zip(w[p + "attn.A_log"], a)]
            qs, ks, vs = parts(q[t], 2), parts(k[t], 2), parts(v[t], 2)
            rows.append([(scaled(unit(qs[i]), 8**-0.5), unit(ks[i]), vs[i], [decay[i]] * 8, beta[i]) for i in range(2)])
        for t, heads in enumerate(recurrence(rows)):
            o = joined(rms(head, w[p + "attn.o_norm.weight"], 1e-6) for head in heads)
            gate = silu(linear(w[p + "attn.g_proj.weight"], xs[t]))
            h[t] = add(h[t], linear(w[p + "attn.o_proj.weight"], times(o, gate)))
        h = [add(r, gated_mlp(w, p + "mlp.", rms(r, w[p + "mlp_norm.weight"], 1e-6))) for r in h]
    return [linear(w["lm_head.weight"], rms(r, w["model.norm.weight"], 1e-6)) for r in h]


MINIMAX = {"architectures": ["MiniMaxM1ForCausalLM"], "attn_type_list": [0, 1, 0], "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
           "num_key_value_heads": 2, "head_dim": 8, "rotary_dim": 4, "intermediate_size": 24, "num_local_experts": 4, "num_experts_per_tok": 2,
           "vocab_size": 50, "rms_norm_eps": 1e-5, "rope_theta": 10000, "postnorm": True, "max_position_embeddings": 64, "hidden_act": "silu",
           "layernorm_full_attention_alpha": 3.5, "layernorm_full_attention_beta": 0.5, "layernorm_linear_attention_alpha": 2.5,
           "layernorm_linear_attention_beta": 1.5, "layernorm_mlp_alpha": 1.25, "layernorm_mlp_beta": 0.75, "tie_word_embeddings": False}


def minimax(c, w):
    h = [w["model.embed_tokens.weight"][i] for i in IDS]
    layers = c["num_hidden_layers"]
    for n in range(layers):
        p = f"model.layers.{n}."
        xs = [rms(r, w[p + "input_layernorm.weight"], 1e-5) for r in h]
        if c["attn_type_list"][n]:
            q, k, v = ([parts(linear(w[p + f"self_attn.{s}_proj.weight"], x), heads) for x in xs] for s, heads in (("q", 4), ("k", 2), ("v", 2)))
            q, k = ([[turned(head, t, 4, 10000) for head in row] for t, row in enumerate(rows)] for rows in (q, k))
            mixed = [linear(w[p + "self_attn.o_proj.weight"], o) for o in attention(q, k, v, 8**-0.5)]
            alpha, beta = 3.5, 0.5
        else:
            slopes = [2 ** (-8 * (i + 1) / 4) * (1 - n / (layers - 1) + 1e-5) for i in range(4)]
            rows = []
            for x in xs:
                heads = [parts(head, 3) for head in parts(silu(linear(w[p + "self_attn.qkv_proj.weight"], x)), 4)]
                rows.append([(*heads[i], [math.exp(-slopes[i])] * 8, None) for i in range(4)])
            mixed = []
            for x, heads in zip(xs, recurrence(rows)):
                gate = [sigmoid(g) for g in linear(w[p + "self_attn.output_gate.weight"], x)]
                mixed.append(linear(w[p + "self_attn.out_proj.weight"], times(gate, rms(joined(heads), w[p + "self_attn.norm.weight"], 1e-6))))
            alpha, beta = 2.5, 1.5
        h = [add(scaled(x, alpha), scaled(m, beta)) for x, m in zip(xs, mixed)]
        for t, row in enumerate(h):
            x = rms(row, w[p + "post_attention_layernorm.weight"], 1e-5)
            chances = softmax(linear(w[p + "block_sparse_moe.gate.weight"], x))
            chosen = experts_of(chances, 2)
            y = [0.0] * 32
            for e in chosen:
                q = p + f"block_sparse_moe.experts.{e}."
                inner = times(silu(linear(w[q + "w1.weight"], x)), linear(w[q + "w3.weight"], x))
                y = add(y, scaled(linear(w[q + "w2.weight"], inner), chances[e] / sum(chances[i] for i in chosen)))
            h[t] = add(scaled(x, 1.25), scaled(y, 0.75))
    return [linear(w["lm_head.weight"], rms(r, w["model.norm.weight"], 1e-5)) for r in h]


YUAN = {"architectures": ["YuanForCausalLM"], "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 50,
        "rms_norm_eps": 1e-6, "max_position_embeddings": 64, "hidden_act": "silu", "tie_word_embeddings": True}


def yuan(c, w):
    h = [w["model.embed_tokens.weight"][i] for i in IDS]

    def filtered(weight, bias, rows):
        before = [[0.0] * len(rows[0])] + rows[:-1]
        taps = [[[cell[t][0] if isinstance(cell[t], list) else cell[t] for cell in row] for row in weight] for t in range(2)]
        return [add(linear(taps[0], a), linear(taps[1], b, bias)) for a, b in zip(before, rows)]

    for n in range(c["num_hidden_layers"]):
        p = f"model.layers.{n}."
        f = p + "self_attn.lf_gate."
        xs = [rms(r, w[p + "input_layernorm.weight"], 1e-6) for r in h]
        ys = filtered(w[f + "conv2.weight"], w[f + "conv2.bias"], filtered(w[f + "conv1.weight"], w[f + "conv1.bias"], xs))
        q, k, v = [], [], []
        for t, (x, y) in enumerate(zip(xs, ys)):
            z = rms(add(x, y), w[f + "output_layernorm.weight"], 1e-6)
            heads = [parts(head, 2) for head in parts(linear(w[p + "self_attn.q_proj.weight"], z) + linear(w[p + "self_attn.k_proj.weight"], z), 4)]
            q.append([turned(head[0], t, 8, 10000) for head in heads])
            k.append([turned(head[1], t, 8, 10000) for head in heads])
            v.append(parts(linear(w[p + "self_attn.v_proj.weight"], x), 4))
        h = [add(r, linear(w[p + "self_attn.o_proj.weight"], o)) for r, o in zip(h, attention(q, k, v, 8**-0.5))]
        for t, row in enumerate(h):
            x = rms(row, w[p + "post_attention_layernorm.weight"], 1e-6)
            inner = times(silu(linear(w[p + "mlp.up_proj.weight"], x)), linear(w[p + "mlp.gate_proj.weight"], x))
            h[t] = add(row, linear(w[p + "mlp.down_proj.weight"], inner))
    return [linear(w["model.embed_tokens.weight"], rms(r, w["model.norm.weight"], 1e-6)) for r in h]


OPENMOE = {"architectures": ["OpenMoeForCausalLM"], "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 16, "intermediate_size": 24,
           "vocab_size": 50, "layer_norm_epsilon": 1e-6, "hidden_act": "swiglu", "num_experts": 4, "topk": 2, "gated": True, "moe_layer_interval": 2}


def openmoe(c, w):
    h = [w["model.embed_tokens.weight"][i] for i in IDS]

    def swiglu(x):
        first, second = parts(x, 2)
        return times(first, silu(second))

    def mlp(prefix, x):
        return linear(w[prefix + "down_proj.weight"], times(swiglu(linear(w[prefix + "gate_proj.weight"], x)), linear(w[prefix + "up_proj.weight"], x)))

    def transposed(matrix):
        return [list(column) for column in zip(*matrix)]

    for n in range(2):
        p = f"model.layers.{n}."
        xs = [rms(r, w[p + "input_layernorm.weight"], 1e-6) for r in h]
        q, k, v = ([parts(linear(w[p + f"self_attn.{s}_proj.weight"], x), 4) for x in xs] for s in "qkv")
        q, k = ([[turned(head, t, 16, 10000) for head in row] for t, row in enumerate(rows)] for rows in (q, k))
        h = [add(r, linear(w[p + "self_attn.o_proj.weight"], o)) for r, o in zip(h, attention(q, k, v, 1.0))]
        for t, row in enumerate(h):
            x = rms(row, w[p + "post_attention_layernorm.weight"], 1e-6)
            if n == 0:
                h[t] = add(row, mlp(p + "mlp.", x))
                continue
            chances = softmax(linear(w[p + "mlp.gate_weight"], x))
            for e in experts_of(chances, 2):
                inner = times(swiglu(linear(transposed(w[p + "mlp.experts.wi_gate"][e]), x)), linear(transposed(w[p + "mlp.experts.wi_up"][e]), x))
                h[t] = add(h[t], scaled(linear(transposed(w[p + "mlp.experts.wo"][e]), inner), chances[e]))
            h[t] = add(h[t], mlp(p + "extra_mlp.", rms(h[t], w[p + "pre_extra_mlp_layernorm.weight"], 1e-6)))
    return [linear(w["lm_head.weight"], rms(r, w["model.norm.weight"], 1e-6)) for r in h]


FAMILIES = {"gla": (GLA, gla), "gated-deltanet": (DELTANET, deltanet), "minimax-m1": (MINIMAX, minimax), "yuan": (YUAN, yuan), "openmoe": (OPENMOE, openmoe)}


def check(work, family):
    config, compute = FAMILIES[family]
    folder = work / family
    (folder / "config").mkdir(parents=True, exist_ok=True)
    (folder / "config" / "config.json").write_text(json.dumps(config))
    (folder / "ids.json").write_text(json.dumps({"sequences": [IDS]}))

    def llmc(*words):
        done = subprocess.run(["llmc", *map(str, words)], capture_output=True, text=True)
        assert done.returncode == 0, (family, done.stderr)

    llmc("synth", folder / "config", "-o", folder / "model", "--weights", "f32")
    expected = compute(config, read_tensors(folder / "model" / "model.safetensors"))
    for executor, extra in (("reference", []), ("compiled", ["--weights", "f32", "--context", "64", "--chunk", "3"])):
        out = folder / f"{executor}.safetensors"
        llmc("logits", folder / "model", "--ids", folder / "ids.json", "--executor", executor, *extra, "-o", out)
        found = read_tensors(out)["logits.0"]
        # Sums of up to 64 terms of size 1 in float32 against float64, through a few layers.
        worst = max(abs(a - b) for rows in zip(found, expected) for a, b in zip(*rows))
        assert worst < 2e-4, f"{family}: {executor} differs from the plain computation by {worst}"
        print(f"{family} {executor} {worst:.1e}")


for name in sys.argv[2:]:
    check(pathlib.Path(sys.argv[1]), name)
