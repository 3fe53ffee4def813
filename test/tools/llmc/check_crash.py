"""check_crash.py TOKENIZER: a process that crashes ends with code 70, one whose file is cut with 1."""
import signal
import subprocess
import sys

for number, code, words in ((signal.SIGSEGV, 70, b"please report"), (signal.SIGABRT, 70, b"please report"),
                            (signal.SIGBUS, 1, b"was cut")):
    waiting = subprocess.Popen(["llmc", "tokenize", sys.argv[1]], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    # It reads standard input, so it is well past the start when a pipe's worth has gone.
    waiting.stdin.write(b"x" * (1 << 20))
    waiting.stdin.flush()
    waiting.send_signal(number)
    said = waiting.communicate()[1]
    assert waiting.returncode == code and said.startswith(b"error: ") and words in said, (number, waiting.returncode, said)
