"""The time from the start of `barnabas serve` to its ready line, with an empty data directory.

Besides the wall-clock time there is the broker's CPU time, which depends less on other load. Modules are already
compiled to bytecode, as in every installation: a first run, which is not counted, compiles them into a separate folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from statistics import median
from subprocess import PIPE
from typing import NamedTuple

import psutil

RUNS = 10


class Start(NamedTuple):
    """Milliseconds of one start."""

    wall: float
    processor: float


def measure(environment: dict[str, str]) -> Start:
    with tempfile.TemporaryDirectory(prefix="barnabas-") as data:
        command = [sys.executable, "-m", "barnabas", "serve", "--listen", "127.0.0.1:0", "--data", data]
        started = time.perf_counter()
        with subprocess.Popen(command, stdout=PIPE, stderr=PIPE, text=True, env=environment) as process:
            line = process.stdout.readline() if process.stdout else ""
            wall = time.perf_counter() - started
            if not line.startswith("barnabas ready on "):
                raise RuntimeError(f"the broker did not start: {process.communicate()[1]}")
            used = psutil.Process(process.pid).cpu_times()
            process.terminate()
            process.communicate()
    return Start(wall * 1000, (used.user + used.system) * 1000)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="barnabas-bytecode-") as bytecode:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        measure(environment)
        starts = [measure(environment) for _ in range(RUNS)]
    print(f"From start to the ready line, {RUNS} runs:")
    wall, processor = ([start[column] for start in starts] for column in (0, 1))
    print(f"  time on the wall  best {min(wall):4.0f} ms  median {median(wall):4.0f} ms")
    print(f"  processor time    best {min(processor):4.0f} ms  median {median(processor):4.0f} ms")


if __name__ == "__main__":
    main()
