"""check_large_emit.py CONFIG: code for all layers of the largest model, from its config alone, within a minute of CPU
time and 2 GiB; equal tasks share their kernels."""
import re
import resource
import subprocess
import sys

SECONDS, GIBIBYTES = 60, 2

done = subprocess.run(["llmc", "compile", sys.argv[1], "--stop-after", "emit", "--target", "x86-64-v4", "--no-kernel-cache"],
                      capture_output=True, text=True)
assert done.returncode == 0, done.stderr
used = resource.getrusage(resource.RUSAGE_CHILDREN)
assert used.ru_utime + used.ru_stime <= SECONDS, f"{used.ru_utime + used.ru_stime:.1f} s of CPU time, at most {SECONDS}"
assert used.ru_maxrss <= GIBIBYTES << 20, f"{used.ru_maxrss} KiB of memory, at most {GIBIBYTES << 20}"
tasks, kernels, code = map(int, re.fullmatch(r"(\d+) tasks, (\d+) kernels, (\d+) bytes of code\n", done.stdout).groups())
assert 0 < 4 * kernels < tasks and code > 0, done.stdout
