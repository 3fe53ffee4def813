"""check_terminal.py ARTIFACT: what Ctrl-C and Ctrl-D do to `llmc chat` in a terminal."""
import os
import pty
import select
import sys
import time


class Terminal:
    def __init__(self, *command):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvp(command[0], command)
        self.text = ""

    def wait_for(self, wanted):
        """Reads until `wanted` appears in what was not waited for yet."""
        end = time.monotonic() + 60
        while wanted not in self.text:
            assert time.monotonic() < end and select.select([self.fd], [], [], 60)[0], (wanted, self.text)
            self.text += os.read(self.fd, 4096).decode(errors="replace")
        self.text = self.text.split(wanted, 1)[1]

    def type(self, text):
        os.write(self.fd, text.encode())

    def exit_code(self):
        try:
            while os.read(self.fd, 4096):
                pass
        except OSError:  # the other end is closed
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def chat():
    terminal = Terminal("llmc", "chat", sys.argv[1], "-n", "4", "--temperature", "0")
    terminal.wait_for("> ")
    return terminal


# Ctrl-C at the prompt asks first; a question in between takes it back.
terminal = chat()
terminal.type("half a line\x03")
terminal.wait_for("Ctrl-C again or Ctrl-D leaves")
terminal.wait_for("> ")
terminal.type("hi\n")
terminal.wait_for("> ")
terminal.type("\x03")
terminal.wait_for("Ctrl-C again or Ctrl-D leaves")
terminal.wait_for("> ")
terminal.type("\x03")
assert terminal.exit_code() == 0

# Ctrl-D leaves at once.
terminal = chat()
terminal.type("\x04")
assert terminal.exit_code() == 0
