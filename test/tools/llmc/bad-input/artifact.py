"""artifact.py MODEL WORK: one flipped bit in any file of an artifact, a file that is missing, cut or too long, a prompt
that is longer than the context: each is an error of one line."""
import json
import shutil
import subprocess
import sys

from rejection import Case, finish

model, work = sys.argv[1:]
CONTEXT = 64


def case(name):
    damaged = Case(work, name)
    shutil.copytree(whole.output, damaged.output)
    return damaged


def answer(damaged, ids=None):
    return ["llmc-run", damaged.output, "--ids", ids or whole.folder / "ids.json", "-n", "1"]


whole = Case(work, "whole", model)
subprocess.run([str(word) for word in whole.compile("--context", str(CONTEXT))], check=True, capture_output=True)
(whole.folder / "ids.json").write_text('{"sequences": [[1, 2, 3]]}')
subprocess.run([str(word) for word in answer(whole)], check=True, capture_output=True)

for file in sorted(path.name for path in whole.output.iterdir()):
    size = (whole.output / file).stat().st_size
    for at in sorted({0, 10, size // 3, size // 2, size - 1}):
        flipped = case(f"{file} flipped at {at}")
        content = bytearray((flipped.output / file).read_bytes())
        content[at] ^= 0x10
        (flipped.output / file).write_bytes(content)
        flipped.rejects([file], answer(flipped))
    cut = case(f"{file} cut")
    (cut.output / file).write_bytes((whole.output / file).read_bytes()[:-1])
    cut.rejects([file], answer(cut))
    longer = case(f"{file} longer")
    (longer.output / file).write_bytes((whole.output / file).read_bytes() + b"\0")
    longer.rejects([file], answer(longer))
    missing = case(f"{file} missing")
    (missing.output / file).unlink()
    missing.rejects([file] if file != "manifest.json" else ["artifact"], answer(missing))

empty = Case(work, "empty folder")
empty.output.mkdir()
empty.rejects(["artifact"], answer(empty))

for name, text, words in (("too long", {"sequences": [[1] * (CONTEXT + 1)]}, [str(CONTEXT + 1), f"context is {CONTEXT}"]),
                          ("id beyond the vocabulary", {"sequences": [[320]]}, ["320"]), ("negative id", {"sequences": [[-1]]}, ["-1"]),
                          ("empty sequence", {"sequences": [[]]}, ["sequence 0|0 tokens"]), ("no sequences", {"sequences": []}, ["sequences"]),
                          ("id a string", {"sequences": [["a"]]}, ["ids.json"]), ("a list", [], ["ids.json"])):
    prompt = case(f"prompt {name}")
    ids = prompt.folder / "ids.json"
    ids.write_text(json.dumps(text))
    prompt.rejects(words, answer(prompt, ids))
    prompt.rejects(words, ["llmc", "logits", prompt.output, "--ids", ids, "-o", prompt.folder / "out"])
finish()
