"""check_memory.py MODEL WORK FORM CONTEXT: a run that fills its context keeps to the memory plan that compile printed."""
import json
import pathlib
import re
import subprocess
import sys
import time

model, work, form, context = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
WORKERS = 2
# Beyond the plan: the program, its libraries and libc (4.6 MB in `llmc-run --help`), stacks, the program of the
# artifact and its tables, and the tokenizer, of which an entry of the vocabulary takes about 200 bytes.
PROGRAM = 8 << 20
PER_TOKEN = 256

work.mkdir(parents=True, exist_ok=True)
(work / "ids.json").write_text(json.dumps({"sequences": [[1 + i % 300 for i in range(context - 8)]]}))
compiled = subprocess.run(["llmc", "compile", model, "--weights", form, "--context", str(context), "--max-sequences", "1", "-o",
                           str(work / "artifact")], capture_output=True, text=True)
assert compiled.returncode == 0, compiled
planned = logits = 0
for size, rest in re.findall(r"^  \S.* (\d+) bytes  = (.*)$", compiled.stdout + compiled.stderr, re.M):
    planned += int(size) * (WORKERS if "per worker" in rest else 1)
    logits += int(size) if "max_logit_rows" in rest else 0
assert planned, f"no plan was printed: {compiled}"

running = subprocess.Popen(["llmc-run", str(work / "artifact"), "--ids", str(work / "ids.json"), "-n", "8", "--ignore-eos",
                            "--threads", str(WORKERS)], stdout=subprocess.DEVNULL)
# The kernel keeps the most that was ever resident, so the last answer holds; getrusage would count Python's own before exec.
resident = 0
while running.poll() is None:
    found = re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{running.pid}/status").read_text())
    resident = int(found[1]) * 1024 if found else resident
    time.sleep(0.0005)
assert running.returncode == 0, running.returncode
vocabulary = json.loads((work / "artifact" / "manifest.json").read_text())["vocabulary"]
allowed = planned * 1.05 + PROGRAM + vocabulary * PER_TOKEN
print(f"{resident} bytes were resident, {planned} are planned, {allowed:.0f} allowed")
assert resident <= allowed
# Else the run did not use what it planned, and the line above said nothing. A generation wants one row of logits only.
assert resident >= (planned - logits) * 0.8, "most of the plan was never touched"
