"""A program on its own terminal: what is typed into it, and what it shows."""

from __future__ import annotations

import os
import pty
import select
import signal
import time


class Terminal:
    """The program ends with the block. What it shows is kept, and is in the message when something does not appear."""

    def __init__(self, *command: str, environment: dict[str, str]) -> None:
        self._command = command
        self._environment = environment
        self.shown = ""

    def __enter__(self) -> Terminal:
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.execvpe(self._command[0], self._command, self._environment)
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._terminal)

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def wait_for(self, text: str, seconds: float = 60) -> None:
        """Wait until it shows this text, after what the last wait found."""
        end = time.monotonic() + seconds
        while text not in self.shown:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._terminal], [], [], left)[0]:
                raise AssertionError(f"{text!r} did not appear in {self.shown!r}")
            self.shown += os.read(self._terminal, 65536).decode(errors="replace")
        self.shown = self.shown.partition(text)[2]
