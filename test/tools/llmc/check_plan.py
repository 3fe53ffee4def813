"""check_plan.py MODELS WORK: `llmc plan` gives the bytes that `llmc compile` writes into the manifest."""
import json
import pathlib
import subprocess
import sys

models, work = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])


def output(*words):
    done = subprocess.run(["llmc", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def check(model, *flags):
    artifact = work / "artifact"
    output("compile", model, "-o", artifact, *flags)
    manifest = json.loads(output("inspect", artifact, "--json"))
    plan = json.loads(output("plan", model, "--json", "--threads", "3", *flags))
    rank = plan["rank"][0]
    assert plan["estimated_because"] == "" and plan["ranks"] == 1, plan
    assert rank["weights"] == manifest["weights_bytes"], (rank, manifest["weights_bytes"])
    assert rank["activations"] == manifest["arena_bytes"]
    assert rank["scratch"] == 3 * manifest["scratch_bytes_per_worker"]
    assert rank["kv"] == manifest["page_bytes"] * manifest["num_pages"]
    assert rank["state"] == manifest.get("state_bytes", 0) * manifest["max_sequences"]
    assert rank["logits"] == manifest["max_logit_rows"] * manifest["vocabulary"] * 4
    kinds = ["weights", "activations", "scratch", "collectives", "kv", "state", "logits", "staging"]
    assert rank["total"] == sum(rank[kind] for kind in kinds), rank
    assert plan["fits"] == (rank["total"] <= rank["limit"])
    return rank


tiny = models / "llama-3.2"
plain = check(tiny, "--context", "128")
packed = check(tiny, "--context", "128", "--weights", "int8", "--kv", "int8", "--max-tokens", "32", "--max-sequences", "2")
assert packed["weights"] < plain["weights"] and packed["kv"] < plain["kv"] and packed["activations"] < plain["activations"]
check(models / "gemma-3", "--context", "64")

# What is too large may run from disk where experts are all that does not fit: 2 of 8 are chosen.
mixture = check(models / "qwen3-moe", "--context", "64")
weights = json.loads(output("inspect", work / "artifact", "--json"))["weights"]
experts = sum(weight["bytes"] for weight in weights if ".experts." in weight["name"])
assert mixture["experts"] == experts > 0 and mixture["experts_per_token"] == experts // 4, (mixture, experts)
assert plain["experts"] == plain["experts_per_token"] == 0, plain
for limit, from_disk in ((mixture["total"], False), (mixture["total"] - 1, True), (mixture["total"] - experts + experts // 4, True),
                         (mixture["total"] - experts + experts // 4 - 1, False)):
    words = ["plan", models / "qwen3-moe", "--threads", "3", "--context", "64", "--memory", repr(limit / 2**30)]
    plan = json.loads(output(*words, "--json"))
    assert plan["rank"][0]["limit"] == limit and plan["fits"] == (limit >= mixture["total"]), plan
    assert plan["runs_from_disk"] == from_disk, (limit, plan)
    assert ("runs from disk, slowly" in output(*words)) == from_disk, limit

# Without the weights the config's type counts.
(work / "config.json").write_text((tiny / "config.json").read_text())
stated = json.loads(output("plan", work / "config.json", "--json", "--context", "128", "--weights", "int8"))
there = json.loads(output("plan", tiny, "--json", "--context", "128", "--weights", "int8"))
assert stated["rank"] == there["rank"], (stated, there)
