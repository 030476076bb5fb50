"""How long the turns of a broker's loop are: its own process measures them, and another one reads the result.

    python -m tests.fuzz.turns FILE serve --data … --listen …

runs the command on a loop that measures each of its callbacks. That is what is called a turn here: nobody else is
served while a callback runs, and whatever one connection has sent is started in one, until its time is up. Only CPU
time of the loop's thread counts, so that a busy machine makes no turn long by keeping it waiting. Two things do make it
longer: caches that others have filled, and a virtual machine that its host does not run, where the clock goes on. A
long turn of which no stack was seen is of the second kind, or one long call of C code; the same seed again tells. FILE
holds the longest turn. What the loop was doing in a long one, and how much of it was garbage collection, by generation,
is appended to FILE.stacks.
"""

from __future__ import annotations

import asyncio
import gc
import mmap
import os
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

_LONGEST = struct.Struct("=d")
LONG = 0.02  # seconds


class Watch:
    def __init__(self, path: Path) -> None:
        self._map = _mapped(path)
        self._stacks = path.with_name(path.name + ".stacks")
        self._is_on = False
        self._started: float | None = None  # when the current turn began, in CPU time of the loop's thread
        self.seen: list[str] = []  # what it was doing, if it is not a short one
        self._collections = [0.0, 0.0, 0.0]  # seconds of each generation's garbage collections in it
        self._collecting_since = 0.0

    def start(self) -> None:
        """From the loop's own thread."""
        self._is_on = True
        gc.callbacks.append(self._on_collection)
        threading.Thread(target=self._watch, args=(threading.get_ident(),), name="turns", daemon=True).start()

    def stop(self) -> None:
        self._is_on = False

    def run(self, callback: Callable[..., object], *arguments: object) -> None:
        """Run a callback of the loop: a turn."""
        if not self._is_on:
            callback(*arguments)
            return
        started = self._started = time.thread_time()
        try:
            callback(*arguments)
        finally:
            self._started = None
            if self._is_on:
                self._ended(time.thread_time() - started, callback)

    def _ended(self, seconds: float, callback: object) -> None:
        if seconds > _LONGEST.unpack_from(self._map)[0]:
            _LONGEST.pack_into(self._map, 0, seconds)
        if seconds > LONG:
            collections = "/".join(f"{each * 1000:.0f}" for each in self._collections)
            seen = "\n".join(self.seen)
            with self._stacks.open("a") as file:
                file.write(f"--- {seconds * 1000:.0f} ms, {collections} ms of garbage collection: {callback}\n{seen}\n")
        if self.seen:
            self.seen = []
        self._collections = [0.0, 0.0, 0.0]

    def _on_collection(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._collecting_since = time.thread_time()
        else:
            self._collections[info["generation"]] += time.thread_time() - self._collecting_since

    def _watch(self, loop_thread: int) -> None:
        """Note what the thread of the loop is doing, several times in each turn that becomes long."""
        clock = time.pthread_getcpuclockid(loop_thread)
        while True:
            time.sleep(LONG / 8)
            started, seen = self._started, self.seen
            used = 0.0 if started is None else time.clock_gettime(clock) - started
            if used > LONG / 4:
                stack = traceback.format_stack(sys._current_frames()[loop_thread])
                seen.append(f"{used * 1000:.0f} ms into the turn\n{''.join(stack)}")


def watched(base: type[asyncio.AbstractEventLoop], watch: Watch) -> asyncio.AbstractEventLoop:
    """A loop of this type whose callbacks are measured."""

    class Loop(base):  # type: ignore[valid-type, misc]
        def call_soon(self, callback: Any, *arguments: Any, context: Any = None) -> Any:
            return super().call_soon(watch.run, callback, *arguments, context=context)

        def call_soon_threadsafe(self, callback: Any, *arguments: Any, context: Any = None) -> Any:
            return super().call_soon_threadsafe(watch.run, callback, *arguments, context=context)

        def call_later(self, delay: float, callback: Any, *arguments: Any, context: Any = None) -> Any:
            return super().call_later(delay, watch.run, callback, *arguments, context=context)

        def call_at(self, when: float, callback: Any, *arguments: Any, context: Any = None) -> Any:
            return super().call_at(when, watch.run, callback, *arguments, context=context)

        def add_reader(self, fd: Any, callback: Any, *arguments: Any) -> Any:
            return super().add_reader(fd, watch.run, callback, *arguments)

        def add_writer(self, fd: Any, callback: Any, *arguments: Any) -> Any:
            return super().add_writer(fd, watch.run, callback, *arguments)

    return Loop()


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
    from barnabas.command import serve

    base = type(serve._loop_factory()())
    watch, start, stop = Watch(Path(sys.argv[1])), Broker.start, Broker.stop

    async def watched_from_here(self: Broker, *arguments: Any) -> None:
        await start(self, *arguments)
        watch.start()

    async def no_longer_watched(self: Broker, *arguments: Any) -> None:
        watch.stop()  # the turns of a stop flush and close all logs, when no client is left to wait
        await stop(self, *arguments)

    Broker.start, Broker.stop = watched_from_here, no_longer_watched  # type: ignore[method-assign]
    serve._loop_factory = lambda: partial(watched, base, watch)
    return command(sys.argv[2:]) or 0


if __name__ == "__main__":
    sys.exit(main())
