"""The two programs, and what one of them answers to one question: seconds, or tokens per second.

A case is a kind of work; `CASES` says which, and both programs get the same one.
"""
import collections
import json
import os
import signal
import subprocess
import tempfile
import time

from models import LLMC, ROOT, run

LLMC_RUN = os.path.join(os.path.dirname(LLMC), "llmc-run")

# prompt, new: tokens of prefill and of decode. depth: tokens in the cache before decode. parts: of the model, see models.py.
Case = collections.namedtuple("Case", "about unit prompt new streams depth parts models")
ALL = ("smollm2", "qwen3", "llama")
CASES = {
    "prefill": Case("prefill of 512 tokens", "tokens/s", 512, 0, 1, 0, 1, ALL),
    "decode": Case("decode of 64 tokens, 1 stream", "tokens/s", 0, 64, 1, 0, 1, ALL),
    "streams": Case("decode of 32 tokens in each of 16 streams", "tokens/s", 0, 32, 16, 32, 1, ALL),
    "deep-8k": Case("decode of 32 tokens after 8192", "tokens/s", 0, 32, 1, 8192, 7, ("qwen3",)),
    "deep-32k": Case("decode of 32 tokens after 32768", "tokens/s", 0, 32, 1, 32768, 28, ("qwen3",)),
    "start": Case("from the program's start to the first token after 16", "seconds", 16, 1, 1, 0, 1, ALL),
}


class Died(RuntimeError):
    """A program ended by a signal."""


class Runner:
    """Runs timed commands, behind what `under` puts before them (a lock, nice, taskset)."""

    def __init__(self, under, timeout):
        self.under, self.timeout = under, timeout

    def run(self, command):
        """Standard output and seconds."""
        start = time.monotonic()
        done = subprocess.run(self.under + command, capture_output=True, text=True, timeout=self.timeout)
        seconds = time.monotonic() - start
        # A shell or `timeout` in between reports a signal as 128 more.
        for deadly in (signal.SIGILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT):
            if done.returncode in (-deadly, 128 + deadly):
                raise Died(deadly.name)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} gave {done.returncode}: {done.stderr.strip()[-300:]}")
        return done.stdout, seconds


class Peer:
    """llama.cpp's programs in `folder`, built there when first needed."""

    def __init__(self, folder, log):
        self.folder, self.log = folder, log

    def program(self, name, build):
        path = os.path.join(self.folder, build, "bin", name)
        if not os.path.exists(path):
            run([os.path.join(ROOT, "tools", "bench", "build-peer"), self.folder, build], self.log)
        return path

    def about(self, build):
        path = os.path.join(self.folder, build, "about.txt")
        if not os.path.exists(path):
            return build
        with open(path) as file:
            return file.read().strip()

    def build_for(self, gguf, runner):
        """The build that reads this file, and why: the native one, unless a signal ends it (AMX on a virtual machine that
        has none). Tried once per file: the answer is kept beside it."""
        note = gguf + ".peer-build"
        if not os.path.exists(note):
            question = ["-m", gguf, "-p", "64", "-n", "2", "-r", "1", "-o", "json"]
            answer = ["native", "runs"]
            try:
                runner.run([self.program("llama-bench", "native"), *question])
            except Died as death:
                runner.run([self.program("llama-bench", "portable"), *question])
                answer = ["portable", f"the native build died of {death}"]
            with open(note, "w") as file:
                json.dump(answer, file)
        with open(note) as file:
            return json.load(file)

    def measure(self, case, gguf, build, threads, runner):
        """What the case's unit says, of one run after a warm-up."""
        if case.streams > 1:
            length = (case.depth + case.new) * case.streams
            answer, _ = runner.run(
                [self.program("llama-batched-bench", build), "-m", gguf, "-c", str(length), "-b", "512", "-ub", "512", "-npp", str(case.depth),
                 "-ntg", str(case.new), "-npl", str(case.streams), "-t", str(threads), "-tb", str(threads), "--output-format", "jsonl"])
            return json.loads([line for line in answer.splitlines() if line.startswith("{")][-1])["speed_tg"]
        command = [self.program("llama-bench", build), "-m", gguf, "-t", str(threads), "-r", "1", "-o", "json"]
        if case.unit == "seconds":
            return runner.run([*command, "-p", str(case.prompt), "-n", "0", "--no-warmup"])[1]
        answer, _ = runner.run([*command, "-p", str(case.prompt), "-n", str(case.new), "-d", str(case.depth)])
        return json.loads(answer)[0]["avg_ts"]


class Ours:
    """llmc, and what it knows of the machine: every figure comes with the limits measured beside it."""

    def measure(self, case, artifact, threads, runner):
        if case.unit == "seconds":
            with tempfile.NamedTemporaryFile("w", suffix=".json") as ids:
                json.dump({"sequences": [list(range(case.prompt))]}, ids)
                ids.flush()
                command = [LLMC_RUN, artifact, "--ids", ids.name, "-n", str(case.new), "--threads", str(threads)]
                return runner.run(command)[1], {}
        command = [LLMC, "bench", artifact, "-p", str(case.prompt or 16), "-n", str(case.new or 1), "--streams", str(case.streams),
                   "--depth", str(case.depth), "--threads", str(threads), "--repeat", "1", "--json"]
        answer = json.loads(runner.run(command)[0])
        phase = "decode" if case.new else "prefill"
        return answer[phase]["tokens_per_second"]["median"], answer["limits"]
