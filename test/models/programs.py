"""programs.py FOLDER WORK: the executors and the programs of every target for the model in FOLDER, against golden data.

Float32 of both interpreters and of each target within golden.py's bounds, recurrent states within those of the reference; other
forms by the KL divergence from the interpreter of the same tasks, and bfloat16 by that from the golden data; greedy ids equal;
and the same bits however the tokens are fed.
"""
import filecmp
import json
import pathlib
import re
import shutil
import sys

from golden import DIVERGENCE_BOUND, compare_distributions, compare_values, divergence, read_tensors, run

# Of the choices of all routers for all positions; Kimi K3's own reference counts 9 of 384 with bfloat16 everywhere.
OTHER_CHOICES = 0.025
# Sums over all positions.
STATE_BOUND = 2e-4
# Whole, as decode does, and in chunks that divide neither sequence; each number of threads with more than one chunk.
WAYS_TO_RUN = [["--threads", "1"], ["--threads", "2", "--chunk", "1"], ["--threads", "3", "--chunk", "5", "--batch", "separate"],
               ["--threads", "2", "--chunk", "16"], ["--threads", "3"], ["--threads", "1", "--chunk", "5"]]


def other_choices(expected, actual):
    """({sequence: first position}, part of all) of the choices in which a router takes other experts than `expected`: rounding
    does that where it hesitates, and from there on the sequence is another one. Hence later layers at that position and behind
    it do not count: one hesitation is counted once."""
    first, different, choices = {}, 0, 0
    for name in sorted(actual, key=lambda name: [int(part) for part in re.findall(r"\.(\d+)", name)]):
        if match := re.fullmatch(r"record\.(\d+)\.\d+\.moe\.chosen", name):
            (length, width), numbers = actual[name]
            number = int(match[1])
            follows = first.get(number, length)
            choices += length
            for row in range(length):
                part = slice(row * width, (row + 1) * width)
                if sorted(numbers[part]) != sorted(expected[name][1][part]):
                    different += row < follows
                    first[number] = min(row, first.get(number, row))
    return first, different / choices


def compare_average(where, expected, actual, first):
    """The mean over what lies before the position that `first` has for a sequence: most of the positions."""
    found, positions = [], 0
    for number, sequence in enumerate("ab"):
        (length, width), values = expected[f"{sequence}.logits"]
        positions += length
        for row in range(first.get(number, length)):
            part = slice(row * width, (row + 1) * width)
            found.append(divergence(values[part], actual[f"logits.{number}"][1][part]))
    assert len(found) >= positions / 4, f"{where}: experts are those of the golden data for {len(found)} of {positions} positions"
    mean = sum(found) / len(found)
    return [] if mean <= DIVERGENCE_BOUND else [f"{where}: logits diverge by {mean:.3g} nats on average, at most {DIVERGENCE_BOUND}"]


def compare_decided(where, references, actual, near):
    """Each row with the nearest of the references, but for those of `near`, where a router hesitates."""
    differences = []
    for number, sequence in enumerate("ab"):
        length, width = references[0][f"{sequence}.logits"][0]
        for row in set(range(length)) - set(near.get(sequence, [])):
            part = slice(row * width, (row + 1) * width)
            found = min(divergence(reference[f"{sequence}.logits"][1][part], actual[f"logits.{number}"][1][part]) for reference in references)
            if not found <= DIVERGENCE_BOUND:
                differences.append(f"{where}: logits.{number} at position {row} diverge by {found:.3g} nats, at most {DIVERGENCE_BOUND}")
    return differences


def compare_states(where, expected, actual):
    """Recurrent states after the last token, against those of the reference, which keeps them in float64."""
    differences = []
    for name, (_, values) in actual.items():
        if not name.startswith("state."):
            continue
        bound = STATE_BOUND * max(map(abs, expected[name][1]))
        for at, (x, y) in enumerate(zip(values, expected[name][1], strict=True)):
            if not abs(x - y) <= bound:
                differences.append(f"{where}: {name} at {at} is {x}, expected {y} +- {bound:.3g}")
                break
    return differences


def targets():
    """(name, options) of every target, those first that this machine runs; the others are emulated, and so is the widest."""
    known = json.loads(run("llmc", "doctor", "--json"))["targets"]
    ways = [(target["name"], ["--target", target["name"]] + ([] if target["runs_here"] else ["--emulate"])) for target in known]
    widest = known[-1]["name"]
    ways.append((widest, ["--target", widest, "--emulate"]))
    return sorted((way for at, way in enumerate(ways) if way not in ways[:at]), key=lambda way: "--emulate" in way[1])


def same_files(one, other):
    names = sorted(path.name for path in one.iterdir())
    return filecmp.cmpfiles(one, other, names, shallow=False)[0] == names


class Check:
    """One model against its golden data; every artifact is compiled once."""

    def __init__(self, folder, work):
        self.folder, self.work, self.family = folder, work, folder.name
        self.golden = read_tensors(folder / "golden.safetensors")
        self.model = folder / "model.gguf" if (folder / "model.gguf").exists() else folder
        facts = json.loads((folder / "golden.json").read_text()) if (folder / "golden.json").exists() else {}
        self.first = facts.get("first_hidden", 0)
        # Where golden.json says so, rounding alone goes beyond the bounds: there the mean over all positions is compared.
        self.rounding = "rounding" in facts
        # Positions where a program may take other experts than every interpreter.
        self.near_choices = facts.get("near_choices", {})
        sequences = [list(self.golden[f"{sequence}.input_ids"][1]) for sequence in "ab"]
        (work / "both.json").write_text(json.dumps({"sequences": sequences}))
        (work / "first.json").write_text(json.dumps({"sequences": sequences[:1]}))
        routed = json.loads(run("llmc", "inspect", self.model, "--json"))["experts"] > 0
        self.records = ["--record", "*.moe.chosen"] if routed else []
        self.reference = self.interpreted("f32", "reference", "--hidden", "--state", *self.records)
        self.differences = []
        self.targets = targets()
        self.programs_of = {}
        self.number = sorted(path.parent.name for path in folder.parent.glob("*/golden.safetensors")).index(folder.name)

    def different_programs(self, form):
        """Options of every target whose program for this form is another one: some differ in their names alone."""
        native, known = {target for target, options in self.targets if "--emulate" not in options}, {}
        for target, options in self.targets:
            dumps = self.work / "dumps"
            run("llmc", "compile", self.model, "--weights", form, "--target", target, "--stop-after", "memory", "--dump-phases", dumps)
            (lowered,) = dumps.glob("*-memory.mlir")
            # The expansions of what this machine has are a program of their own.
            expanded = "--emulate" in options and target in native
            known.setdefault((lowered.read_text().replace(target, "TARGET"), expanded), options)
        return list(known.values())

    def programs(self, form):
        """What to compile for: with float32 and bfloat16 every target, with codes one that runs here, and with the next family the
        next one."""
        if form not in self.programs_of:
            native = [options for _, options in self.targets if "--emulate" not in options]
            of_codes = [native[self.number % len(native)]]
            self.programs_of[form] = self.different_programs(form) if form in ("f32", "bf16") else of_codes
        return self.programs_of[form]

    def native(self, form):
        return [options for options in self.programs(form) if "--emulate" not in options]

    def artifact(self, form, options):
        path = self.work / " ".join([form, *options])
        if not path.exists():
            run("llmc", "compile", self.model, "--weights", form, *options, "-o", path)
        return path

    def logits_file(self, model, *options):
        out = self.work / "out.safetensors"
        run("llmc", "logits", model, "--ids", self.work / "both.json", "-o", out, *options)
        return out

    def logits(self, model, *options):
        return read_tensors(self.logits_file(model, *options))

    def interpreted(self, form, executor, *options):
        return self.logits(self.model, "--weights", form, "--executor", executor, *options)

    def check_values(self):
        """float32: both interpreters and the programs of all targets, hidden and recurrent states included."""
        computed = {"reference": self.reference, "tile": self.interpreted("f32", "tile", "--hidden", "--state")}
        for options in self.programs("f32"):
            computed[" ".join(options)] = self.logits(self.artifact("f32", options), "--hidden", "--state")
        for name, actual in computed.items():
            self.differences += compare_values(f"{self.family} {name}", self.golden, actual, self.first)
            if name != "reference":
                self.differences += compare_states(f"{self.family} {name}", self.reference, actual)

    def check_rounding(self, where, interpreted):
        """bfloat16 as interpreted against the golden data."""
        if not self.records and not self.rounding:
            self.differences += compare_distributions(where, [self.golden], interpreted)
            return
        first, other = other_choices(self.reference, interpreted) if self.records else ({}, 0)
        if other > OTHER_CHOICES and not self.rounding:
            self.differences.append(f"{where}: {other:.3g} of the choices of experts differ, at most {OTHER_CHOICES}")
        self.differences += compare_average(where, self.golden, interpreted, first)

    def check_distributions(self):
        """The programs of every form against the interpreter of the same tasks, and that against the golden data in bfloat16."""
        for form in ("bf16", "stored", "int8", "int4"):
            programs, rounds = self.programs(form), form == "bf16"
            if form == "stored" and same_files(self.artifact(form, programs[0]), self.artifact("bf16", programs[0])):
                continue
            references = {}
            for options in programs:
                interpreted = self.interpreted(form, "tile", *options[:2], *(self.records if rounds else []))
                references[tuple(options)] = {f"{sequence}.logits": interpreted[f"logits.{number}"] for number, sequence in enumerate("ab")}
                if rounds:
                    self.check_rounding(f"{self.family} {form} {' '.join(options)} tile", interpreted)
            for options, reference in references.items():
                # Sums in another order are rounded otherwise: a router that hesitates may decide as for another target or unrounded.
                either = [*references.values(), self.golden] if rounds and self.records else [reference]
                actual = self.logits(self.artifact(form, options))
                where = f"{self.family} {form} {' '.join(options)}"
                self.differences += (compare_decided(where, either, actual, self.near_choices) if rounds and self.near_choices
                                     else compare_distributions(where, either, actual))

    def check_greedy(self):
        expected = list(self.golden["a.greedy"][1])
        answer = json.loads(run("llmc-run", self.artifact("f32", self.native("f32")[-1]), "--ids", self.work / "first.json", "-n", len(expected),
                                "--ignore-eos", "--json"))
        tokens = answer["sequences"][0]["ids"]
        assert len(tokens) == len(expected), answer
        for step, (token, wanted) in enumerate(zip(tokens, expected)):
            if token != wanted:
                margin = self.golden["a.greedy_margin"][1][step]
                self.differences.append(
                    f"{self.family} greedy: token {step} is {token}, expected {wanted} with a margin of {margin:.3g}")
                break

    def check_invariance(self):
        """How the tokens are fed changes no bit of logits, hidden and recurrent states, whatever the weights."""
        for form in ("f32", "bf16", "int8", "int4"):
            expected, program = None, self.artifact(form, self.native(form)[-1])
            for way in WAYS_TO_RUN:
                actual = self.logits_file(program, "--hidden", "--state", *way).read_bytes()
                expected = expected or actual
                if actual != expected:
                    at = next(i for i, (x, y) in enumerate(zip(expected, actual)) if x != y)
                    self.differences.append(f"{self.family} {form} {' '.join(way)}: differs from {' '.join(WAYS_TO_RUN[0])} "
                                            f"from byte {at} of {len(expected)} on")
                    break


def main(folder, work):
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    check = Check(folder, work)
    check.check_values()
    check.check_distributions()
    check.check_greedy()
    check.check_invariance()
    sys.exit("\n".join(check.differences) if check.differences else 0)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
