"""check_row_blocks.py MODELS WORK: a step that is computed in two blocks of rows gives the bits of one that is not.

Of models whose rows see each other in every way there is: windows, latents, selected positions, states; and with experts and
stages. The first of four sequences lies in both blocks.
"""
import json
import pathlib
import random
import subprocess
import sys

CASES = {"jamba": ["--tensor", "2"], "deepseek-v4": ["--tensor", "2"], "deepseek-v3.2": ["--tensor", "2"], "gemma-3": ["--tensor", "3"],
         "mixtral": ["--experts", "3"], "kimi-k3-tiny": ["--tensor", "2", "--pipeline", "2"]}

models, work = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
work.mkdir(parents=True, exist_ok=True)


def llmc(*words):
    subprocess.run(["llmc", *map(str, words)], check=True, stdout=subprocess.DEVNULL)


random.seed(3)
ids = work / "ids.json"
ids.write_text(json.dumps({"sequences": [[random.randrange(5, 150) for _ in range(length)] for length in (90, 3, 70, 1)]}))
for model, grid in CASES.items():
    logits = {}
    for name, flags in (("blocks", []), ("whole", ["--without", "overlap"])):
        llmc("compile", models / model, "-o", work / name, "--weights", "f32", "--context", 256, *grid, *flags)
        llmc("logits", work / name, "--ids", ids, "-o", work / f"{name}.safetensors", *([] if "--pipeline" in grid else ["--hidden"]))
        logits[name] = (work / f"{name}.safetensors").read_bytes()
    rank = json.loads((work / "blocks" / "manifest.json").read_text())["rank"]
    assert rank["row_blocks"] == 2 and 2 * rank["rows_per_block"] <= 164, rank
    assert logits["blocks"] == logits["whole"], f"{model}: blocks of rows change bits"
