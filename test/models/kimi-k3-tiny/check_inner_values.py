"""check_inner_values.py FOLDER WORK EXECUTOR: every inner value that golden.safetensors holds, beside what EXECUTOR computes.

The names on the right are those of the wiring in models/kimi-k3.json: layer, block and variable.
"""
import json
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from golden import RELATIVE_BOUND, read_tensors, run  # noqa: E402

folder, work, executor = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
LAYERS, HEADS, DIM, EXPERTS_PER_TOKEN = 9, 4, 32, 4
WIDTH = HEADS * DIM
LINEAR = (0, 1, 2, 4, 5, 6)


def rows(tensor):
    shape, values = tensor
    width = shape[-1] if len(shape) == 2 else math.prod(shape[1:])
    return [values[i:i + width] for i in range(0, len(values), width)]


def flat(rows):
    return [x for row in rows for x in row]


def columns(begin, end):
    return lambda tensor: flat(row[begin:end] for row in rows(tensor))


def whole(tensor):
    return list(tensor[1])


def sigmoid(tensor):
    return [1 / (1 + math.exp(-x)) for x in tensor[1]]


# Ours keeps the inputs of a channel together, theirs those of a step.
def by_step(tensor):
    values = tensor[1]
    return [values[channel * 3 + step] for step in range(3) for channel in range(3 * WIDTH)]


def expected_values():
    """{golden name without its sequence: (our name without its sequence, what turns ours into theirs)}."""
    values = {"final_mix": ("record:finish.h", whole), "final_alpha": ("record:mix.alpha", whole)}
    for n in range(LAYERS):
        values[f"layer.{n}.attn_mix"] = (f"record:{n}.layer.u", whole)
        values[f"layer.{n}.prefix_after_attn"] = (f"record:{n}.layer.h", whole)
        values[f"layer.{n}.mlp_mix"] = (f"record:{n}.layer.v", whole)
        values[f"layer.{n}.prefix"] = (f"hidden:{n + 1}", whole)
        values[f"cache.{n}.latent"] = (f"state:layers.{n}.kv.keys", whole)
    for n in LINEAR:
        values[f"cache.{n}.state"] = (f"state:layers.{n}.recurrent", whole)
        values[f"cache.{n}.conv"] = (f"state:layers.{n}.conv", by_step)
    values["layer.4.attn_alpha"] = ("record:4.mix.alpha", whole)
    values["layer.4.mlp_alpha"] = ("record:4.mix.alpha@2", whole)
    for i, part in enumerate("qkv"):
        values[f"layer.0.kda.{part}_conv"] = ("record:0.delta_attention.qkv@2", columns(i * WIDTH, (i + 1) * WIDTH))
    values["layer.0.kda.g"] = ("record:0.delta_decay.g", whole)
    values["layer.0.kda.beta"] = ("record:0.delta_attention.beta", whole)
    values["layer.0.kda.scan_out"] = ("record:0.delta_attention.o", whole)
    values["layer.0.kda.gated_norm_out"] = ("record:0.delta_attention.o@2", whole)
    values["layer.0.kda.state"] = values["cache.0.state"]
    values["layer.0.kda.conv"] = values["cache.0.conv"]
    values["layer.3.mla.q"] = ("record:3.attention.q", whole)
    values["layer.3.mla.latent"] = values["cache.3.latent"]
    values["layer.3.mla.attention_out"] = ("record:3.attention.o@2", whole)
    values["layer.3.mla.gated"] = ("record:3.attention.o@3", whole)
    values["layer.1.moe.scores"] = ("record:1.route.scores", sigmoid)
    values["layer.1.moe.weights"] = ("record:1.moe.weights", whole)
    values["layer.1.moe.latent_in"] = ("record:1.moe.z", whole)
    values["layer.1.moe.sum_before_norm"] = ("record:1.moe.r", whole)
    values["layer.1.moe.after_norm"] = ("record:1.moe.r@2", whole)
    values["layer.1.moe.shared_out"] = ("record:1.shared_mlp", whole)
    return values


def compare(name, expected, actual):
    bound = RELATIVE_BOUND * max(map(abs, expected))
    assert len(actual) == len(expected), f"{name}: {len(actual)} values, expected {len(expected)}"
    for at, (x, y) in enumerate(zip(actual, expected)):
        if not abs(x - y) <= bound:
            return [f"{name}: value {at} is {x}, expected {y} +- {bound:.3g}"]
    return []


def check_router(golden, actual, number, sequence, biases):
    """The experts of every layer, and by how much the last of them is ahead of the best that was left."""
    differences = []
    chosen, margins = rows(golden[f"{sequence}.router_chosen"]), rows(golden[f"{sequence}.router_margin"])
    for layer in range(1, LAYERS):
        ours = rows(actual[f"record.{number}.{layer}.moe.chosen"])
        scores = rows(actual[f"record.{number}.{layer}.route.scores"])
        for position, row in enumerate(scores):
            at = slice((layer - 1) * EXPERTS_PER_TOKEN, layer * EXPERTS_PER_TOKEN)
            where = f"{sequence}.router_chosen at position {position}, layer {layer}"
            if [int(x) for x in ours[position]] != list(chosen[position][at]):
                differences.append(f"{where}: {list(ours[position])}, expected {list(chosen[position][at])}")
            counted = sorted((s + b for s, b in zip(sigmoid((None, row)), biases[layer])), reverse=True)
            margin = counted[EXPERTS_PER_TOKEN - 1] - counted[EXPERTS_PER_TOKEN]
            if not abs(margin - margins[position][layer - 1]) <= RELATIVE_BOUND:
                differences.append(f"{where}: margin {margin}, expected {margins[position][layer - 1]}")
    return differences


def main():
    work.mkdir(parents=True, exist_ok=True)
    golden = read_tensors(folder / "golden.safetensors")
    weights = read_tensors(folder / "model.safetensors", only="e_score_correction_bias")
    biases = {layer: weights[f"language_model.model.layers.{layer}.block_sparse_moe.gate.e_score_correction_bias"][1]
              for layer in range(1, LAYERS)}
    (work / "ids.json").write_text(json.dumps({"sequences": [list(golden[f"{s}.input_ids"][1]) for s in "ab"]}))
    values = expected_values()
    records = {name.removeprefix("record:") for name, _ in values.values() if name.startswith("record:")}
    records |= {f"{layer}.{name}" for layer in range(1, LAYERS) for name in ("moe.chosen", "route.scores")}
    options = [option for name in sorted(records) for option in ("--record", name)]
    run("llmc", "logits", folder, "--weights", "f32", "--ids", work / "ids.json", "-o", work / "out.safetensors",
        "--executor", executor, "--hidden", "--state", *options)
    actual = read_tensors(work / "out.safetensors")
    differences, compared = [], set()
    for number, sequence in enumerate("ab"):
        for name in golden:
            theirs = name.removeprefix(f"{sequence}.")
            if theirs == name or theirs not in values:
                continue
            kind, _, ours = values[theirs][0].partition(":")
            ours = f"{kind}.{number}.{ours}"
            if executor != "reference" and ours not in actual and kind == "state" and "latent" in name:
                compared.add(name)  # pages of a cache are no plain values
                continue
            compared.add(name)
            differences += compare(name, golden[name][1], values[theirs][1](actual[ours]))
        differences += check_router(golden, actual, number, sequence, biases)
        compared |= {f"{sequence}.{name}" for name in ("router_chosen", "router_margin", "logits", "input_ids")}
    # Those that golden.py compares.
    left = set(golden) - compared - {"a.greedy", "a.greedy_margin"}
    assert not left, f"nothing compares {sorted(left)}"
    sys.exit("\n".join(differences) if differences else 0)


main()
