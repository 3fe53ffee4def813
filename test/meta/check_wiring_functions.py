"""Checks that docs/adding-a-model.md lists the functions of lib/importer with their parameters. One line per difference."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
page = (root / "docs/adding-a-model.md").read_text()
listed = set(re.findall(r"`([a-z_0-9]+\([^`]*\))`", page))
names = {signature.split("(")[0] for signature in listed} | set(re.findall(r"`([a-z_0-9]+)`", page))
missing = []
code = "".join(path.read_text() for path in sorted((root / "lib/importer").glob("Graph*.cpp")))
rules = re.findall(r'\{"(\w+)",\s*\{\{((?:\s*"[\w?.]+",?)+)\},\s*\w+\}\}', code)
for name, parameters in rules:
    words = re.findall(r'"([^"]+)"', parameters)
    signature = f"{name}({', '.join(words)})"
    if signature not in listed and name != "concat":
        missing.append(signature)
scalars = (root / "lib/importer/Scalar.cpp").read_text()
functions = re.findall(r'number\("(\w+)", \d\)', scalars) + re.findall(r'\{"(\w+)", \{\d, ', scalars)
missing += [name for name in functions if name not in names]
if len(rules) < 20 or len(functions) < 10:
    missing.append(f"only {len(rules)} functions of rows and {len(functions)} of numbers were found in the sources")
print("\n".join(f"docs/adding-a-model.md: has no {signature}" for signature in missing))
sys.exit(1 if missing else 0)
