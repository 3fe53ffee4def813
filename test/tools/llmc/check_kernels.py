"""check_kernels.py FILE ARTIFACT: `llmc bench --kernels --json` lists the launched kernels of an artifact, with sane figures."""
import json
import sys

answer = json.load(open(sys.argv[1]))
entries = [entry for entry in json.load(open(sys.argv[2] + "/dispatch.json")) if not entry["kernel"].startswith("weight:")]
launched = [(entry["op"], len(entry["layers"])) for entry in entries if entry["layers"]]
assert [rows["rows"] for rows in answer["kernels"].values()] == [16, 1], answer["kernels"]
for name, phase in answer["kernels"].items():
    kernels = phase["kernels"]
    assert [(kernel["kernel"], kernel["launches"]) for kernel in kernels] == launched, kernels
    assert sum(kernel["seconds"] for kernel in kernels) < 1.5 * phase["seconds"], phase
    for kernel in kernels:
        assert kernel["seconds"] > 0 and 0 < kernel["share"] <= 1 and 0 <= kernel["waiting"] < 1, kernel
        assert kernel["bytes"] > 0 and kernel["fraction"] > 0 and kernel["limit"], kernel
    products = {kernel["kernel"]: kernel["operations"] for kernel in kernels if kernel["shape"] == "dot"}
    # Four layers of 64 x (64 + 2 * 32), 64 x 64 and 3 * 64 x 96, for each row; the head of 320 x 64 for one.
    least = 2 * (phase["rows"] * 4 * (64 * 128 + 64 * 64 + 3 * 64 * 96) + 320 * 64)
    assert least <= sum(products.values()) < 1.5 * least, (least, products)
