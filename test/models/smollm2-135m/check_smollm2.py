"""check_smollm2.py MODEL GOLDEN WORK: SmolLM2-135M-Instruct answers and predicts as an independent implementation does."""
import json
import math
import pathlib
import subprocess
import sys

model, golden, work = sys.argv[1], json.loads(pathlib.Path(sys.argv[2]).read_text()), pathlib.Path(sys.argv[3])
work.mkdir(parents=True, exist_ok=True)
# What a 16-bit or stored form may change: the choice between two tokens that are nearly as probable.
SMALL_MARGIN = 0.1
# Of perplexity, as a part of it; of other forms less than 0.005.
LOSS = {"f16 cache": 0.001, "int8": 0.003}
TEXT = pathlib.Path("/usr/share/common-licenses/GPL-3")


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(done.args)} ended with {done.returncode}: {done.stderr[-2000:]}"
    return done


def check_greedy(form, artifact):
    (work / "ids.json").write_text(json.dumps({"sequences": [case["prompt_ids"] for case in golden["cases"]]}))
    answers = json.loads(run("llmc-run", artifact, "--ids", work / "ids.json", "-n", 48, "--ignore-eos", "--json").stdout)["sequences"]
    for number, (answer, case) in enumerate(zip(answers, golden["cases"], strict=True)):
        expected, margins = case["greedy_ids"], case["greedy_margin"]
        assert len(answer["ids"]) == len(expected) == 48, answer
        compared = next((at for at, margin in enumerate(margins) if margin < SMALL_MARGIN and form != "f32"), 48)
        for at in range(compared):
            assert answer["ids"][at] == expected[at], (
                f"{form}: case {number}, token {at} is {answer['ids'][at]}, expected {expected[at]} with a margin of {margins[at]}")


def check_perplexity(form, artifact):
    expected = golden["perplexity"]
    (work / "text").write_text(TEXT.read_text()[:22000])
    windows = json.loads(run("llmc", "perplexity", artifact, "--text", work / "text", "--window", 512, "--json").stdout)["windows"][:8]
    assert [window["tokens"] for window in windows] == [511] * 8, windows
    if form == "f32":
        for number, (window, nll) in enumerate(zip(windows, expected["nll_per_window"])):
            assert abs(window["nll"] / nll - 1) <= 2e-5, f"window {number}: nll is {window['nll']}, expected {nll}"
    perplexity = math.exp(sum(window["nll"] for window in windows) / 8)
    assert abs(perplexity / expected["perplexity"] - 1) <= LOSS.get(form, 0.005), f"{form}: perplexity is {perplexity}, expected {expected['perplexity']}"


for form in sys.argv[4:]:
    artifact = work / form
    run("llmc", "compile", model, "--weights", form, "--context", 1024, "-o", artifact)
    check_greedy(form, artifact)
    check_perplexity(form, artifact)
# What fewer bits cost; the weights cost nothing here.
CHEAPER = {
    "f16 cache": ["--weights", "f32", "--kv", "f16"],
    "int8 cache": ["--weights", "f32", "--kv", "int8"],
    "int8 activations": ["--weights", "stored", "--activations", "int8"],
}
for name, options in CHEAPER.items():
    artifact = work / name
    run("llmc", "compile", model, *options, "--context", 1024, "-o", artifact)
    check_perplexity(name, artifact)
