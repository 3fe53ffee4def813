"""Checks what the compiler cannot: that rules which the sources promise each other hold. One line per violation."""
import fnmatch
import json
import pathlib
import re
import sys

from mirrors import WITHOUT_MIRROR

ROOT = pathlib.Path(sys.argv[1])
CODE = (".cpp", ".h", ".td", ".c")
violations = []


def sources(*folders, suffixes=CODE):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in suffixes and path.is_file():
                yield path


def report(path, message):
    violations.append(f"{path.relative_to(ROOT)}: {message}")


def definitions(text):
    """Every op of a .td file: (C++ class, mnemonic, description)."""
    starts = list(re.finditer(r"^def (?:Llm|Tile)_(\w+Op)\s*:\s*\w+<\s*\"(\w+)\"", text, re.M))
    for start, after in zip(starts, starts[1:] + [None]):
        yield start[1], start[2], text[start.start() : after.start() if after else len(text)]


def verifier(code, op):
    """The verifiers of an op, with the helpers (verifyX) that they and these call."""
    bodies = dict(re.findall(r"^(?:static )?LogicalResult ((?:\w+::)*\w+)\((.*?)^}", code, re.M | re.S))
    text = "".join(body for name, body in bodies.items() if name.startswith(op + "::"))
    known = set()
    while new := set(re.findall(r"\b(verify\w+)\(", text)) - known:
        known |= new
        text += "".join(body for name, body in bodies.items() if name.split("::")[-1] in new)
    return text


def check_ops():
    """Each numbered constraint is checked and has a failing test; each example is a line of the round trip."""
    for dialect in ("llm", "tile"):
        folder = ROOT / "dialects" / dialect
        tests = ROOT / "test" / "dialects" / dialect
        code = "".join(path.read_text() for path in sorted(folder.glob("*.cpp")))
        round_trip = {line.strip() for line in (tests / "ops.mlir").read_text().splitlines()}
        for path in sorted(folder.glob("*.td")):
            for op, mnemonic, text in definitions(path.read_text()):
                if "let summary" not in text:
                    report(path, f"{op} has no summary")
                invalid = tests / f"{mnemonic.replace('_', '-')}-invalid.mlir"
                failing = invalid.read_text() if invalid.exists() else ""
                for number in re.findall(r"\(C(\d+)\)", text):
                    if not re.search(rf"// C{number}\b", verifier(code, op)):
                        report(path, f"{op}: no verifier checks C{number}")
                    if not re.search(rf"@{mnemonic}_c{number}\b", failing):
                        report(path, f"{op}: no test @{mnemonic}_c{number} in {invalid.name}")
                examples = re.findall(r"```mlir\n(.*?)```", text, re.S)
                if not examples:
                    report(path, f"{op} has no example")
                for line in "".join(examples).splitlines():
                    if line.strip() not in round_trip:
                        report(path, f"{op}: the example line '{line.strip()}' is not in ops.mlir")


def check_runtime():
    for path in sources("runtime"):
        for include in re.findall(r'#include\s*[<"]((?:llvm|mlir|dialects|passes|lib)/[^>"]*)', path.read_text()):
            report(path, f"includes {include}; the runtime sees no compiler")


def check_tests():
    for path in sources("test", suffixes=(".mlir", ".test")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(r"//\s*CHECK(-[A-Z]+)*(?![A-Z0-9-]*(\{LITERAL\})?:)\b(?!-)", line):
                report(path, f"line {number}: a CHECK without a colon checks nothing")


def mirrors(path):
    """Where a source's own test may lie."""
    folder = ROOT / "test" / path.parent.relative_to(ROOT)
    kebab = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", path.stem).lower()
    return [folder / f"{path.stem}Test.cpp", folder / f"{kebab}.mlir", folder / f"{kebab}.test", folder / kebab]


def check_mirrors():
    used = set()
    for path in sources("dialects", "passes", "lib", "runtime", "tools", suffixes=(".cpp", ".c")):
        name = str(path.relative_to(ROOT))
        # A pattern's * stays in its folder, except for dialects/, whose tests are counted per op.
        matching = {
            pattern
            for pattern in WITHOUT_MIRROR
            if fnmatch.fnmatchcase(name, pattern) and (pattern.count("/") == name.count("/") or pattern.startswith("dialects"))
        }
        used |= matching
        if not matching and not any(mirror.exists() for mirror in mirrors(path)):
            report(path, f"has no test {mirrors(path)[0].relative_to(ROOT)}; write one, or say in test/meta/mirrors.py what tests it")
    for pattern, (test, _) in WITHOUT_MIRROR.items():
        if pattern not in used:
            report(ROOT / "test/meta/mirrors.py", f"'{pattern}' matches no source")
        if not (ROOT / test).exists():
            report(ROOT / "test/meta/mirrors.py", f"'{pattern}' names the test {test}, which does not exist")


def check_passes():
    """One stem, four spellings: the definition, the file, the flag, the test."""
    text = (ROOT / "passes/Passes.td").read_text()
    for name, flag in re.findall(r'^def (\w+)Pass : Pass<"([\w-]+)"', text, re.M):
        kebab = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
        if flag != f"llmc-{kebab}":
            report(ROOT / "passes/Passes.td", f"{name} has the flag --{flag}, expected --llmc-{kebab}")
        if not (ROOT / "passes" / f"{name}.cpp").exists():
            report(ROOT / "passes/Passes.td", f"{name} has no file passes/{name}.cpp")
        tests = ROOT / "test/passes"
        if not (tests / f"{kebab}.mlir").exists() and not (tests / kebab).is_dir():
            report(ROOT / "passes/Passes.td", f"{name} has no test test/passes/{kebab}.mlir")


def check_pitfalls():
    """Every test and case that the table of import faults names is there."""
    page = ROOT / "docs/import-pitfalls.md"
    files = {}
    for path in (ROOT / "test").rglob("*"):
        files.setdefault(path.name, []).append(path)
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if not line.startswith("| "):
            continue
        for name, cases in re.findall(r"`([\w/.-]+)`(?:: ((?:[A-Z]\w+)(?:, [A-Z]\w+)*))?", line.split("|")[3]):
            found = [p for p in files.get(name.split("/")[-1], []) if p.as_posix().endswith("/" + name)]
            if not found and (ROOT / name).exists():
                continue
            if "Test.cpp" not in name and ".test" not in name:
                continue
            if len(found) != 1:
                report(page, f"line {number}: there are {len(found)} files '{name}' under test/")
                continue
            for case in filter(None, cases.split(", ")):
                if not re.search(rf"TEST(?:_[FP])?\(\w+, {case}\)", found[0].read_text()):
                    report(page, f"line {number}: {name} has no case '{case}'")


def check_openings():
    """A file opens with what is here."""
    for path in sources("dialects", "passes", "lib", "runtime", "tools", "test", suffixes=(".h", ".td")):
        if not path.read_text().startswith(("//", "/*")):
            report(path, "does not open with a comment that says what is here")


def check_sizes():
    for path in sources("dialects", "passes", "lib", "runtime", "tools", "test", suffixes=CODE + (".py", ".mlir")):
        lines = path.read_text().splitlines()
        opening = " ".join(lines[:6])
        if len(lines) > 1000 or (len(lines) > 600 and "one file" not in opening):
            report(path, f"has {len(lines)} lines, at most 600; split it by concern or say why it is one file")


# Families whose names are words of a compiler too.
COMMON_WORDS = {"codegen", "opt"}


def check_names():
    names = set()
    for path in sources("models", suffixes=(".json",)):
        if json.loads(path.read_text()).get("config", {}).get("architectures"):
            names.add(path.stem.lower())
    names -= COMMON_WORDS
    for path in sources("dialects", "passes", "lib", "runtime", "tools"):
        # Comments may compare with other projects; a name before a digit is a scaling's or a format's.
        text = re.sub(r"//.*", "", path.read_text().lower())
        for name in sorted(names):
            if re.search(rf"(?<![a-z]){re.escape(name)}(?![a-z0-9])", text):
                report(path, f"names the model family '{name}', which belongs into models/")


for check in (check_ops, check_passes, check_runtime, check_tests, check_mirrors, check_openings, check_sizes, check_names,
              check_pitfalls):
    check()
print("\n".join(violations))
sys.exit(1 if violations else 0)
