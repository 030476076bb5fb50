"""Points at which a test can kill a process. Without the environment variable, `reached` does nothing.

BARNABAS_PIPELINE_CRASH is `POINT TARGET FILE`, several with `;` between them. When the point is reached for the first
time in any process (FILE is created then to mark that), TARGET gets SIGKILL: `self` (the Python
process that reached it), `jvm` (the driver's or executor's Java), or a process id.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

VARIABLE: Final = "BARNABAS_PIPELINE_CRASH"

TASK_POINTS: Final = ("task-initialised", "task-marker-read", "task-produced", "task-offsets-sent", "task-committed")
TASK_BATCH_POINTS: Final = ("tasks-done",)  # in the driver, before Spark notes the batch as done
STAGE_POINTS: Final = ("staged",)
BATCH_POINTS: Final = (
    "batch-staged",
    "batch-begun",
    "batch-produced",
    "batch-offsets-sent",
    "batch-committed",
    "batch-done",
)


def _nothing(point: str) -> None:
    pass


def _kill(point: str) -> None:
    for each in os.environ[VARIABLE].split(";"):
        wanted, target, file = each.split(" ", 2)
        if wanted != point:
            continue
        try:
            Path(file).open("x").close()
        except FileExistsError:
            continue
        pid = {"self": os.getpid, "jvm": _jvm}.get(target, lambda target=target: int(target))()
        os.kill(pid, signal.SIGKILL)
        if target == "jvm":
            time.sleep(60)  # until the death of the JVM ends this process too, or its call


def _jvm() -> int:
    """The driver's own JVM is its child; that of a Python worker is the parent of the daemon that forked it."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is not None and SparkContext._active_spark_context is not None:
        return int(gateway.proc.pid)
    daemon = os.getppid()
    return int(Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1])


reached: Callable[[str], None] = _kill if os.environ.get(VARIABLE) else _nothing
