"""Writes docs/operators.md from the ops' definitions; with --check, fails when the file says something else.

usage: operator-table.py ROOT [--check]
"""
import pathlib
import re
import sys

GROUPS = {
    "LlmOps.td": "What every decoder has",
    "LlmRowOps.td": "Rows, each alone",
    "LlmAttentionOps.td": "Attention",
    "LlmExpertOps.td": "Experts and heads with weights of their own",
    "LlmRecurrentOps.td": "Recurrent state",
    "LlmCollectiveOps.td": "Between ranks",
}
HEAD = """# Operators of the llm dialect

Written by `tools/docs/operator-table.py` from `dialects/llm/*.td`; a test compares. Formulas are meant in real numbers; f32 is what
activations are held in. T is the rows (tokens) of a step, H heads, C and D channels. (C1), (C2), ... are checked by the verifier.

*Reference*: the interpreter computes the op from its formula. *Kernel*: task formation lowers it for the CPU, all of it or not yet some
variants. Ops that name no kernel are refused when a model is compiled.
"""


def definitions(path):
    """(C++ class, mnemonic, text) of every op of a .td file."""
    text = path.read_text()
    starts = list(re.finditer(r"^def Llm_(\w+Op)\s*:\s*\w+<\s*\"(\w+)\"", text, re.M))
    for start, after in zip(starts, starts[1:] + [None]):
        yield start[1], start[2], text[start.start() : after.start() if after else len(text)]


def description(text):
    lines = re.search(r"let description = \[\{\n(.*?)\n\s*\}\];", text, re.S)[1].splitlines()
    margin = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join(line[margin:].rstrip() for line in lines).strip()


def attributes(text):
    """Name, type and default of every attribute among the arguments."""
    arguments = re.search(r"let arguments = \(ins (.*?)\);", text, re.S)[1]
    for kind, name in re.findall(r"((?:[\w:]+)(?:<(?:[^<>]|<[^<>]*>)*>)?):\$(\w+)", arguments):
        if "Attr" not in kind:
            continue
        default = re.search(r"DefaultValuedAttr<\w+, \"(?:\w+::)?(.*?)\"", kind)
        optional = "optional" if kind.startswith(("OptionalAttr", "UnitAttr")) else ""
        plain = re.search(r"(F32|F64|I64|Bool|Unit|DenseF32Array|Activation|Scoring|Pairing)Attr", kind)
        names = {"DenseF32Array": "list of f32", "Unit": "flag"}
        word = names.get(plain[1], plain[1].lower() if plain[1].startswith(("F", "I", "B")) else plain[1]) if plain else kind
        yield name, word, f"default {default[1].lower()}" if default else optional


def references(root):
    """Ops with a rule in the reference interpreter."""
    return set(re.findall(r"evaluate\(llm::(\w+) op", (root / "lib/reference/LlmStep.h").read_text()))


def kernels(root):
    """Op -> the variants of it without a kernel; ops that are missing have none."""
    code = (root / "passes/CheckTileForms.cpp").read_text()
    variants = {}
    for definition in re.split(r"^(?=Missing missing\()", code, flags=re.M)[1:]:
        subject = re.match(r"Missing missing\((?:llm::)?(\w+)", definition)[1]
        variants[subject] = re.findall(r"return \(?\" ([^\"]+)\"", definition)
        if "missing(op.getKv()" in definition:
            variants[subject] += variants["KvType"]
    known = set(re.findall(r"llm::(\w+Op)\b", re.search(r"TypeSwitch<Operation \*, Missing>.*?\.Default", code, re.S)[0]))
    return {op: variants.get(op, []) for op in known}


def decompositions(root):
    """Op -> the pass that rewrites it into others."""
    found = {}
    for path in sorted((root / "passes").glob("*.cpp")):
        for op in re.findall(r"OpRewritePattern<(?:llm::)?(\w+Op)>", path.read_text()):
            found[op] = path.stem
    return found


def page(root):
    reference, kernel, rewritten = references(root), kernels(root), decompositions(root)
    overview = ["| op | what it is | reference | kernel |", "|---|---|---|---|"]
    sections = []
    for name, title in GROUPS.items():
        sections.append(f"## {title}\n")
        for op, mnemonic, text in definitions(root / "dialects/llm" / name):
            summary = re.search(r"let summary = \"(.*?)\"", text)[1]
            symbol = op in ("WeightOp", "StateOp", "UseWeightOp", "UseStateOp")
            if symbol:
                computed = lowered = "-"
            else:
                computed = "yes" if op in reference else "no"
                lowered = "no"
                if op in rewritten:
                    lowered = f"through {rewritten[op]}"
                elif op in kernel:
                    lowered = "partly" if kernel[op] else "yes"
            overview.append(f"| [{mnemonic}](#llm{mnemonic}) | {summary} | {computed} | {lowered} |")
            section = [f"### `llm.{mnemonic}`\n", f"{summary[0].upper()}{summary[1:]}.\n", description(text) + "\n"]
            rows = [f"| `{attribute}` | {kind} | {note} |" for attribute, kind, note in attributes(text) if not symbol]
            if rows:
                section.append("| attribute | type | |\n|---|---|---|\n" + "\n".join(rows) + "\n")
            if not symbol:
                lacking = f" (not yet: {'; '.join(kernel[op])})" if kernel.get(op) else ""
                section.append(f"Reference: {computed}. Kernel: {lowered}{lacking}.\n")
            sections.append("\n".join(section))
    return HEAD + "\n" + "\n".join(overview) + "\n\n" + "\n".join(sections)


def main():
    root = pathlib.Path(sys.argv[1])
    path = root / "docs/operators.md"
    wanted = page(root)
    if "--check" not in sys.argv:
        path.write_text(wanted)
    elif not path.exists() or path.read_text() != wanted:
        sys.exit("docs/operators.md is not what the definitions say; run tools/docs/operator-table.py .")


main()
