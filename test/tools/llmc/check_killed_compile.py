"""check_killed_compile.py WORK: kills `llmc compile` in the middle of its weights, twice, and compares what comes of it in the end."""
import json
import pathlib
import shutil
import subprocess
import sys
import time

work = pathlib.Path(sys.argv[1])
shutil.rmtree(work, ignore_errors=True)
(work / "config").mkdir(parents=True)
# 64 MiB a rank as int8, which takes its time to quantise.
(work / "config" / "config.json").write_text(json.dumps({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "attention_bias": False, "bos_token_id": 1, "eos_token_id": 2, "head_dim": 128,
    "hidden_act": "silu", "hidden_size": 1024, "intermediate_size": 4096, "max_position_embeddings": 256, "num_attention_heads": 8,
    "num_hidden_layers": 6, "num_key_value_heads": 8, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16", "vocab_size": 4096}))
subprocess.run(["llmc", "synth", work / "config", "-o", work / "model"], check=True)
words = ["llmc", "compile", str(work / "model"), "--weights", "int8", "--tensor", "2", "-j", "1", "-o"]
subprocess.run([*words, work / "undisturbed"], check=True)


def notes():
    return [line for file in work.glob(".artifact.llmc-tmp-*/unfinished") for line in file.read_text().splitlines() if line.startswith("kept ")]


def kill_with(more):
    """Ends a compilation with SIGKILL once it has noted so much more."""
    wanted = len(notes()) + more
    compiling = subprocess.Popen([*words, work / "artifact"])
    while compiling.poll() is None and len(notes()) < wanted:
        time.sleep(0.001)
    compiling.kill()
    assert compiling.wait() == -9, compiling.returncode
    assert not (work / "artifact").exists()


kill_with(2)
kill_with(1)
kept = notes()
assert len(kept) >= 3, kept
done = subprocess.run([*words, work / "artifact"], check=True, capture_output=True, text=True)
for name in ("weights.bin", "weights-1.bin"):
    assert f"note: continuing {name}, of which an interrupted run left " in done.stderr, done.stderr
subprocess.run(["diff", "-r", work / "undisturbed", work / "artifact"], check=True)
assert sorted(path.name for path in work.iterdir()) == ["artifact", "config", "model", "undisturbed"], list(work.iterdir())

# Another form of the weights has nothing to continue.
shutil.rmtree(work / "artifact")
kill_with(1)
words[words.index("int8")] = "bf16"
done = subprocess.run([*words, work / "artifact"], check=True, capture_output=True, text=True)
assert "note: removed what an interrupted run with other inputs or options left of " in done.stderr, done.stderr
assert "continuing" not in done.stderr
shutil.rmtree(work)
