"""check_interrupt.py MODEL WORK: an interrupted `llmc compile` ends with 130 and leaves no file."""
import pathlib
import shutil
import signal
import subprocess
import sys
import time

# A background job inherits that SIGINT is ignored, and so would the compiler.
signal.signal(signal.SIGINT, signal.default_int_handler)
model, work = sys.argv[1], pathlib.Path(sys.argv[2])
for number in (signal.SIGINT, signal.SIGTERM):
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    compiling = subprocess.Popen(["llmc", "compile", model, "-o", str(work / "artifact")])
    # Signals are caught as soon as there is a second thread, well before anything is written.
    while compiling.poll() is None and len(list(pathlib.Path(f"/proc/{compiling.pid}/task").iterdir())) < 2:
        time.sleep(0.001)
    compiling.send_signal(number)
    assert compiling.wait() == 130, compiling.returncode
    assert not list(work.iterdir()), list(work.iterdir())
