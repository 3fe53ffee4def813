"""check_tokenizers.py GOLDEN WORK: `llmc tokenize` gives the ids and texts of every cases.jsonl."""
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys

golden, work = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
work.mkdir(parents=True, exist_ok=True)
texts = {s["id"]: s["text"] if "text" in s else s["repeat"]["unit"] * s["repeat"]["count"]
         for s in json.loads((golden / "strings.json").read_text())}


def tokenize(file, items, *flags):
    (work / "items.json").write_text(json.dumps(items))
    command = ["llmc", "tokenize", "--tokenizer", str(file), "--texts", str(work / "items.json"), *flags]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def same_ids(ids, expected):
    if isinstance(expected, list):
        return ids == expected
    text = ",".join(map(str, ids))
    return len(ids) == expected["count"] and hashlib.sha256(text.encode()).hexdigest() == expected["sha256"]


def same_text(text, expected, source):
    if expected is True:
        return text == source
    if isinstance(expected, str):
        return text == expected
    return hashlib.sha256(text.encode()).hexdigest() == expected["sha256"]


def repeated(case):
    return case["repeat"]["unit"] * case["repeat"]["count"] if "repeat" in case else texts[case["id"]]


def check(folder, file=None):
    file = file or next(folder / name for name in ("tokenizer.json", "tokenizer.model", "tiktoken.model")
                        if (folder / name).exists())
    lines = [line for name in ("cases.jsonl", "long.jsonl") if (folder / name).exists()
             for line in (folder / name).read_text().splitlines()]
    cases = [json.loads(line) for line in lines]
    sources = [repeated(case) for case in cases]
    modes = {"ids": []}
    if file.name == "tokenizer.json":  # the other references know no such modes
        modes |= {"ids_special_as_text": ["--no-special"], "ids_added_as_text": ["--no-added"]}
    if file.name == "tiktoken.model":
        modes |= {"ids_special_as_text": ["--no-special"]}
    answers = {mode: tokenize(file, sources, *flags) for mode, flags in modes.items()}
    decoded = tokenize(file, answers["ids"], "--decode")
    for i, (case, source) in enumerate(zip(cases, sources)):
        for mode, answer in answers.items():
            assert same_ids(answer[i], case.get(mode, case["ids"])), (folder.name, case["id"], mode)
        if "decode" in case:
            assert same_text(decoded[i], case["decode"], source), (folder.name, case["id"], decoded[i][:80])
    return len(cases)


folders = sorted(path.parent for path in golden.glob("*/cases.jsonl"))
assert len(folders) > 20, folders
assert all(check(folder) > 10 for folder in folders)

# Where nothing beside the ranks states a pattern, the description of the tokenizer's class does.
for name in ("tiktoken.model", "tokenizer_config.json"):
    shutil.copy(golden / "kimi-tiktoken" / name, work)
check(golden / "kimi-tiktoken", work / "tiktoken.model")
