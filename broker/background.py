"""Coroutines that run in the background of a part of the broker, and end with it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import structlog

log = structlog.get_logger()


class Background:
    """Starts coroutines. A failure of one is logged and costs nothing else."""

    def __init__(self, on_failure: str) -> None:
        """`on_failure` is the event that is logged for a failure."""
        self._on_failure = on_failure
        self._tasks: dict[asyncio.Task[None], None] = {}  # in the order in which they were started

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._ended)

    def cancel(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()

    async def stop(self) -> None:
        """Cancel everything, and wait until it has ended."""
        self.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            log.error(self._on_failure, exc_info=task.exception())
