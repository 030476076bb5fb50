"""A real broker in a process of its own, on a free port."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.ports import HeldPort


class BrokerProcess:
    """`barnabas serve`, ready when it is entered. Its log is kept, to be inspected or printed when a test fails."""

    def __init__(
        self, data: Path | str, *arguments: str, port: int = 0, settings: dict[str, str] | None = None
    ) -> None:
        self.data = Path(data)
        self._held = (
            HeldPort() if port == 0 else None
        )  # for when it is started again, on the port that its clients know
        port = self._held.number if self._held else port
        settings = settings or {}
        self.arguments = [
            *(() if "listeners" in settings else ("--listen", f"127.0.0.1:{port}")),
            *("--data", str(data)),
            *(f"--config={name}={value}" for name, value in settings.items()),
            *arguments,
        ]
        self.process: subprocess.Popen[str]
        self.port = port
        self.seconds_to_ready = 0.0
        self._log = tempfile.TemporaryFile("w+", prefix="barnabas-log-")  # noqa: SIM115, open as long as this object

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        position = os.lseek(self._log.fileno(), 0, os.SEEK_END)
        return os.pread(self._log.fileno(), position, 0).decode()

    def start(self) -> BrokerProcess:
        begun = time.monotonic()
        # With BARNABAS_BUILD, the broker is the one in that folder instead of the sources here.
        build = os.environ.get("BARNABAS_BUILD")
        options = ["-P"] if build else []
        self.process = subprocess.Popen(
            [sys.executable, *options, "-m", "barnabas", "serve", *self.arguments],
            env={**os.environ, "PYTHONPATH": build} if build else None,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        line = self.process.stdout.readline()
        while line.startswith(("barnabas console on ", "barnabas control on ")):  # what else it serves comes first
            line = self.process.stdout.readline()
        self.seconds_to_ready = time.monotonic() - begun
        if not line.startswith("barnabas ready on "):
            self.process.wait()
            raise RuntimeError(f"the broker did not start:\n{self.log}")
        self.port = int(line.rpartition(":")[2])
        return self

    def stop(self) -> int:
        """Stop it as a service manager would; returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self._ended(timeout=60)

    def kill(self) -> None:
        """As a crash would: kill -9."""
        self.process.kill()
        self._ended(timeout=60)

    def _ended(self, timeout: float) -> int:
        code = self.process.wait(timeout)
        self.process.stdout.close()
        return code

    def __enter__(self) -> BrokerProcess:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        if self.process.poll() is None:
            self.kill() if exc[0] else self.stop()
