"""Work that may block (syncing, deleting, scanning) runs on worker threads, and its end is reported on the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import structlog

T = TypeVar("T")
log = structlog.get_logger()


class Worker:
    def __init__(self, loop: asyncio.AbstractEventLoop, threads: int) -> None:
        self._loop = loop
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="worker")
        self._stopped = False
        self.under_way = 0  # how many jobs have been started and not reported

    def run(self, work: Callable[[], T], done: Callable[[T | Exception], None] | None = None) -> None:
        """Do `work` on a thread. `done` gets its result, or what it raised, on the loop's thread."""
        if self._stopped:
            return
        future = self._threads.submit(work)
        self.under_way += 1
        future.add_done_callback(lambda future: self._loop.call_soon_threadsafe(self._tell, future, done))

    def _tell(self, future: Future[T], done: Callable[[T | Exception], None] | None) -> None:
        self.under_way -= 1
        error = future.exception()
        if done is None:
            if error is not None:
                log.error("background work failed", exc_info=error)
            return
        outcome = future.result() if error is None else error
        if not isinstance(outcome, BaseException) or isinstance(outcome, Exception):
            done(outcome)

    async def call(self, work: Callable[[], T]) -> T:
        """Do `work` on a thread, and wait for it."""
        self.under_way += 1
        try:
            return await self._loop.run_in_executor(self._threads, work)
        finally:
            self.under_way -= 1

    async def stop(self) -> None:
        """Finish what was started, and start nothing more: the next start makes up for it."""
        self._stopped = True
        await asyncio.to_thread(self._threads.shutdown)
