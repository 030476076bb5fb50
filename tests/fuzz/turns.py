"""How long the turns of a broker's loop are: its own process measures them, and another one reads the result.

    python -m tests.fuzz.turns FILE serve --data … --listen …

runs the command with a watch on the loop. Every few milliseconds the watch notes in FILE how much CPU time the loop's
thread has used since the last note: during a long turn the watch is not called. Only CPU time of that thread counts, so
a busy machine does not make turns long. What the loop was doing in a long turn is appended to FILE.stacks.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import struct
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

_LONGEST = struct.Struct("=d")
_SECONDS = 0.005
LONG = 0.1  # seconds


class Watch:
    def __init__(self, path: Path) -> None:
        self._map = _mapped(path)
        self._stacks = path.with_name(path.name + ".stacks")
        self._last = 0.0

    def start(self) -> None:
        watcher = threading.Thread(target=self._watch, args=(threading.get_ident(),), name="turns", daemon=True)
        self._note()
        watcher.start()

    def _note(self) -> None:
        self._last = time.thread_time()
        asyncio.get_running_loop().call_later(_SECONDS, self._look)

    def _look(self) -> None:
        now = time.thread_time()
        if now - self._last > _LONGEST.unpack_from(self._map)[0]:
            _LONGEST.pack_into(self._map, 0, now - self._last)
        self._note()

    def _watch(self, loop_thread: int) -> None:
        """Write down what the thread of the loop is doing, once in each turn that has become long."""
        clock = time.pthread_getcpuclockid(loop_thread)
        written = 0.0
        while True:
            time.sleep(LONG / 4)
            started, used = self._last, time.clock_gettime(clock)
            if used - started > LONG and started != written:
                written = started
                stack = "".join(traceback.format_stack(sys._current_frames()[loop_thread]))
                with self._stacks.open("a") as file:
                    file.write(f"--- {(used - started) * 1000:.0f} ms into a turn\n{stack}")


class LongestTurn:
    """The reader: the longest turn, in seconds, since the last call."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(_LONGEST.size))
        self._map = _mapped(path)

    def take(self) -> float:
        (longest,) = _LONGEST.unpack_from(self._map)
        _LONGEST.pack_into(self._map, 0, 0.0)
        return float(longest)


def _mapped(path: Path) -> mmap.mmap:
    descriptor = os.open(path, os.O_RDWR)
    try:
        return mmap.mmap(descriptor, _LONGEST.size)
    finally:
        os.close(descriptor)


def main() -> int:
    from barnabas.broker.broker import Broker
    from barnabas.command import main as command

    watch, start = Watch(Path(sys.argv[1])), Broker.start

    async def watched(self: Broker, *arguments: Any) -> None:
        await start(self, *arguments)
        watch.start()

    Broker.start = watched  # type: ignore[method-assign]
    return command(sys.argv[2:]) or 0


if __name__ == "__main__":
    sys.exit(main())
