"""Prints "PASSED FAILED" of one results file: ctest's JUnit XML, lit's JSON, or the lines of run-fuzzers."""
import json
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def outcome(case):
    """ctest calls a test "notrun" both when it skipped itself and when its program could not be started."""
    status, skipped = case.get("status"), case.find("skipped")
    if status == "notrun":
        return "skip" if skipped is not None and skipped.get("message", "").startswith("SKIP_") else "fail"
    return status


path = pathlib.Path(sys.argv[1])
text = path.read_text()
if path.suffix == ".xml":
    cases = ElementTree.fromstring(text).findall("testcase")
    outcomes = [outcome(case) for case in cases]
    passed, failed = outcomes.count("run"), outcomes.count("fail")
elif path.suffix == ".json":
    outcomes = [test["code"] for test in json.loads(text)["tests"]]
    passed = outcomes.count("PASS") + outcomes.count("XFAIL")
    failed = len(outcomes) - passed - outcomes.count("UNSUPPORTED") - outcomes.count("EXCLUDED") - outcomes.count("SKIPPED")
else:
    outcomes = [line.split()[0] for line in text.splitlines() if line.startswith(("clean ", "FINDING "))]
    passed, failed = outcomes.count("clean"), outcomes.count("FINDING")
# A runner that executed nothing has not shown anything.
print(passed, failed if outcomes else 1)
