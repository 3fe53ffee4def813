"""Writes the README's table of families from models/*.json; with --check, fails when the README has another one.

usage: family-table.py ROOT [--check]
"""
import json
import pathlib
import sys

BEGIN, END = "<!-- families: written by tools/docs/family-table.py -->\n", "<!-- families end -->\n"


def merge(base, refinement):
    """As the loader inherits: entry by entry, null removes."""
    if not isinstance(base, dict) or not isinstance(refinement, dict):
        return refinement
    merged = dict(base)
    for key, value in refinement.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(base.get(key), value)
    return merged


def resolve(descriptions, name):
    description = descriptions[name]
    if "inherits" not in description:
        return description
    return merge(resolve(descriptions, description["inherits"]), description)


def norms(layer):
    places = [place for place, key in (("before", "pre_norms"), ("after", "post_norms")) if layer.get(key)]
    heads = {"none": "", "per_head": ", q/k per head", "whole_width": ", q/k whole width"}[layer.get("qk_norm", "none")]
    return " and ".join(places) + heads


def positions(config):
    rules = config.get("per_layer", {})
    windowed = "window" in config.get("values", {}) and "sliding" in rules
    if not windowed:
        attention = "full"
    else:
        # Either every layer that has a window, or a pattern of layers.
        attention = "window" if rules["sliding"] == [{"all": True}] else "window or full per layer"
    return attention + (", rope per layer" if "rope" in rules else "")


def table(root):
    paths = [path for path in (root / "models").glob("*.json") if path.name != "schema.json"]
    descriptions = {path.stem: json.loads(path.read_text()) for path in paths}
    lines = ["| family | config.json says | GGUF says | norms | attention |", "|---|---|---|---|---|"]
    for name in sorted(descriptions):
        # What is only inherited from does not serve a model: architectures are a description's own.
        own = {source: descriptions[name].get(source, {}).get("architectures", []) for source in ("config", "gguf")}
        if not own["config"] and not own["gguf"]:
            continue
        full = resolve(descriptions, name)
        spelled = [", ".join(f"`{word}`" for word in words) or "-" for words in own.values()]
        lines.append(
            f"| [{name}](models/{name}.json) | {' | '.join(spelled)} | {norms(full['layer'])} | {positions(full['config'])} |"
        )
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
