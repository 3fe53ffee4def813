"""values.py MODEL WORK: a NaN among the weights is an error of one line, not an answer."""
import json
import pathlib
import subprocess
import sys

from rejection import Case, finish, read_header, write_header

model, work = sys.argv[1:]
header, data = read_header(pathlib.Path(model) / "model.safetensors")
NAME = "model.layers.1.mlp.down_proj.weight"
NAN = b"\xc0\x7f"  # bfloat16, as the file's weights are
begin = header[NAME]["data_offsets"][0] + 10


def damaged(name):
    case = Case(work, name, model)
    write_header(case.model / "model.safetensors", header, data[:begin] + NAN + data[begin + 2:])
    (case.folder / "ids.json").write_text('{"sequences": [[1, 2, 3]]}')
    return case


# Forms with scales see every number when they are made.
for form in ("int8", "int4"):
    case = damaged(f"NaN in {form}")
    case.rejects(["down_proj|layer 1|finite|NaN"], case.compile("--weights", form))
# The others carry it to the logits, which no sampler reads.
case = damaged("NaN as it is")
subprocess.run([str(word) for word in case.compile("--weights", "f32", "--context", "64")], check=True, capture_output=True)
done = subprocess.run(["llmc", "run", str(case.output), "--ids", str(case.folder / "ids.json"), "-n", "4"], capture_output=True,
                      text=True)
if done.returncode == 0 or "finite" not in done.stderr or done.stdout.strip():
    Case.failures.append(f"a NaN is an answer: {done}")
finish()
