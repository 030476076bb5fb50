"""A short description of the machine."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil

from tests.support.apache_kafka import VERSION


def describe() -> dict[str, str]:
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": cpu_model(),
        "cores": str(os.cpu_count()),
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "uvloop": version("uvloop"),
        "confluent-kafka": version("confluent-kafka"),
        "apache kafka": VERSION,
    }


class OtherLoad:
    """How much of the machine's CPU other processes use while a benchmark runs, without its own and their children."""

    def __init__(self) -> None:
        self._began = _busy_and_total()
        self._began_own = _own_seconds()

    def share(self) -> float:
        busy, total = (now - then for now, then in zip(_busy_and_total(), self._began, strict=True))
        own = _own_seconds() - self._began_own
        return max(0.0, busy - own) / total if total else 0.0


def _busy_and_total() -> tuple[float, float]:
    times = psutil.cpu_times()
    total = sum(times[:8])  # the following fields, guest time, are included in these
    return total - times.idle - getattr(times, "iowait", 0.0), total


def _own_seconds() -> float:
    """Of this process, of its children, and of those that have ended."""
    living = sum(sum(child.cpu_times()[:2]) for child in psutil.Process().children(recursive=True))
    return living + sum(os.times()[:4])


def cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
