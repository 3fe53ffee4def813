"""check_measured.py MANIFEST FOUND REFERENCE: the manifest holds the perplexities of these two answers."""
import json
import sys

kept = json.load(open(sys.argv[1]))["perplexity"]
found, reference = (json.load(open(path)) for path in sys.argv[2:])
assert kept["value"] == found["perplexity"], (kept, found["perplexity"])
assert kept["reference"] == reference["perplexity"], (kept, reference["perplexity"])
assert kept["tokens"] == sum(window["tokens"] for window in found["windows"]), kept
assert kept["value"] != kept["reference"], "four bits lose nothing?"
