"""golden.py FOLDER WORK [--only PART,...]: llmc computes for the model in FOLDER what an independent implementation computed in float32.

Three executors in float32 within 2e-5 of the largest value of each tensor, and the form that keeps what is stored (`stored`)
by its KL divergence, which also has the best ids where they are no close choice. Each difference says which family, executor,
tensor and position, and both values. PART is an executor in float32, or `stored`. `programs.py` has the programs of all targets.
"""
import array
import json
import math
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

# The order of summation is all that differs; a wrong constant shows as 1e-2.
RELATIVE_BOUND = 2e-5
DIVERGENCE_BOUND = 1e-3
# Of weights stored in four bits, and how much better a token must be than all others to be the best one there too.
FOUR_BIT_DIVERGENCE_BOUND = 2e-2
CLEAR_MARGIN = 0.3


def read_tensors(path, only=""):
    """{name: (shape, values)} of a safetensors file of float32 and integers; of the tensors with `only` in their names."""
    content = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    tensors = {}
    for name, entry in json.loads(content[8:8 + size]).items():
        if name == "__metadata__" or only not in name:
            continue
        begin, end = entry["data_offsets"]
        values = array.array({"F32": "f", "I32": "i", "U8": "B"}[entry["dtype"]])
        values.frombytes(content[8 + size + begin:8 + size + end])
        tensors[name] = (entry["shape"], values)
    return tensors


def run(*arguments):
    done = subprocess.run([str(argument) for argument in arguments], capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(done.args)} ended with {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout


def divergence(expected, actual):
    """KL divergence of one row of logits from another, in nats."""
    def log_softmax(row):
        largest = max(row)
        total = largest + math.log(sum(math.exp(x - largest) for x in row))
        return [x - total for x in row]
    p, q = log_softmax(expected), log_softmax(actual)
    return sum(math.exp(x) * (x - y) for x, y in zip(p, q))


def pairs_of(golden, first=0):
    """(their name, our name) of every tensor to compare; their last hidden state is our `normed`, their first our `first`."""
    for number, sequence in enumerate("ab"):
        yield f"{sequence}.logits", f"logits.{number}"
        states = sum(name.startswith(f"{sequence}.hidden.") for name in golden)
        for name in golden:
            if match := re.fullmatch(rf"{sequence}\.layer\.(\d+)\.prefix", name):
                yield name, f"hidden.{number}.{int(match[1]) + 1}"
        for layer in range(states):
            ours = f"normed.{number}" if layer == states - 1 else f"hidden.{number}.{layer + first}"
            yield f"{sequence}.hidden.{layer}", ours


def compare_values(where, golden, actual, first=0):
    differences = []
    for theirs, ours in pairs_of(golden, first):
        (length, *rest), expected = golden[theirs]
        shape = [length, math.prod(rest)]  # several residual streams lie side by side
        assert ours in actual, f"{where}: no tensor '{ours}' was written"
        assert actual[ours][0] == shape, f"{where}: {ours} is {actual[ours][0]}, expected {shape}"
        bound = RELATIVE_BOUND * max(map(abs, expected))
        for at, (x, y) in enumerate(zip(actual[ours][1], expected)):
            if not abs(x - y) <= bound:
                row, column = divmod(at, shape[1])
                differences.append(f"{where}: {ours} at position {row}, channel {column} is {x}, expected {y} +- {bound:.3g}")
                break
    return differences


def compare_distributions(where, references, actual, bound=DIVERGENCE_BOUND):
    """Each row with the nearest of the references."""
    differences = []
    for number, sequence in enumerate("ab"):
        length, width = references[0][f"{sequence}.logits"][0]
        logits = actual[f"logits.{number}"][1]
        for row in range(length):
            part = slice(row * width, (row + 1) * width)
            found = min(divergence(reference[f"{sequence}.logits"][1][part], logits[part]) for reference in references)
            if not found <= bound:
                differences.append(f"{where}: logits.{number} at position {row} diverge by {found:.3g} nats, at most {bound}")
                break
    return differences


def compare_best(where, golden, actual):
    """The greedy continuation of `a`, given what comes before each of its tokens: logits.2 are of both."""
    (_, width), logits = actual["logits.2"]
    first = golden["a.input_ids"][0][0] - 1
    differences = []
    for step, (wanted, margin) in enumerate(zip(golden["a.greedy"][1], golden["a.greedy_margin"][1])):
        row = logits[(first + step) * width:(first + step + 1) * width]
        best = max(range(width), key=row.__getitem__)
        if margin > CLEAR_MARGIN and best != wanted:
            differences.append(f"{where}: the best token of step {step} is {best}, expected {wanted} with a margin of {margin:.3g}")
    return differences


def main(folder, work, only=""):
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    # Never what an earlier compiler left in the user's cache.
    os.environ["LLMC_CACHE"] = str(work / "cache")
    family = folder.name
    golden = read_tensors(folder / "golden.safetensors")
    model = folder / "model.gguf" if (folder / "model.gguf").exists() else folder
    facts = json.loads((folder / "golden.json").read_text()) if (folder / "golden.json").exists() else {}
    sequences = [list(golden[f"{sequence}.input_ids"][1]) for sequence in "ab"]
    continued = sequences[0] + list(golden["a.greedy"][1][:-1])
    (work / "all.json").write_text(json.dumps({"sequences": [*sequences, continued]}))

    def logits(*options):
        run("llmc", "logits", model, "--ids", work / "all.json", "-o", work / "out.safetensors", *options)
        return read_tensors(work / "out.safetensors")

    differences = []
    parts = only.split(",") if only else ["reference", "tile", "compiled", "stored"]
    for part in parts:
        if part != "stored":
            actual = logits("--weights", "f32", "--hidden", "--executor", part)
            differences += compare_values(f"{family} {part}", golden, actual, facts.get("first_hidden", 0))
    if "stored" in parts:
        weights = json.loads(run("llmc", "coverage", model, "--json"))["weights"]
        four_bits = any(re.search(r"FP4|INT4|Q4_", weight["reason"]) for weight in weights)
        cache = facts["stored_cache"].split(":")[0] if "stored_cache" in facts else "bf16"
        actual = logits("--weights", "stored", "--kv", cache)
        differences += compare_distributions(f"{family} stored", [golden], actual, FOUR_BIT_DIVERGENCE_BOUND if four_bits else DIVERGENCE_BOUND)
        differences += compare_best(f"{family} stored", golden, actual)
    sys.exit("\n".join(differences) if differences else 0)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[4] if sys.argv[3:4] == ["--only"] else "")
