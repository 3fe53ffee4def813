"""check_memory_plan.py FILE: the arena in `llmc inspect ARTIFACT --json` is free of conflicts and as small as it says."""
import itertools
import json
import sys

answer = json.load(open(sys.argv[1]))
arena = answer["memory"]["arena"]
top = total = least = 0
for function in arena["functions"]:
    buffers = function["buffers"]
    for a, b in itertools.combinations(buffers, 2):
        together = a["first"] <= b["last"] and b["first"] <= a["last"]
        apart = a["offset"] + a["bytes"] <= b["offset"] or b["offset"] + b["bytes"] <= a["offset"]
        assert apart or not together, (function["function"], a, b)
    for step in range(function["steps"]):
        least = max(least, sum(b["bytes"] for b in buffers if b["first"] <= step <= b["last"]))
    total += sum(b["bytes"] for b in buffers)
    top = max([top] + [b["offset"] + b["bytes"] for b in buffers])
assert top == arena["bytes_per_row"], (top, arena["bytes_per_row"])
assert total == arena["unshared_bytes_per_row"], (total, arena["unshared_bytes_per_row"])
# Of one function; what a layer takes comes on top where it is called.
assert least <= arena["least_bytes_per_row"] <= top < total, (least, arena)
assert top == arena["least_bytes_per_row"], "a better plan exists, perhaps"
assert answer["arena_bytes"] == -(-top * answer["max_tokens"] // 64) * 64, answer["arena_bytes"]
# A layer lies behind what its caller holds while it runs.
step = next(function for function in arena["functions"] if function["function"] == "step")
for function in arena["functions"]:
    # Buffers that a layer is given are alive at its call.
    held = [b for b in step["buffers"] if function["function"] in (b["writer"], b["last_user"])]
    for inner, outer in itertools.product(function["buffers"] if function is not step else [], held):
        assert inner["offset"] >= outer["offset"] + outer["bytes"], (function["function"], inner, outer)
