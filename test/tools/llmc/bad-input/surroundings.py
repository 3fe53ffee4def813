"""surroundings.py MODEL WORK: a folder without what a model needs, a disk that is full, a place where nothing can be
written, a compiler that is killed: each is an error of one line, and nothing half-written can be loaded."""
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import time

from rejection import Case, finish

model, work = sys.argv[1:]


def edited(name, **keys):
    case = Case(work, name, model)
    config = json.loads((case.model / "config.json").read_text())
    (case.model / "config.json").write_text(json.dumps({**config, **keys}))
    return case


# Pickle runs code when it is read: it is refused by name.
pickled = Case(work, "pickle", model)
(pickled.model / "model.safetensors").rename(pickled.model / "pytorch_model.bin")
pickled.rejects(["pytorch_model.bin", "safetensors"])

# Code beside a model is never run, which is said; the model compiles as its config describes it.
custom = edited("custom code", auto_map={"AutoModelForCausalLM": "modeling.Model"})
(custom.model / "modeling.py").write_text(f"open({str(custom.folder / 'executed')!r}, 'w')\n")
done = subprocess.run([str(word) for word in custom.compile()], capture_output=True, text=True)
assert done.returncode == 0 and "auto_map" in done.stderr and not (custom.folder / "executed").exists(), done

nothing = Case(work, "no weights", model)
(nothing.model / "model.safetensors").unlink()
nothing.rejects(["no-weights/model", "no weights"])
bare = Case(work, "no config", model)
(bare.model / "config.json").unlink()
bare.rejects(["config.json"])
Case(work, "no model").rejects(["no-model/model"])
text = Case(work, "no tokenizer", model)
text.rejects(["tokenizer", "--ids"], ["llmc", "run", text.model, "--prompt", "x"])

# Every limit below the size of the artifact stops at another write.
for limit in (0, 1000, 10000, 100000, 250000):
    full = Case(work, f"files of at most {limit} bytes", model)
    full.rejects(["artifact|llmc-link", "disk may be full|[Ff]ile too large"], preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
logits = Case(work, "no room for logits", model)
(logits.folder / "ids.json").write_text('{"sequences": [[1, 2, 3]]}')
logits.rejects(["out"], ["llmc", "logits", logits.model, "--executor", "reference", "--ids", logits.folder / "ids.json", "-o",
                         logits.folder / "out"], preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)))

same = Case(work, "output is the input", model)
same.output = same.model
same.rejects(["model"])
inside = Case(work, "output is a file", model)
inside.output = inside.model / "config.json"
inside.rejects(["config.json"])
absent = Case(work, "output below a file", model)
absent.output = absent.model / "config.json" / "artifact"
absent.rejects(["config.json"])
foreign = Case(work, "output holds something else", model)
foreign.output.mkdir()
(foreign.output / "thesis.txt").write_text("years of work")
foreign.rejects(["artifact"])
assert (foreign.output / "thesis.txt").exists()
# Nobody, root included, creates files in /proc.
closed = Case(work, "output nowhere", model)
closed.output = pathlib.Path("/proc/artifact")
closed.rejects(["/proc"])
if os.geteuid() != 0:
    closed = Case(work, "folder read-only", model)
    closed.folder.chmod(0o555)
    closed.rejects(["artifact"])
    closed.folder.chmod(0o755)

# Killed at any moment, the compiler leaves no artifact, or a whole one; what it leaves beside it stops no second try.
killed = Case(work, "killed", model)
ids = killed.folder / "ids.json"
ids.write_text('{"sequences": [[1, 2, 3]]}')


def run_to_end(*command):
    subprocess.run([str(word) for word in command], check=True, capture_output=True)


for delay in (0, 0.001, 0.003, 0.01, 0.03, 0.1):
    compiling = subprocess.Popen([str(word) for word in killed.compile()], stderr=subprocess.DEVNULL)
    while compiling.poll() is None and not list(killed.folder.glob(".artifact*")) and not killed.output.exists():
        time.sleep(0.0005)
    time.sleep(delay)
    compiling.send_signal(signal.SIGKILL)
    compiling.wait()
    if killed.output.exists():
        run_to_end("llmc-run", killed.output, "--ids", ids, "-n", 1)
        break
run_to_end(*killed.compile())
run_to_end("llmc-run", killed.output, "--ids", ids, "-n", 1)
finish()
