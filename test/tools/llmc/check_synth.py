"""check_synth.py MODELS IDS FOLDER: `llmc synth` of each small model compiles and gives finite logits of a plausible size
that differ by position; --layers leaves the first layers as they are."""
import array
import json
import math
import pathlib
import struct
import subprocess
import sys

models, ids, folder = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])


def llmc(*words):
    return subprocess.run(["llmc", *map(str, words)], check=True, stdout=subprocess.PIPE, text=True).stdout


def tensors_of(path):
    data = path.read_bytes()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:end])
    header.pop("__metadata__", None)
    return {name: (entry["shape"], data[end + entry["data_offsets"][0] : end + entry["data_offsets"][1]]) for name, entry in header.items()}


def logits_of(artifact, *options):
    out = folder / "logits.safetensors"
    llmc("logits", artifact, "--ids", ids, "-o", out, *options)
    return {name: (shape, array.array("f", data)) for name, (shape, data) in tensors_of(out).items()}


def check_family(name):
    checkpoint = folder / name
    llmc("synth", models / name, "-o", checkpoint)
    for tensor, ((rows, columns), values) in logits_of(checkpoint, "--context", "64", "--weights", "f32", "--threads", "1").items():
        assert all(map(math.isfinite, values)), (name, tensor)
        deviation = math.sqrt(sum(v * v for v in values) / len(values))
        # Normed input times a head of deviation 1 / sqrt(columns) has deviation 1; families scale that by up to 8.
        assert 0.05 < deviation < 10, (name, tensor, deviation)
        assert rows < 2 or list(values[:columns]) != list(values[-columns:]), (name, tensor)


def check_first_layers(name):
    whole, part = folder / name, folder / f"{name}-1"
    llmc("synth", models / name, "-o", part, "--layers", "1")
    all_tensors, some = tensors_of(whole / "model.safetensors"), tensors_of(part / "model.safetensors")
    assert 0 < len(some) < len(all_tensors), (name, len(some), len(all_tensors))
    for tensor, value in some.items():
        assert value == all_tensors[tensor], (name, tensor)


for family in ("llama-3.2", "qwen3", "gemma-2", "gemma-3", "granite", "olmo2", "phi-3.5", "smollm3"):
    check_family(family)
    check_first_layers(family)
