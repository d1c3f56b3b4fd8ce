"""A terminal for tests: a program on a pty of a chosen size, what it wrote, and what the screen shows."""
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
import time
import unicodedata

from harness import SLOW, wait_for

ESCAPE = re.compile(r"\x1b\[[?]?[0-9;]*[A-Za-z]")
ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"


def width(line):
    """The number of columns that a terminal uses for the line."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def lines(text):
    """The lines of a text without escape sequences, as a screen shows them: a carriage return
    overwrites the line."""
    return [line.rstrip("\r").rsplit("\r", 1)[-1] for line in ESCAPE.sub("", text).split("\n")]


class Terminal:
    """Start it as `with Terminal([...]) as t`; its program is killed at the end."""

    def __init__(self, args, env, columns=80, rows=24, stdout=None):
        self.master, self.slave = pty.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.slave)
        self.bytes = b""
        self.p = subprocess.Popen(args, stdin=self.slave, stdout=stdout or self.slave, stderr=self.slave, env=env,
                                  start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.p.poll() is None:
            self.p.send_signal(signal.SIGKILL)
        self.p.wait()
        os.close(self.slave)
        self.reader.join()
        os.close(self.master)

    def read(self):
        while True:
            try:
                piece = os.read(self.master, 65536)
            except OSError:
                return
            if not piece:
                return
            self.bytes += piece

    def text(self):
        return self.bytes.decode(errors="replace")

    def resize(self, columns, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys):
        os.write(self.master, keys.encode())

    def wait_for(self, what, since=0, timeout=60):
        """Waits until the text matches a regular expression after the first `since` characters;
        returns the whole text."""
        def there():
            if re.search(what, self.text()[since:]):
                return True
            if self.p.poll() is not None:
                time.sleep(0.2)  # gives the reading thread time
                return re.search(what, self.text()[since:]) or self.fail(what)
            return False
        try:
            wait_for(f"the terminal to show {what}", there, timeout)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.text()!r}") from None
        return self.text()

    def fail(self, what):
        raise AssertionError(f"ended with {self.p.returncode} without {what}\n{self.text()!r}")

    def end(self, timeout=60):
        """Waits for the end of the program and of its output; returns the exit code (negative: a
        signal)."""
        code = self.p.wait(timeout * SLOW)
        seen = -1
        while seen != len(self.bytes):
            seen = len(self.bytes)
            time.sleep(0.1)
        return code

    def is_as_before(self):
        """Checks that echo, line mode, screen and cursor are restored."""
        text = self.text()
        return (termios.tcgetattr(self.slave) == self.before and text.rfind(LEAVE) >= text.rfind(ENTER)
                and text.rfind("\x1b[?25h") >= text.rfind("\x1b[?25l"))

    def pictures(self):
        """The pictures that were drawn in place, as lists of lines."""
        return [[line for line in lines(p.replace("\r\n", "\n"))] for p in self.text().split("\x1b[H")[1:]]
