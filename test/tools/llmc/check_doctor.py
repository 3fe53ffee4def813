"""check_doctor.py FILE: `llmc doctor --limits --json` has a figure or a reason for everything it measures."""
import json
import sys

facts = json.load(open(sys.argv[1]))
measured = facts["measured"]
names = [(entry["name"], entry["vector_bits"]) for entry in measured["instructions"]]
for name in (("fma", 256), ("fma", 512), ("vdpbf16ps", 512), ("vpdpbusd", 512), ("vpmaddubsw", 256), ("tdpbssd", 8192), ("tdpbf16ps", 8192)):
    assert name in names, names
assert [entry["level"] for entry in measured["read"]] == ["L1", "L2", "L3", "memory"], measured
for entry in measured["instructions"] + measured["read"]:
    if entry["all_threads"] is None:
        assert entry["reason"], entry
    else:
        assert 1e8 < entry["one_thread"] < 1e15 and 1e8 < entry["all_threads"] < 1e17 and "reason" not in entry, entry
advertised = set(facts["cpu"]["features"])
by_name = {entry["name"]: entry for entry in measured["instructions"]}
for name, feature in (("vdpbf16ps", "avx512_bf16"), ("vpdpbusd", "avx512_vnni"), ("tdpbssd", "amx-int8")):
    if feature not in advertised:
        assert feature in by_name[name]["reason"] or "lacks" in by_name[name]["reason"], by_name[name]
assert measured["disturbed"] == bool(measured["notes"]), measured
if facts["cpu"]["usable_cores"] > 1:
    assert measured["barrier_seconds"] > 0 and measured["two_thread_ratio"] > 0, measured
