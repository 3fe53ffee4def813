"""ranks.py FOLDER WORK GRID...: ranks that share the model in FOLDER compute what one computes.

GRID is like `tensor=2` or `experts=2,pipeline=2`. Logits and the residual stream of every position in float32, within 2e-5
of the largest value of each tensor, by both interpreters, and by the compiled programs of the last grid; all ranks have the
same logits, or llmc says which differs.
"""
import json
import pathlib
import sys

from golden import read_tensors, run

BOUND = 2e-5


def computed(model, ids, output, flags):
    run("llmc", "logits", model, "--ids", ids, "-o", output, "--weights", "f32", *flags)
    return read_tensors(output)


def differences(where, expected, actual):
    assert expected.keys() == actual.keys(), (where, sorted(expected.keys() ^ actual.keys()))
    for name, (shape, values) in expected.items():
        assert actual[name][0] == shape, (where, name, actual[name][0], shape)
        bound = BOUND * max(map(abs, values))
        for at, (x, y) in enumerate(zip(actual[name][1], values, strict=True)):
            if not abs(x - y) <= bound:
                yield f"{where}: {name} at {at} is {x}, expected {y} +- {bound:.3g}"
                break


folder, work, grids = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
work.mkdir(parents=True, exist_ok=True)
golden = read_tensors(folder / "golden.safetensors")
ids = work / "ids.json"
ids.write_text(json.dumps({"sequences": [[int(token) for token in golden[f"{name}.input_ids"][1]] for name in "ab"]}))
failures, alone = [], {}
for executor in ("reference", "tile", "compiled"):
    for grid in grids[-1:] if executor == "compiled" else grids:
        flags = [word for axis in grid.split(",") for word in ("--" + axis.split("=")[0], axis.split("=")[1])]
        # A compiled stage knows no hidden states of others.
        hidden = [] if executor == "compiled" and "pipeline" in grid else ["--hidden"]
        if executor not in alone:
            alone[executor] = computed(folder, ids, work / "one.safetensors", ["--executor", executor, *hidden])
        shared = computed(folder, ids, work / "ranks.safetensors", ["--executor", executor, *hidden, *flags])
        failures += differences(f"{folder.name}, {executor}, {grid}", alone[executor], shared)
print("\n".join(failures))
sys.exit(1 if failures else 0)
