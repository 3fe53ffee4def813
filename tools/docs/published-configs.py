"""Writes docs/published-configs.md: what llmc says of every published config in a folder of them.

usage: published-configs.py ROOT CONFIGS [--llmc build/bin/llmc]

CONFIGS has one folder per model: config.json, SOURCE.txt ("model: owner/name"), where public a *.index.json, and beside
them _oracle/*.json, the derived fields that another project checks its own reader against. The commands that took the most
processor time go to stderr.
"""
import argparse
import json
import pathlib
import re
import resource
import subprocess
import sys

# Where the published facts and ours differ for a reason; everything else that differs is a fault.
NOTES = json.loads(pathlib.Path(__file__).with_name("published-configs.json").read_text())
ORACLE_FIELDS = {"hidden_size": "hidden", "vocab_size": "vocabulary", "total_num_attention_heads": "heads",
                 "total_num_kv_heads": "kv_heads", "head_size": "head_dim", "num_experts": "experts",
                 "is_deepseek_mla": "latent_attention"}


def processorSeconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Llmc:
    def __init__(self, program):
        self.program, self.seconds = program, []

    def __call__(self, *words):
        before = processorSeconds()
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True, errors="replace")
        self.seconds.append((processorSeconds() - before, " ".join(map(str, words))))
        return done

    def json(self, *words):
        """The command's answer, or its error as text."""
        done = self(*words, "--json")
        return (json.loads(done.stdout), "") if done.returncode == 0 else (None, message(done))


def message(done):
    line = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0].removeprefix("error: ")
    return re.sub(r"\S*/(?=[^/\s]+/config\.json)", "", line).replace("|", "\\|")


def billions(count):
    return f"{count / 1e9:,.3f} B" if count >= 1e8 else f"{count / 1e6:,.3f} M"


def comparedBytes(report, folder):
    """What the index sums up against what the description adds up to."""
    index = next(folder.glob("*.index.json"), None)
    if index is None:
        return "-"
    facts = json.loads(index.read_text()).get("metadata", {})
    stated = facts.get("total_size", 0)
    if not stated:
        return "the index states no size"
    ours = report.get("stored", {}).get("bytes", report["bytes"])
    if ours == stated:
        return "equal"
    return f"{stated:,} bytes, ours {ours:,} ({ours - stated:+,})"


def comparedNames(llmc, root, report, folder):
    index = next(folder.glob("*.index.json"), None)
    if index is None:
        return "-"
    done = llmc("check-model", root / "models" / f"{report['family']}.json", "--config", folder, "--index", index)
    if done.returncode == 0:
        return "equal"
    found = [line.split(": ", 2)[-1] for line in done.stderr.strip().splitlines()]
    return f"{len(found)} differ: " + "; ".join(found[:3]) + (" …" if len(found) > 3 else "")


def comparedOracle(report, row):
    if row is None:
        return "-"
    ours = dict(report, layers=sum(kind["count"] for kind in report["layers"]))
    pairs = [("total_num_hidden_layers", "layers"), *ORACLE_FIELDS.items()]
    differ = [f"{theirs} {row[theirs]}, ours {ours[name]}" for theirs, name in pairs if row[theirs] != ours[name]]
    return "equal" if not differ else "; ".join(differ)


def coverageText(report):
    counts, missing = {}, []
    for op in report["operators"]:
        counts[op["status"]] = counts.get(op["status"], 0) + 1
        if op["status"] == "missing":
            missing.append(op["op"])
    text = ", ".join(f"{counts[status]} {status}" for status in ("native", "composed", "missing") if status in counts)
    return text + (": " + ", ".join(missing) if missing else "")


def row(llmc, root, folder, oracle):
    config = json.loads((folder / "config.json").read_text())
    name = (config.get("architectures") or [config.get("model_type", "-")])[0]
    report, fault = llmc.json("inspect", folder)
    if report is None:
        return [folder.name, name, "-", fault] + ["-"] * 6
    coverage, coverageFault = llmc.json("coverage", folder, "--target", "x86-64-v4")
    plan, planFault = llmc.json("plan", folder, "--target", "x86-64-v4")
    unknown = report["unknown_keys"]
    counts = report["parameters"]
    parameters = billions(counts["total"])
    if counts["active"] != counts["total"]:
        parameters += f", active {billions(counts['active'])}"
    return [folder.name, name, report["family"], "not understood: " + ", ".join(unknown) if unknown else "whole",
            parameters, comparedBytes(report, folder), comparedNames(llmc, root, report, folder),
            comparedOracle(report, oracle), coverageText(coverage) if coverage else coverageFault,
            f"{plan['rank'][0]['total'] / 2**30:,.2f} GiB" if plan else planFault]


def oracleRows(configs):
    """The oracle's rows by folder: those of the same repository, and of copies that NOTES names."""
    rows = {}
    for path in (configs / "_oracle").glob("*.json"):
        rows.update(json.loads(path.read_text()))
    byName = {name.lower(): fields for name, fields in rows.items()}
    found = {}
    for source in configs.glob("*/SOURCE.txt"):
        model = re.search(r"^model: (\S+)", source.read_text(), re.M)
        name = NOTES["same_model"].get(source.parent.name, model.group(1) if model else "").lower()
        if name in byName:
            found[source.parent.name] = byName[name]
    return found


def document(llmc, root, configs):
    oracle = oracleRows(configs)
    folders = sorted(path.parent for path in configs.glob("*/config.json"))
    rows = [row(llmc, root, folder, oracle.get(folder.name)) for folder in folders]
    imported = sum(cells[2] != "-" for cells in rows)
    lines = ["# Published configs", "",
             "Written by `tools/docs/published-configs.py`; the configs are those of published models, read as they are.",
             f"{len(rows)} configs of {len({cells[1] for cells in rows})} classes, {imported} imported, "
             f"{sum(cells[3] == 'whole' for cells in rows)} of them with every key understood.", "",
             "*bytes*: the tensors that the description expects, in the types that they are published in, against `total_size` of the weight index. "
             "*names*: `llmc check-model` against the names in that index. *oracle*: layers, widths, heads, experts against what another project "
             "derives. *coverage*: kinds of operators for `x86-64-v4`. *plan*: one rank, defaults of `llmc plan`.", "",
             "| config | class | description | keys | parameters | bytes | names | oracle | coverage | plan |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    lines += ["| " + " | ".join(cells) + " |" for cells in rows]
    lines += ["", "## Differences", ""]
    names = {cells[0] for cells in rows}
    lines += [f"- `{name}`: {why}" for name, why in sorted(NOTES["differences"].items()) if name in names]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("configs", type=pathlib.Path)
    parser.add_argument("--llmc", default="build/bin/llmc")
    arguments = parser.parse_args()
    llmc = Llmc(arguments.llmc)
    text = document(llmc, arguments.root, arguments.configs)
    (arguments.root / "docs" / "published-configs.md").write_text(text)
    for seconds, words in sorted(llmc.seconds, reverse=True)[:5]:
        print(f"{seconds:.2f} s: llmc {words}", file=sys.stderr)


main()
