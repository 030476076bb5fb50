"""What the process and its event loop use: processor time, memory, files, and how late the loop is for callbacks."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from contextlib import suppress
from typing import Final

from barnabas.broker.metrics.families import Families

_SECONDS_BETWEEN_PROBES: Final = 1.0
_PROBES: Final = 300


class Process:
    """Once a second, a callback notes how late it comes: that is how long one turn of the loop kept it waiting."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._started = time.time()
        self._lags: deque[float] = deque(maxlen=_PROBES)
        self._busy, self._looked = time.thread_time(), time.monotonic()
        self._probe: asyncio.TimerHandle | None = None
        self._due = 0.0

    def start(self) -> None:
        self._schedule()

    def stop(self) -> None:
        if self._probe is not None:
            self._probe.cancel()

    def _schedule(self) -> None:
        self._due = self._loop.time() + _SECONDS_BETWEEN_PROBES
        self._probe = self._loop.call_at(self._due, self._probed)

    def _probed(self) -> None:
        self._lags.append(max(self._loop.time() - self._due, 0.0))
        self._schedule()

    def idle(self) -> float:
        """The share of time that the loop's thread was not running since the last call."""
        busy, looked = time.thread_time(), time.monotonic()
        passed = looked - self._looked
        share = (busy - self._busy) / passed if passed > 0 else 0.0
        self._busy, self._looked = busy, looked
        return min(max(1.0 - share, 0.0), 1.0)

    def add(self, found: Families) -> None:
        idle = self.idle()
        meaning = "The share of time since the last scrape in which the event loop had nothing to do"
        found.gauge("kafka_network_socketserver_networkprocessoravgidle_percent", meaning, idle)
        found.gauge("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", meaning, idle)
        found.gauge("kafka_network_socketserver_networkprocessoravgidlepercent", meaning, idle)
        found.gauge("kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total", meaning, idle)
        lags = sorted(self._lags)
        for quantile in (0.5, 0.95, 0.99, 1.0) if lags else ():
            at = lags[min(int(quantile * len(lags)), len(lags) - 1)]
            lag = "How late the loop was for a callback, in the last five minutes"
            found.gauge("barnabas_loop_lag_seconds", lag, at, quantile=quantile)
        found.counter("process_cpu_seconds_total", "Processor time", time.process_time())
        found.gauge("process_start_time_seconds", "When the process started", self._started)
        with suppress(OSError, ValueError, IndexError, KeyError):  # only Linux has these files
            with open("/proc/self/statm", encoding="ascii") as file:
                pages = file.read().split()
            size = os.sysconf("SC_PAGE_SIZE")
            found.gauge("process_virtual_memory_bytes", "Virtual memory", int(pages[0]) * size)
            found.gauge("process_resident_memory_bytes", "Memory", int(pages[1]) * size)
            found.gauge("process_open_fds", "Open files", len(os.listdir("/proc/self/fd")))
            with open("/proc/self/io", encoding="ascii") as file:
                io = dict(line.split(": ") for line in file.read().splitlines())
            server = "kafka_server_kafkaserver_linux_disk_"
            found.gauge(f"{server}read_bytes", "Bytes that the process has had read from disks", int(io["read_bytes"]))
            found.gauge(f"{server}write_bytes", "Bytes that it has had written to disks", int(io["write_bytes"]))
