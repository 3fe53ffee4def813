"""invariance.py MODEL WORK FORM...: how a model is run changes no bit of its logits, how it is compiled no byte.

For each form of the weights, or FORM:KV with the element type of the cache: prefill in chunks of 1, 3, 16 or whole, on
1, 2 or 3 threads, the sequences together or separate, the instructions of the machine or their expansions; compiled on
1 or 2 threads, from another folder, in another locale.
"""
import filecmp
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys

model, work, forms = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:]
CHUNKS = ([], ["--chunk", "1"], ["--chunk", "3"], ["--chunk", "16"])
THREADS = (["--threads", "1"], ["--threads", "2"], ["--threads", "3"])
BATCHES = (["--batch", "together"], ["--batch", "separate"])
# The expansions of 8-bit products take the compiler 15 s; test/lib/codegen/cpu compares those.
EMULATED = ("f32", "bf16")
# Every chunk with every number of threads; each of both with each batch.
WAYS = [chunk + threads + BATCHES[(i + j) % 2] for i, chunk in enumerate(CHUNKS) for j, threads in enumerate(THREADS)]


def options_of(form):
    weights, _, kv = form.partition(":")
    return ["--weights", weights, *(["--kv", kv] if kv else [])]


def run(*arguments, **options):
    done = subprocess.run([str(argument) for argument in arguments], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{' '.join(done.args)} ended with {done.returncode}: {done.stderr[-2000:]}"


@functools.cache
def turkish():
    """An environment in which "I" is no capital "i" and 0.5 is written 0,5; only by name where no locale can be made."""
    subprocess.run(["localedef", "-i", "tr_TR", "-f", "UTF-8", work / "tr_TR.UTF-8"], capture_output=True)
    return {**os.environ, "LOCPATH": str(work), "LANG": "tr_TR.UTF-8", "LC_ALL": "tr_TR.UTF-8"}


def compiling_anew(name):
    """An environment in which no kernel has been compiled yet."""
    return {**os.environ, "LLMC_CACHE": str(work / f"cache of {name}")}


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def first_difference(one, other):
    if len(one) != len(other):
        return f"{len(one)} bytes and {len(other)}"
    return f"byte {next(at for at, (x, y) in enumerate(zip(one, other)) if x != y)}"


def check_compiles(form):
    """Every way to start the compiler writes the same files; returns one of the artifacts."""
    ways = {"plain": ([], {}), "one thread": (["-j", "1"], {"env": compiling_anew(f"{form} one")}),
            "two threads": (["-j", "2"], {"env": compiling_anew(f"{form} two")}), "Turkish": ([], {"env": turkish()}),
            "another folder": ([], {"cwd": work})}
    expected = None
    for name, (options, process) in ways.items():
        artifact = work / f"{form} {name}"
        run("llmc", "compile", model, *options_of(form), "--context", "64", "-o", artifact, *options, **process)
        written = contents(artifact)
        expected = expected or written
        assert written.keys() == expected.keys(), f"{model.name} {form} {name}: {sorted(written)}, expected {sorted(expected)}"
        for file in written:
            if written[file] != expected[file]:
                sys.exit(f"{model.name} {form} {name}: {file} differs, {first_difference(written[file], expected[file])}")
    return artifact


def check_runs(form, artifact):
    def logits(name, artifact, options=()):
        run("llmc", "logits", artifact, "--ids", work / "ids.json", "-o", work / name, "--hidden", *options)
        return work / name

    expected = logits("expected", artifact)
    ways = [("again", artifact, [])] + [(" ".join(way), artifact, way) for way in WAYS]
    if form in EMULATED:
        emulated = work / f"{form} emulated"
        run("llmc", "compile", model, *options_of(form), "--context", "64", "-o", emulated, "--emulate")
        ways.append(("emulated", emulated, []))
    for name, program, options in ways:
        actual = logits("actual", program, options)
        if not filecmp.cmp(expected, actual, shallow=False):
            where = first_difference(expected.read_bytes(), actual.read_bytes())
            sys.exit(f"{model.name} {form} {name}: logits or hidden states differ, {where}")


def check_spans(form):
    """Attention shares a context longer than a span of 1024 positions among the workers, and changes no bit."""
    artifact = work / f"{form} long"
    run("llmc", "compile", model, *options_of(form), "--context", "2304", "-o", artifact)

    def logits(name, options):
        run("llmc", "logits", artifact, "--ids", work / "long.json", "-o", work / name, *options)
        return work / name

    expected = logits("expected", ["--threads", "1"])
    for options in (["--chunk", "1", "--threads", "3"], ["--chunk", "5", "--threads", "2"], ["--chunk", "300"]):
        actual = logits("actual", options)
        if not filecmp.cmp(expected, actual, shallow=False):
            where = first_difference(expected.read_bytes(), actual.read_bytes())
            sys.exit(f"{model.name} {form} long {' '.join(options)}: logits differ, {where}")


shutil.rmtree(work, ignore_errors=True)
work.mkdir(parents=True)
# 37 and 11 tokens, as many as no chunk divides, and one alone.
sequences = [[(7 * i + 3) % 320 for i in range(37)], [(11 * i + 5) % 320 for i in range(11)], [42]]
(work / "ids.json").write_text(json.dumps({"sequences": sequences}))
(work / "long.json").write_text(json.dumps({"sequences": [[(7 * i + 3) % 320 for i in range(2100)]]}))
for form in forms:
    check_runs(form, check_compiles(form))
for form in EMULATED:
    if form in forms:
        check_spans(form)
