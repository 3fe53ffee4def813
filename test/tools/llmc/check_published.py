"""check_published.py FOLDER WORK: `llmc inspect` counts the parameters of published configs, in a time and memory that
do not depend on the model's size."""
import json
import pathlib
import resource
import subprocess
import sys

# Each weight once: a tied head is the embedding, a quantised weight the one it stands for; parts that are not run count where
# their tensors are described. Published totals, or what the published sizes add up to.
TOTALS = {
    "cogito-qwen-14b": 14765947904, "deepseek-ocr": 3336106497, "deepseek-vl2-tiny": 2934734080, "eeve-10.8b-solar": 10804924416,
    "exaone-4.0-32b": 32003216384, "exaone-4.5-33b": 32527504384, "gated-deltanet-1b-fla": 1387348732, "gemma-2-2b": 2614341888,
    "gemma-2b": 2506172416, "gemma-3-1b": 999885952, "gemma-3-4b": 4300079472, "gemma-7b": 8537680896, "gla-7b-fla": 6741635072,
    "granite-3.3-8b": 8170864640, "granite-3b-code-128k": 3482503680, "kimi-k3": 2779931834976, "ling-lite": 16801974272,
    "llama-2-7b": 6738415616, "llama-3-8b": 8030261248, "llama-3.1-8b": 8030261248, "llama-3.2-11b-vision": 10670220835,
    "llama-3.2-1b": 1235814400, "mamba2-1b-fla": 1371839488, "ming-lite-omni": 17506547968, "minimax-m1": 456089655296,
    "minimax-m3-text-trimmed": 426174572928, "mistral-7b-v0.1": 7241732096, "mistral-nemo-12b": 12247782400,
    "nemotron-3.5-lightning-30b-nvfp4": 31577940288, "olmo2-7b": 7298617344, "openmoe-8b": 11855046656, "phi-3-mini-4k": 3821079552,
    "phi-3.5-mini": 3821079552, "phi-4-mini-reasoning": 3836021760, "phi-4-multimodal-shrunk": 715269120, "qwen1.5-4b-chat": 3950369280,
    "qwen2-7b": 7615616512, "qwen3-0.6b": 596049920, "qwen3-0.6b-gptq-int8": 596049920, "qwen3-32b": 32762123264,
    "qwen3-4b-awq": 4022468096, "qwen3-8b-dflash-draft": 1048626432, "qwen3-8b-eagle3-draft": 1022037632, "qwen3.5-25b-reap": 25091371648,
    "samba-1b-fla": 1403935488, "smollm-1.7b": 1711376384, "smollm3-3b": 3075098624, "step-3.7-flash-trimmed": 195844508736,
    "yuan-shrunk": 352070656, "zamba2-2.7b-native": 0,
    # Added up from the classes' shapes: layers without an indexer, caches of earlier layers, keys for values, wide gated parts.
    "deepseek-v3.2": 671877944064, "deepseek-v4-flash": 284334567511, "glm-5.2": 743377019904, "glm-5-fp8": 743911218432, "gemma-4-e2b": 4628569379,
    "gemma-4-12b-unified": 11907350320, "gemma-4-31b-nvfp4": 30697345340, "qwen3-vl-30b-a3b": 30532122624, "qwen3-vl-8b": 8190735360,
}


def inspect(path):
    return subprocess.run(["llmc", "inspect", str(path), "--json"], capture_output=True, text=True)


folder, work = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
# Llama 3.1 405B: the shape is published, and so is what it adds up to.
config = json.loads((folder / "llama-3.1-8b.json").read_text())
config.update(num_hidden_layers=126, hidden_size=16384, num_attention_heads=128, num_key_value_heads=8, intermediate_size=53248)
work.mkdir(parents=True, exist_ok=True)
(work / "config.json").write_text(json.dumps(config))
before = resource.getrusage(resource.RUSAGE_CHILDREN)
done = inspect(work / "config.json")
after = resource.getrusage(resource.RUSAGE_CHILDREN)
assert json.loads(done.stdout)["parameters"]["total"] == 405853388800, done
seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
assert seconds < 1, f"inspecting 405 milliard parameters took {seconds} s, at most 1"
# In KiB: the program and its libraries, nothing of a weight's size.
assert after.ru_maxrss < 256 << 10, f"{after.ru_maxrss} KiB were resident, at most {256 << 10}"

for path in sorted(folder.glob("*.json")):
    done = inspect(path)
    assert done.returncode == 0, (path.stem, done.stderr)
    total = json.loads(done.stdout)["parameters"]["total"]
    assert total == TOTALS[path.stem], f"{path.stem}: {total} parameters, expected {TOTALS[path.stem]}"
