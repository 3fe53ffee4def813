"""check_rank_plans.py MODELS WORK: `llmc plan --json` on ranks adds up, and its page stands alone."""
import json
import pathlib
import re
import subprocess
import sys

models, work = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
work.mkdir(parents=True, exist_ok=True)
KINDS = ["weights", "activations", "scratch", "collectives", "kv", "state", "logits", "staging"]


def plan(model, *flags):
    done = subprocess.run(["llmc", "plan", str(model), "--json", *map(str, flags)], capture_output=True, text=True)
    assert done.returncode == 0, (model, flags, done.stderr)
    return json.loads(done.stdout)


def check_allocated(model, answer):
    """Every rank's artifact holds the bytes that the plan names, kind by kind."""
    grid, artifact = answer["grid"], work / "artifact"
    flags = ["--pipeline", grid["stages"], "--experts", grid["experts"], "--tensor", grid["tensor"], "--context", answer["context"],
             "--max-sequences", answer["batch"], "--target", "x86-64-v3"]
    done = subprocess.run(["llmc", "compile", model, "-o", artifact, *map(str, flags)], capture_output=True, text=True)
    assert done.returncode == 0, (model, flags, done.stderr)
    for number, rank in enumerate(answer["rank"]):
        manifest = json.loads((artifact / f"manifest{f'-{number}' if number else ''}.json").read_text())
        measured = dict.fromkeys(KINDS, 0)
        for entry in manifest["memory_plan"]:
            measured[entry["kind"]] += entry["bytes"]
        assert measured == {kind: rank[kind] for kind in measured}, (model, number, measured, rank)


def check(answer, ranks):
    grid = answer["grid"]
    assert answer["ranks"] == ranks == len(answer["rank"]) == grid["stages"] * grid["experts"] * grid["tensor"], grid
    for rank in answer["rank"]:
        assert rank["total"] == sum(rank[kind] for kind in KINDS), rank
    fullest = max(rank["total"] for rank in answer["rank"])
    assert answer["fits"] == (fullest <= answer["rank"][0]["limit"]), fullest
    assert ("lacks" in answer) == (not answer["fits"])
    # Published = what ranks hold once + parts that are not run; on ranks = once + duplicates. Bytes are rounded up.
    weights, slack = answer["weights"], ranks + 2
    held = sum(rank["weights"] for rank in answer["rank"])
    assert abs(held - weights["once"] - weights["duplicated"]) <= slack, (held, weights)
    listed = sum(each["bytes"] for each in weights["duplicates"])
    assert abs(listed - weights["duplicated"]) <= len(weights["duplicates"]) + 2, (listed, weights)
    assert [c["fits"] for c in answer["candidates"]] == sorted((c["fits"] for c in answer["candidates"]), reverse=True)
    fitting = [c["decode"]["seconds"] for c in answer["candidates"] if c["fits"]]
    assert fitting == sorted(fitting)
    for phase in ("decode", "prefill"):
        time = answer[phase]
        parts = sum(time[part] for part in ("compute", "memory", "launches", "collectives", "hand_over"))
        assert abs(parts - time["hidden"] - time["seconds"]) < 1e-9 * parts, time
        assert 0 <= time["hidden"] <= time["collectives"] and (phase == "prefill" or time["hidden"] == 0), time
    return weights


k3 = models / "published" / "kimi-k3.json"
for machine, ranks, fits in (("b200", 8, False), ("h200", 16, True), ("b300", 7, True), ("gb300-nvl72", 72, True)):
    answer = plan(k3, "--machine", machine, "--ranks", ranks, "--context", 1 << 20)
    weights = check(answer, ranks)
    assert answer["fits"] == fits, (machine, answer["rank"][0])
    assert weights["published"] == 1560860324864, weights  # 1453.66 GiB, as published
    assert abs(weights["published"] - weights["once"] - weights["not_run"]) <= 2, weights

# What the remedies say is so, and the least number of ranks is the least.
lacking = plan(k3, "--machine", "b200", "--ranks", 8, "--context", 1 << 20)
least = lacking["remedies"]["ranks"]
assert not plan(k3, "--machine", "b200", "--ranks", least - 1, "--context", 1 << 20)["fits"]
assert plan(k3, "--machine", "b200", "--ranks", least, "--context", 1 << 20)["fits"]
for machine in lacking["remedies"]["machines"]:
    assert plan(k3, "--machine", machine, "--ranks", 8, "--context", 1 << 20)["fits"], machine
crowded = plan(k3, "--machine", "h200", "--ranks", 16, "--context", 1 << 20, "--batch", 16)
check(crowded, 16)
assert not crowded["fits"] and 0 < crowded["remedies"]["batch"] < 16
for batch, fits in ((crowded["remedies"]["batch"], True), (crowded["remedies"]["batch"] + 1, False)):
    assert plan(k3, "--machine", "h200", "--ranks", 16, "--context", 1 << 20, "--batch", batch)["fits"] == fits, batch

# A node's devices where no number is given; a CPU target stands for nodes of a cluster.
assert plan(models / "published" / "llama-3-8b.json", "--target", "h100")["ranks"] == 8
for model in ("llama-3.2", "qwen3-moe", "deepseek-v3", "kimi-k3-tiny"):
    for ranks in (2, 3, 7):
        check(plan(models / model, "--machine", "h200", "--ranks", ranks, "--context", 64), ranks)
    answer = plan(models / model, "--target", "x86-64-v3", "--ranks", 2, "--context", 64)
    assert answer["target"] == "cpu-cluster" and (answer["exact"] or answer["estimated_because"]), answer
    if answer["exact"]:
        check_allocated(models / model, answer)

page = work / "page.html"
plan(k3, "--machine", "gb300-nvl72", "--html", page)
text = page.read_text()
assert text.count("<b>rank ") == 72 and "A step of decode" in text, len(text)
assert not re.search(r"(?:src|href)=|url\(|@import", text), "the page loads something"
