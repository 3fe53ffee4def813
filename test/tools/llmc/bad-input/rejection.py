"""What the checks of bad input share: a copy of a model to damage, and what a rejection must look like."""
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys


class Case:
    """A folder with a model in it that one check damages."""

    failures = []

    def __init__(self, work, name, model=None):
        self.name = name
        self.folder = pathlib.Path(work) / re.sub(r"\W+", "-", name)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.output = self.folder / "artifact"
        self.model = self.folder / "model"
        if model and pathlib.Path(model).is_file():
            self.model = self.folder / "model.gguf"
            shutil.copyfile(model, self.model)
        elif model:
            self.model.mkdir()
            for path in pathlib.Path(model).iterdir():
                if path.name in ("config.json", "model.safetensors"):
                    shutil.copyfile(path, self.model / path.name)

    def compile(self, *options):
        return ["llmc", "compile", self.model, "-o", self.output, *options]

    def rejects(self, words, command=None, **process):
        """The command (or a compile) ends with 1, one line of error that has all words, and leaves no file behind."""
        before = sorted(self.folder.rglob("*"))
        command = [str(word) for word in command or self.compile()]
        environment = {**os.environ, "LLMC_CACHE": str(self.folder / "cache")}
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120, env=environment, **process)
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        lines = [line for line in done.stderr.splitlines() if not line.startswith(("note: ", "warning: "))]
        missing = [word for word in words if not re.search(word, done.stderr)]
        cache = self.folder / "cache"
        left = [path for path in sorted(self.folder.rglob("*")) if path not in before and cache not in (path, *path.parents)]
        if done.returncode != 1 or len(errors) != 1 or lines != errors or missing or left:
            self.failures.append(f"{self.name}: {' '.join(command)}\n  ended with {done.returncode}, without {missing}, "
                                 f"left {[str(path) for path in left]}, said:\n  {done.stderr[:1500]}")
        return self


def finish():
    sys.exit("\n".join(Case.failures) if Case.failures else 0)


def read_header(path):
    """(header of a safetensors file, its data)."""
    content = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8:8 + size]), content[8 + size:]


def write_header(path, header, data, size=None):
    """`header` is a dictionary, or text for what a dictionary cannot say."""
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text) if size is None else size) + text + data)
