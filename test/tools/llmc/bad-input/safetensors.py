"""safetensors.py MODEL WORK: every way in which a safetensors file can lie is an error of one line."""
import json
import pathlib
import sys

from rejection import Case, finish, read_header, write_header

model, work = sys.argv[1:]
header, data = read_header(pathlib.Path(model) / "model.safetensors")
NORM, EMBEDDING = "model.norm.weight", "model.embed_tokens.weight"


def case(name, words, change=None, size=None, text=None, data=data):
    """`change` edits a copy of the header; `text` replaces it."""
    edited = json.loads(json.dumps(header))
    if change:
        change(edited)
    damaged = Case(work, name, model)
    write_header(damaged.model / "model.safetensors", text if text is not None else edited, data, size)
    damaged.rejects(words)


def entry(name, **fields):
    return lambda edited: edited[name].update(fields)


for kept in (0, 7, 8, 100, 20000):
    cut = Case(work, f"cut to {kept} bytes", model)
    file = cut.model / "model.safetensors"
    file.write_bytes(file.read_bytes()[:kept])
    cut.rejects(["model.safetensors", str(kept)])

size = 8 + len(json.dumps(header)) + len(data)
case("data cut by one byte", [f"ends at {size}, the file at {size - 1}", "incomplete"], data=data[:-1])
case("header beyond the file", ["header"], size=1 << 40)
case("header of 2^64-1 bytes", ["header"], size=(1 << 64) - 1)
case("no header", [], text="")
case("header no JSON", [], text='{"a": ')
case("header a list", [], text="[]")
case("deep header", ["deep|nest|level"], text='{"a":' + "[" * 100000 + "]" * 100000 + "}")
case("name twice", ["twice|duplicate"], text=json.dumps(header)[:-1] + f', "{NORM}": ' + json.dumps(header[NORM]) + "}")
case("tensor missing", [NORM], lambda edited: edited.update({"model.norm.other": edited.pop(NORM)}))
case("tensor without data", ["ends at"], lambda edited: edited.pop(NORM))
superfluous = {"dtype": "BF16", "shape": [1], "data_offsets": [len(data), len(data) + 2]}
case("tensor superfluous", ["model.extra.weight"], lambda edited: edited.update({"model.extra.weight": superfluous}), data=data + b"\0\0")
case("offsets reversed", [NORM], entry(NORM, data_offsets=header[NORM]["data_offsets"][::-1]))
case("offsets beyond the data", [NORM, str(1 << 40)], entry(NORM, data_offsets=[0, 1 << 40]))
case("offsets that overflow", [NORM], entry(NORM, data_offsets=[(1 << 64) - 128, 1 << 64]))
case("negative offset", [NORM], entry(NORM, data_offsets=[-128, 0]))
case("fractional offset", [NORM], entry(NORM, data_offsets=[0.5, 128.5]))
case("one offset", [NORM], entry(NORM, data_offsets=[0]))
case("overlapping tensors", ["overlap"], entry(NORM, data_offsets=[0, header[NORM]["data_offsets"][1] - header[NORM]["data_offsets"][0]]))
case("unknown type", [NORM, "F17"], entry(NORM, dtype="F17"))
case("type of integers", [NORM, "I16"], entry(NORM, dtype="I16"))
case("type of another size", [NORM], entry(NORM, dtype="F32"))
case("shape of another size", [NORM], entry(NORM, shape=[1 << 20]))
case("shape that overflows", [EMBEDDING], entry(EMBEDDING, shape=[1 << 32, 1 << 32]))
case("negative shape", [EMBEDDING], entry(EMBEDDING, shape=[-1, -1]))
case("shape turned", [EMBEDDING, r"\[64, 320\].*\[320, 64\]"], entry(EMBEDDING, shape=header[EMBEDDING]["shape"][::-1]))
case("rank of 1000", [EMBEDDING], entry(EMBEDDING, shape=[1] * 1000))
case("no shape", [EMBEDDING], lambda edited: edited[EMBEDDING].pop("shape"))
finish()
