"""Writes the README's table of families from models/*.json; with --check, fails when the README has another one.

usage: family-table.py ROOT [--check]
"""
import json
import pathlib
import sys

BEGIN, END = "<!-- families: written by tools/docs/family-table.py -->\n", "<!-- families end -->\n"


def spelled(words):
    return ", ".join(f"`{word}`" for word in words) or "-"


def served(rules):
    """Classes, or the types that stand in for them where configs name none."""
    return rules.get("architectures") or rules.get("model_types", [])


def table(root):
    paths = [path for path in (root / "models").glob("*.json") if path.name != "schema.json"]
    descriptions = {path.stem: json.loads(path.read_text()) for path in paths}
    lines = ["| family | config.json says | GGUF says | about |", "|---|---|---|---|"]
    for name, description in sorted(descriptions.items()):
        # What is only inherited from does not serve a model: architectures are a description's own.
        config, gguf = (served(description.get(source, {})) for source in ("config", "gguf"))
        if not config and not gguf:
            continue
        about = description.get("about") or f"inherits {description['inherits']}"
        lines.append(f"| [{name}](models/{name}.json) | {spelled(config)} | {spelled(gguf)} | {about} |")
    return "\n".join(lines) + "\n"


def main():
    root = pathlib.Path(sys.argv[1])
    readme = root / "README.md"
    text = readme.read_text()
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    wanted = head + BEGIN + table(root) + END + tail
    if "--check" not in sys.argv:
        readme.write_text(wanted)
    elif text != wanted:
        sys.exit("README.md: the table of families is not that of models/; run tools/docs/family-table.py .")


main()
