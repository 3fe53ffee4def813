"""check_artifact_tokenizers.py MODEL GOLDEN WORK: an artifact tokenizes as the published files do, whatever kind they are."""
import json
import pathlib
import shutil
import subprocess
import sys

model, golden, work = (pathlib.Path(argument) for argument in sys.argv[1:])
texts = [s["text"] for s in json.loads((golden / "strings.json").read_text()) if "text" in s]
KINDS = {"llama2-legacy": "tokenizer.json", "wordpiece": "tokenizer.json", "unigram-t5": "tokenizer.json",
         "spm-bpe": "sentencepiece", "spm-unigram-bytes": "sentencepiece", "kimi-tiktoken": "tiktoken"}
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tiktoken.model", "tokenizer_config.json", "about.json")


def output(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True).stdout.decode()


def tokenized(*source, flags=()):
    return json.loads(output("llmc", "tokenize", *source, "--texts", work / "texts.json", *flags))


shutil.rmtree(work, ignore_errors=True)
work.mkdir(parents=True)
(work / "texts.json").write_text(json.dumps(texts))
config = json.loads((model / "config.json").read_text())
for name, kind in KINDS.items():
    source, folder, artifact = work / f"{name}-source", work / name, work / f"{name}-artifact"
    source.mkdir()
    # One row an id; about.json is no file of a model, so it is not copied by synth.
    rows = json.loads((golden / name / "about.json").read_text()).get("vocab_size", 1100)
    (source / "config.json").write_text(json.dumps(config | {"vocab_size": max(rows, 1100), "eos_token_id": 2}))
    output("llmc", "synth", source, "-o", folder, "--layers", 1)
    for file in TOKENIZERS:
        if (golden / name / file).exists():
            shutil.copy(golden / name / file, folder)
    plan = output("llmc", "compile", folder, "-o", artifact, "--context", 64)
    assert "generation stops at token 2\n" in plan, plan
    assert json.loads((artifact / "manifest.json").read_text())["tokenizer"]["kind"] == kind
    for flags in ((), ("--no-special",), ("--no-added",)):
        expected = tokenized("--tokenizer", next(p for p in map(folder.joinpath, TOKENIZERS) if p.exists()), flags=flags)
        assert tokenized(artifact, flags=flags) == expected, (name, flags)
    # A run takes text and gives text.
    answer = json.loads(output("llmc", "run", artifact, "--raw", "--prompt", "Hello", "-n", 3, "--ignore-eos", "--json"))
    [sequence] = answer["sequences"]
    assert len(sequence["ids"]) == 3 and isinstance(sequence["text"], str), (name, sequence)
    ids = json.loads(output("llmc", "tokenize", artifact, "--text", "Hello", "--add-special"))
    assert sequence["prompt_ids"] == ids, (name, sequence, ids)
