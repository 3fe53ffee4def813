"""The models of the suite, as files that both programs read: made once, kept in the working folder.

A model is fetched, or synthesized from a published config. `qwen3/7` is a seventh of one: a seventh of its layers and of
its vocabulary, so that every part of a step keeps its share and the long prefill before a deep measurement stays short.
"""
import json
import os
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
LLMC = os.path.join(ROOT, "build", "bin", "llmc")
PUBLISHED = os.path.join(ROOT, "test", "models", "published")
FETCHED = os.path.join(ROOT, "build", "models", "SmolLM2-135M-Instruct.Q4_1.gguf")

CONFIGS = {"qwen3": "qwen3-0.6b.json", "llama": "llama-3.2-1b.json"}
NAMES = {"smollm2": "SmolLM2-135M", "qwen3": "Qwen3-0.6B", "llama": "Llama-3.2-1B"}
# Of the file; behind a slash what llmc multiplies quantised weights with, where it is not its default.
TYPES = ("BF16", "Q8_0", "Q4_0", "Q8_0/int8", "Q4_0/int8")


def title(model):
    """How reports call a model."""
    name, _, parts = model.partition("/")
    return NAMES.get(name, name) + (f", 1/{parts} of it" if parts else "")


def run(command, log):
    """Runs a command that makes something; its output goes to `log`."""
    with open(log, "a") as file:
        file.write("+ " + " ".join(command) + "\n")
        file.flush()
        if subprocess.run(command, stdout=file, stderr=file).returncode != 0:
            raise RuntimeError(f"{' '.join(command)} failed; see {log}")


class Workshop:
    """Makes models in `folder`; `peer` is a Peer, whose llama-quantize it uses."""

    def __init__(self, folder, peer):
        self.folder, self.peer = folder, peer
        self.models = os.path.join(folder, "models")
        self.log = os.path.join(folder, "make.log")
        os.makedirs(self.models, exist_ok=True)

    def path(self, model, kind, ending):
        return os.path.join(self.models, f"{model.replace('/', '-')}.{kind.replace('/', '-')}{ending}")

    def gguf(self, model, kind):
        """The GGUF file of a model and type; a path is one already."""
        if model.endswith(".gguf"):
            return model
        kind = kind.partition("/")[0]
        target = self.path(model, kind, ".gguf")
        if os.path.exists(target):
            return target
        partial = target + ".partial"
        if kind != "BF16":
            self.quantize(self.gguf(model, "BF16"), partial, kind)
        elif model == "smollm2":
            run([os.path.join(ROOT, "tools", "steps", "fetch-model")], self.log)
            self.quantize(FETCHED, partial, "BF16", "--allow-requantize")
        else:
            self.synthesize(model, partial)
        os.rename(partial, target)
        return target

    def quantize(self, source, target, kind, *options):
        run([self.peer.program("llama-quantize", "native"), *options, source, target, kind], self.log)

    def synthesize(self, model, target):
        name, _, parts = model.partition("/")
        with open(os.path.join(PUBLISHED, CONFIGS[name])) as file:
            config = json.load(file)
        options = []
        if parts:
            config["vocab_size"] = round(config["vocab_size"] / int(parts) / 64) * 64
            options = ["--layers", str(config["num_hidden_layers"] // int(parts))]
        source, folder = self.path(model, "config", ".json"), self.path(model, "BF16", "")
        with open(source, "w") as file:
            json.dump(config, file)
        run([LLMC, "synth", source, "-o", folder, "--weights", "bf16", *options], self.log)
        run([self.python(), os.path.join(ROOT, "tools", "bench", "to-gguf"), folder, target], self.log)
        shutil.rmtree(folder)

    def python(self):
        """An interpreter that has the package gguf."""
        venv = os.path.join(self.folder, "venv")
        program = os.path.join(venv, "bin", "python")
        if not os.path.exists(os.path.join(venv, "ready")):
            run(["python3", "-m", "venv", venv], self.log)
            run([program, "-m", "pip", "install", "--quiet", "gguf==0.19.0"], self.log)
            open(os.path.join(venv, "ready"), "w").close()
        return program

    def artifact(self, model, kind, context, sequences):
        """What llmc compiles from the GGUF file, again when the compiler is newer."""
        target = os.path.join(self.models, f"{os.path.basename(self.path(model, kind, ''))}.{context}.artifact")
        manifest = os.path.join(target, "manifest.json")
        if os.path.exists(manifest) and os.path.getmtime(manifest) > os.path.getmtime(LLMC):
            return target
        run(self.compile_command(model, kind, context, sequences, target), self.log)
        return target

    def compile_command(self, model, kind, context, sequences, target):
        activations = kind.partition("/")[2]
        options = ["--activations", activations] if activations else []
        return [LLMC, "compile", self.gguf(model, kind), "-o", target, "--context", str(context), "--max-sequences", str(sequences), *options]
