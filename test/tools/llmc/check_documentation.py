"""check_documentation.py FILE: the flags that FILE lists for a command are those of `llmc COMMAND --help`."""
import pathlib
import re
import subprocess
import sys

text = pathlib.Path(sys.argv[1]).read_text()
sections = {heading: body for heading, body in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.M | re.S)}


def help_of(*words):
    return subprocess.run(["llmc", *words, "--help"], check=True, capture_output=True, text=True).stdout


def flags_of_help(words):
    lines = [line for line in help_of(*words).splitlines() if re.match(r"\s+(\[.*\]\s*)?-", line)]
    return {flag for line in lines for flag in re.findall(r"(?<!\S)--[\w-]+|(?<!\S)-\w\b", re.split(r"\s{2,}", line.strip())[0].replace(",", " "))} - {"-h", "--help"}


def flags_of_section(body):
    rows = [line.split("|")[1] for line in body.splitlines() if line.startswith("| `-")]
    flags = {flag for row in rows for flag in re.findall(r"(?<!\w)--?[a-z][\w-]*", row)}
    for heading, other in sections.items():
        link = "(#" + heading.lower().replace(" ", "-") + ")"
        if link in body and body is not other:
            flags |= flags_of_section(other)
    return flags


commands = re.findall(r"^  (\w+)\s{2,}", help_of().split("SUBCOMMANDS:")[-1].split("Subcommands:")[-1], re.M)
assert len(commands) >= 10, help_of()
wrong = []
for command in commands:
    section = sections.get(f"llmc {command}")
    if section is None:
        wrong.append(f"llmc {command} has no section")
        continue
    have, documented = flags_of_help([command]), flags_of_section(section)
    wrong += [f"llmc {command}: {flag} is not documented" for flag in sorted(have - documented)]
    wrong += [f"llmc {command}: {flag} is documented, but does not exist" for flag in sorted(documented - have)]
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
