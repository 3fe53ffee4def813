"""check_coverage.py MODELS: `llmc coverage --json` counts calls, adds up costs, and refuses what compile refuses."""
import json
import pathlib
import subprocess
import sys

models = pathlib.Path(sys.argv[1])


def coverage(model, *flags):
    done = subprocess.run(["llmc", "coverage", str(model), "--target", "x86-64-v3", "--json", *flags], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def one(answer, op):
    found = [entry for entry in answer["operators"] if entry["op"] == op]
    assert len(found) == 1, (op, found)
    return found[0]


config = json.loads((models / "llama-3.2" / "config.json").read_text())
layers, hidden, wide = config["num_hidden_layers"], config["hidden_size"], config["intermediate_size"]
heads, kv = config["num_attention_heads"], config["num_key_value_heads"]
dim = config.get("head_dim") or hidden // heads
answer = coverage(models / "llama-3.2", "--rows", "3", "--depth", "100")
assert answer["target"] == "x86-64-v3" and answer["decode"] == {"rows": 3, "context": 100}, answer
linear = one(answer, "linear")
products = layers * (hidden * dim * (2 * heads + 2 * kv) + 3 * hidden * wide) + hidden * config["vocab_size"]
assert linear["count"] == 7 * layers + 1 and linear["status"] == "native", linear
assert linear["flops"] == 3 * 2 * products, (linear, products)
assert linear["prefill"]["flops"] == 512 * 2 * products, linear
assert one(answer, "attention")["count"] == layers
assert one(answer, "rms_norm")["count"] == 2 * layers + 1
assert not any(entry["op"] in ("record", "use_weight") for entry in answer["operators"])

# A model is refused by compile exactly when coverage has a missing operator, and in its words.
for folder in sorted({path.parent for path in models.glob("*/model.safetensors")} - {models / "gguf-llama"}):
    missing = {entry["reason"] for entry in coverage(folder)["operators"] if entry["status"] == "missing" and entry["count"]}
    done = subprocess.run(["llmc", "compile", str(folder), "--target", "x86-64-v3", "--stop-after", "tasks"], capture_output=True, text=True)
    assert (done.returncode != 0) == bool(missing), (folder.name, missing, done.stderr)
    if missing:
        assert any(reason in done.stderr for reason in missing), (folder.name, missing, done.stderr)

# Weights of a quantised checkpoint: codes that kernels read are native, numbers that are converted composed.
for folder, form, status, words in [("int4-sym-ct", "i4", "native", "INT4 group 32 (BF16 scales), kept exactly"),
                                    ("awq-int4", "i4m", "native", "codes kept, scales rounded to f16"),
                                    ("fp8-block", "f8", "native", "FP8 block 128x128 (F32 scales), kept exactly"),
                                    ("gptq-int4-act", "i8", "composed", "act-order (F16 scales), requantised to 8 bits")]:
    found = [entry for entry in coverage(models / "quantized" / folder)["weights"] if words in entry["reason"]]
    assert found and all((entry["form"], entry["status"]) == (form, status) for entry in found), (folder, found)
