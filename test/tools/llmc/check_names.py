"""check_names.py SOURCE WORK: `llmc check-model --config --index` finds names that are missing and names that are left."""
import json
import pathlib
import subprocess
import sys

source, work = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
work.mkdir(parents=True, exist_ok=True)
config = source / "test/models/llama-3.2/config.json"
expected = json.loads(subprocess.run(["llmc", "inspect", str(config), "--json"], check=True, capture_output=True, text=True).stdout)
names = [tensor["name"] for tensor in expected["tensors"]]


def check(names, description="llama", of=config):
    (work / "index.json").write_text(json.dumps({"metadata": {}, "weight_map": {name: "model.safetensors" for name in names}}))
    done = subprocess.run(["llmc", "check-model", str(source / f"models/{description}.json"), "--config", str(of), "--index", str(work / "index.json")],
                          capture_output=True, text=True)
    return done.returncode, done.stderr.splitlines()


assert check(names) == (0, []), check(names)
code, lines = check([name for name in names if not name.endswith("q_proj.weight")] + ["model.layers.1.extra.weight"])
assert code == 3 and len(lines) == 2, lines
layers = sum(name.endswith("q_proj.weight") for name in names)
assert any("'model.layers.*.self_attn.q_proj.weight' (%d tensors, first 'model.layers.0." % layers in line and line.endswith("is expected and not in the index") for line in lines), lines
assert any(line.endswith("'model.layers.1.extra.weight' is in the index and not expected") for line in lines), lines

# Codes and scales stand for a weight where the config says that weights are packed.
packed = json.loads(config.read_text())
packed["quantization_config"] = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
(work / "config.json").write_text(json.dumps(packed))
linear = {name: [name.replace("weight", part) for part in ("qweight", "qzeros", "scales")] if "_proj." in name else [name] for name in names}
assert check(sum(linear.values(), []), of=work / "config.json") == (0, []), check(sum(linear.values(), []), of=work / "config.json")

# A description of another family says so.
code, lines = check(names, description="gemma")
assert code == 3 and "LlamaForCausalLM" in lines[0], lines
(work / "index.json").write_text("{}")
done = subprocess.run(["llmc", "check-model", str(source / "models/llama.json"), "--config", str(config), "--index", str(work / "index.json")], capture_output=True, text=True)
assert done.returncode == 1 and "weight_map is absent" in done.stderr, done
