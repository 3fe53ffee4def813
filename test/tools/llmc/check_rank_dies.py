"""check_rank_dies.py ARTIFACT: kills a rank of three that answer under mpirun; the others end within 10 s, with the cause."""
import os
import pathlib
import signal
import subprocess
import sys
import time

artifact, mark = sys.argv[1], f"LLMC_RANK_DIES={os.getpid()}".encode()
# Far more tokens than there is time for.
words = ["mpirun", "-n", "3", "llmc-run", artifact, "--raw", "--prompt", "One, two, three,", "-n", "4000", "--ignore-eos", "--threads", "1"]


def ranks():
    """Process ids of the ranks that run, by rank."""
    found = {}
    for folder in pathlib.Path("/proc").iterdir():
        try:
            if not folder.name.isdigit() or (folder / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
                continue
            variables = dict(v.partition(b"=")[::2] for v in (folder / "environ").read_bytes().split(b"\0"))
        except OSError:  # it ended meanwhile, or is somebody else's
            continue
        if b"OMPI_COMM_WORLD_RANK" in variables and mark.partition(b"=")[2] == variables.get(b"LLMC_RANK_DIES"):
            found[int(variables[b"OMPI_COMM_WORLD_RANK"])] = int(folder.name)
    return found


for victim in (1, 0):
    run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "LLMC_RANK_DIES": mark.decode().partition("=")[2]})
    answer = run.stdout.read(8)  # the answer has begun
    assert len(answer) == 8, run.stderr.read()
    alive = ranks()
    assert sorted(alive) == [0, 1, 2], alive
    os.kill(alive[victim], signal.SIGKILL)
    killed = time.monotonic()
    while ranks():
        assert time.monotonic() - killed < 10, f"ranks {sorted(ranks())} run 10 s after rank {victim} was killed"
        time.sleep(0.05)
    _, said = run.communicate(timeout=10)
    assert run.returncode != 0
    assert f"process rank {victim} ".encode() in said and b"signal 9" in said, said
    print(f"rank {victim} killed, the others ended within {time.monotonic() - killed:.1f} s")
