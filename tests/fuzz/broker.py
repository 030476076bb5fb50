"""The broker that is fuzzed: a process of its own, whose log, memory and loop turns are monitored."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.fuzz.turns import LongestTurn
from tests.support.ports import HeldPort

# Short times, so that sessions, transactions, offsets and segments end while others are being fuzzed.
SETTINGS = {
    "auto.create.topics.enable": "true",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "50",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "500",
    "transactional.id.expiration.ms": "5000",
    "offsets.retention.check.interval.ms": "500",
    "log.retention.check.interval.ms": "1000",
    "log.cleaner.backoff.ms": "1000",
}


class BrokerUnderTest:
    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.log = folder / "broker.log"
        self.log.touch()
        self._turns = folder / "turns"
        self.longest_turn = LongestTurn(self._turns)
        self._held = HeldPort()
        self.port = self._held.number
        self._looked_at = 0  # how far into the log
        self._process: subprocess.Popen[str]

    def start(self) -> None:
        settings = [f"--config={name}={value}" for name, value in SETTINGS.items()]
        address = f"127.0.0.1:{self.port}"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.fuzz.turns", str(self._turns)),
                    *("serve", "--data", str(self.data), "--listen", address, *settings),
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line.startswith("barnabas ready on "):
            self._process.wait()
            raise RuntimeError(f"the broker did not start:\n{self.log_tail()}")

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._end(timeout=60)

    def kill(self) -> None:
        """As a crash would: kill -9."""
        if self._process.poll() is None:
            self._process.kill()
        self._end(timeout=60)

    def _end(self, timeout: float) -> None:
        self._process.wait(timeout)
        if self._process.stdout:
            self._process.stdout.close()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def check(self) -> str:
        """The findings of `barnabas check`; empty if there are none."""
        done = subprocess.run(
            [sys.executable, "-m", "barnabas", "check", str(self.data)], capture_output=True, text=True, timeout=300
        )
        return "" if done.returncode == 0 else done.stdout + done.stderr

    def memory_mb(self) -> int:
        """The peak memory of the process."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) // 1024

    def new_tracebacks(self) -> list[str]:
        """Log entries with an exception, and lines that are not log entries, since the last call."""
        with self.log.open("rb") as log:
            log.seek(self._looked_at)
            new = log.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._looked_at += len(whole)
        return [found for line in whole.decode(errors="replace").splitlines() if (found := _traceback(line))]

    def log_tail(self, lines: int = 20) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def _traceback(line: str) -> str | None:
    try:
        entry: dict[str, Any] = json.loads(line)
    except ValueError:
        return line
    if "exception" not in entry:
        return None
    rest = {name: value for name, value in entry.items() if name not in ("exception", "timestamp")}
    return f"{rest}\n{entry['exception']}"
