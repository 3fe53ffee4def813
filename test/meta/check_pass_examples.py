"""Runs every example of passes/Passes.td: Before, through its pass, must be After, op for op (both after cse).

usage: check_pass_examples.py ROOT LLMC_OPT
"""
import difflib
import pathlib
import re
import subprocess
import sys

ROOT, OPT = pathlib.Path(sys.argv[1]), sys.argv[2]
failures = []


def printed(text, *flags):
    """The module as llmc-opt prints it: names of values and layout no longer matter."""
    run = subprocess.run([OPT, *flags], input=text, capture_output=True, text=True)
    return run.stdout if run.returncode == 0 else None, run.stderr


def check(flag, description):
    """`Before with `OPTIONS`:` is for a pass that does nothing without."""
    if options := re.search(r"Before with `(.*?)`:", description):
        flag += "=" + options[1]
        description = description.replace(options[0], "Before:")
    snippets = re.findall(r"(Before|After):\n\s*```mlir\n(.*?)```", description, re.S)
    same = re.search(r"^\s*After: the same\.$", description, re.M)
    names = [name for name, _ in snippets]
    if names != (["Before"] if same else ["Before", "After"]):
        return f"has the snippets {names}, expected Before, and After or 'After: the same.'"
    before, error = printed(snippets[0][1], f"--{flag}", "--cse")
    if before is None:
        return f"Before does not go through the pass:\n{error}"
    after, error = printed(snippets[-1][1], "--cse")
    if after is None:
        return f"After does not parse:\n{error}"
    if before != after:
        return "Before becomes something else than After:\n" + "".join(
            difflib.unified_diff(after.splitlines(True), before.splitlines(True), "After", "what the pass makes of Before")
        )
    return None


text = (ROOT / "passes/Passes.td").read_text()
passes = list(re.finditer(r'^def \w+ : Pass<"([\w-]+)"', text, re.M))
if not passes:
    failures.append("passes/Passes.td: no pass found")
for start, end in zip(passes, [each.start() for each in passes[1:]] + [len(text)]):
    if failure := check(start[1], text[start.end() : end]):
        failures.append(f"passes/Passes.td: {start[1]}: {failure}")
print("\n".join(failures))
sys.exit(1 if failures else 0)
