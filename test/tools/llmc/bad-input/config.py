"""config.py MODEL WORK: a config.json that is no config, or whose numbers no model can have, is an error of one line."""
import json
import pathlib
import subprocess
import sys

from rejection import Case, finish

model, work = sys.argv[1:]
config = json.loads((pathlib.Path(model) / "config.json").read_text())


def text(name, words, content):
    damaged = Case(work, name, model)
    (damaged.model / "config.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    damaged.rejects(["config.json", *words])
    damaged.rejects(["config.json", *words], ["llmc", "inspect", damaged.model])


def keys(name, words, **changed):
    text(name, words, json.dumps({**config, **changed}))


text("empty", [], "")
text("cut", [], json.dumps(config)[:100])
text("a list", [], "[]")
text("no object", [], "42")
text("deep", ["deep|nest|level"], '{"a":' * 100000 + "1" + "}" * 100000)
text("key twice", ["hidden_size"], json.dumps(config)[:-1] + ', "hidden_size": 32}')
text("no UTF-8", [], b'{"model_type": "\xff\xfe"}')
text("17 MiB", [], json.dumps(config)[:-1] + " " * (17 << 20) + "}")

keys("architecture misspelt", ["LlamaForCausalLN", "LlamaForCausalLM"], architectures=["LlamaForCausalLN"], model_type="lama")
keys("architecture unknown", ["XyzForCausalLM", "nearest = GlmForCausalLM", "are known"], architectures=["XyzForCausalLM"], model_type="xyz")
keys("architecture a number", [], architectures=[7], model_type=7)

# Weights that nobody can read are refused; the rest of the config may be looked at, and says which key is unknown.
packed = Case(work, "quantisation unknown", model)
(packed.model / "config.json").write_text(json.dumps({**config, "quantization_config": {"quant_method": "squeeze", "bits": 3}}))
packed.rejects(["config.json", "squeeze"])
inspected = subprocess.run(["llmc", "inspect", packed.model, "--json"], capture_output=True, text=True, check=True)
assert json.loads(inspected.stdout)["unknown_keys"] == ["/quantization_config/quant_method"], inspected.stdout

for value in (0, -1, 1e99, "32", None, [], 2.5, 1 << 63, True):
    for key in ("num_attention_heads", "hidden_size", "num_hidden_layers", "vocab_size", "intermediate_size"):
        keys(f"{key} {value}", [key], **{key: value})
for key in ("num_key_value_heads", "head_dim"):
    for value in (0, -1, 1e99, "32", 1 << 63):
        keys(f"{key} {value}", [key], **{key: value})
keys("a milliard layers", ["num_hidden_layers", "1000000000", "4096"], num_hidden_layers=10**9)
keys("heads that do not divide", ["3"], num_key_value_heads=3)
for value in (0, -1, 1e99, "x"):
    keys(f"rope base {value}", ["rope_theta"], rope_theta=value)
for value in (0, -1e-6, 1e99, "x"):
    keys(f"eps {value}", ["rms_norm_eps"], rms_norm_eps=value)
finish()
