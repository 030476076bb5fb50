"""What code takes from the machine without being asked: random bytes, threads, clocks. In a simulation it all comes
from the seed.

Brokers get their clock, network, disk and registry handed in. What remains is small, and spread over code that should
not have to think of it; it is replaced here, in one list, as long as a simulation runs. The garbage collector does not
run meanwhile: it would come at moments that depend on the machine. It comes once, when the run is over.
"""

from __future__ import annotations

import asyncio
import gc
import mmap
import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

from barnabas.broker.replica import compaction, worker
from barnabas.broker.server import connection, freeing, pieces
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.simulation.disk import Mount
from barnabas.simulation.loop import ProcessLoop, Scheduler
from barnabas.storage import log_directory, open_files
from barnabas.storage.cleaner.cleaner import Cleaner, CleanerConfig
from barnabas.storage.cleaner.work import here
from barnabas.storage.log import Log

T = TypeVar("T")


class SimulatedThreads:
    """In place of a ThreadPoolExecutor: the process's loop does the work after a while."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        self._loop = asyncio.get_running_loop()

    def submit(self, work: Callable[..., T], *args: Any) -> Future[T]:
        future: Future[T] = Future()

        def told(done: asyncio.Future[T]) -> None:
            error = done.exception()
            if error is None:
                future.set_result(done.result())
            else:
                future.set_exception(error)

        self._loop.run_in_executor(None, work, *args).add_done_callback(told)
        return future

    def shutdown(self, wait: bool = True) -> None:
        pass


class _AtOnce:
    """In place of a ThreadPoolExecutor that its caller waits for."""

    def __init__(self, *args: object) -> None:
        pass

    def __enter__(self) -> _AtOnce:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def map(self, work: Callable[[Any], T], items: Iterable[Any]) -> list[T]:
        return [work(item) for item in items]


def _cleaner(logs: Mapping[TopicPartition, Log], config: CleanerConfig) -> Cleaner:
    """Compaction in this process and on this machine's disk, not in a child on the real one."""
    loop = asyncio.get_running_loop()
    return Cleaner(logs, config, loop.file_system if isinstance(loop, ProcessLoop) else None, here)


def _lock_directory(folder: str) -> int:
    """No lock: a process of the simulation that dies could not release it. Machines run one process at a time."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ProcessLoop)
    assert isinstance(loop.file_system, Mount)
    return loop.file_system.lock()


class _Unmapped:
    """Stands in for the module `mmap`: a dead process would keep what it has mapped, and a descriptor with it."""

    PROT_READ = mmap.PROT_READ

    @staticmethod
    def mmap(fd: int, length: int, prot: int) -> bytes:
        return os.pread(fd, os.fstat(fd).st_size, 0)


def _replacements(scheduler: Scheduler) -> list[tuple[Any, str, object]]:
    steps = 0

    def steps_taken() -> float:
        """A clock that counts how often it is read: work in pieces is cut into the same pieces each time."""
        nonlocal steps
        steps += 1
        return steps * 0.00001

    outside = scheduler.random("outside of processes")

    def urandom(size: int) -> bytes:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return outside.randbytes(size)
        return loop.chance.randbytes(size) if isinstance(loop, ProcessLoop) else outside.randbytes(size)

    return [
        (os, "urandom", urandom),
        (pieces, "perf_counter", steps_taken),
        (freeing, "perf_counter", steps_taken),
        (connection, "perf_counter", steps_taken),
        (connection, "send_file", connection.send_file_copying),  # a simulated socket has no descriptor
        (worker, "ThreadPoolExecutor", SimulatedThreads),
        (log_directory, "ThreadPoolExecutor", _AtOnce),
        (log_directory, "lock_directory", _lock_directory),
        (compaction, "Cleaner", _cleaner),
        (open_files, "mmap", _Unmapped),
    ]


@contextmanager
def determinism(scheduler: Scheduler) -> Iterator[None]:
    """Within this, everything comes from the scheduler's seed."""
    state = random.getstate()
    random.seed(f"{scheduler.seed}/module random")
    replaced = [(owner, name, getattr(owner, name), value) for owner, name, value in _replacements(scheduler)]
    for owner, name, _, value in replaced:
        setattr(owner, name, value)
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        for owner, name, before, _ in replaced:
            setattr(owner, name, before)
        random.setstate(state)
        if collecting:
            gc.enable()


@contextmanager
def leaving_nothing() -> Iterator[None]:
    """What a run within leaves behind is collected at its end, and nothing else is looked at for that."""
    collecting = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        gc.collect()
        gc.unfreeze()
        if collecting:
            gc.enable()
