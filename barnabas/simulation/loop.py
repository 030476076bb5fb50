"""Simulated time: one queue of events, and an event loop for each process on it.

Every process of the simulation (a broker, a client) has a `ProcessLoop` of its own, and so its tasks, timers and
callbacks are its own: when it is killed, none of them runs again, not even a `finally`; when it is paused, all of them
wait. The loops share one `Scheduler`, which runs one callback at a time, in the order of time and then of arrival. A
callback takes no time by itself.
"""

from __future__ import annotations

import asyncio
import random
import sys
import warnings
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from functools import partial
from heapq import heappop, heappush
from typing import Any, Final, TypeVar

from barnabas.storage.filesystem import FileSystem

T = TypeVar("T")

# So many callbacks at one moment of simulated time: something runs in circles.
_MOST_AT_ONCE: Final = 200_000

# From so many tasks on, those that have ended are looked for and let go.
_MANY_TASKS: Final = 64

# So often a coroutine may wait for something more when it is to end.
_MOST_REFUSALS: Final = 10


class Livelock(Exception):
    """The simulated time stands still, because callbacks call for each other without end."""


class Deadlock(Exception):
    """Nothing will ever happen again, but somebody waits."""


class Handle:
    """A callback that is due at some time. The same interface as asyncio's."""

    __slots__ = ("_args", "_callback", "_context", "_is_cancelled", "_loop", "_when")

    def __init__(
        self,
        loop: ProcessLoop,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context | None,
    ) -> None:
        self._loop = loop
        self._when = when
        self._callback = callback
        self._args = args
        self._context = context
        self._is_cancelled = False

    def cancel(self) -> None:
        self._is_cancelled = True
        self._args = ()

    def cancelled(self) -> bool:
        return self._is_cancelled

    def when(self) -> float:
        return self._when


class Scheduler:
    """The time, and everything that is due."""

    def __init__(self, seed: int | str) -> None:
        self.seed = seed
        self.now = 0.0
        self.events = 0  # how many have been run
        # Called when everything that was due at one time has been done, with the loops that did something.
        self.on_instant: Callable[[dict[ProcessLoop, None]], None] | None = None
        self.on_exception: Callable[[ProcessLoop, dict[str, Any]], None] | None = None
        self.ready: deque[Handle] = deque()  # due now
        self._later: list[tuple[float, int, Handle]] = []
        self._number = 0
        self._active: dict[ProcessLoop, None] = {}
        self.loops: list[ProcessLoop] = []  # of dead processes, too: their tasks must not be collected

    def random(self, *purpose: object) -> random.Random:
        """Chance for one purpose. Purposes do not disturb each other: what one draws, no other notices."""
        return random.Random(f"{self.seed}/{'/'.join(map(str, purpose))}")

    def process(self, name: str) -> ProcessLoop:
        loop = ProcessLoop(self, name)  # type: ignore[abstract]
        self.loops.append(loop)
        return loop

    def at(self, when: float, handle: Handle) -> None:
        """Have something done at a time, after everything that is due by then already."""
        if when <= self.now:
            self.ready.append(handle)
        else:
            self._number += 1
            heappush(self._later, (when, self._number, handle))

    def run(self, until: Callable[[], bool] | None = None, end: float | None = None) -> None:
        """Run until something is true, or until a time. Raises Deadlock if neither can come."""
        before = events._get_running_loop()
        events._set_running_loop(None)
        try:
            self._run(until, end)
        finally:
            events._set_running_loop(before)

    def _run(self, until: Callable[[], bool] | None, end: float | None) -> None:
        ready, later, active = self.ready, self._later, self._active
        running: ProcessLoop | None = None
        set_running = events._set_running_loop
        at_once = 0
        while True:
            while ready:
                handle = ready.popleft()
                at_once += 1
                if at_once > _MOST_AT_ONCE:
                    raise Livelock(f"at {self.now:.3f} s, in {', '.join(loop.name for loop in active)}")
                loop = handle._loop
                if handle._is_cancelled or loop.is_dead:
                    continue
                if loop.pauses:
                    loop.held.append(handle)
                    continue
                self.events += 1
                if loop is not running:
                    running = loop
                    active[loop] = None
                    set_running(loop)
                context = handle._context
                try:
                    if context is None:
                        handle._callback(*handle._args)
                    else:
                        context.run(handle._callback, *handle._args)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:
                    loop.call_exception_handler({"message": "a callback failed", "exception": error})
            if active:
                if self.on_instant is not None:
                    self.on_instant(active)
                active.clear()
                running = None  # so that whoever is next counts as active
                if ready:
                    continue
            if until is not None and until():
                return
            while later and later[0][2]._is_cancelled:
                heappop(later)
            if end is not None and (not later or later[0][0] > end):
                self.now = max(self.now, end)
                return
            if not later:
                raise Deadlock(f"at {self.now:.3f} s")
            when, _, handle = heappop(later)
            if when > self.now:
                self.now = when
                at_once = 0
            ready.append(handle)

    def close(self) -> None:
        """Nothing runs any more. Tasks that never ended are not told so: that would run code of dead processes."""
        self.ready.clear()
        self._later.clear()
        for loop in self.loops:
            loop.kill()

    def bury(self) -> None:
        """Let go of what is left of all processes.

        Python closes coroutines before it collects them, which runs their `finally`. That must not happen in the middle
        of something else, so it happens here, when nobody is left who could notice.
        """
        running = events._get_running_loop()
        before, sys.unraisablehook = sys.unraisablehook, lambda _: None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what they begin in their last moment is never awaited
                for loop in self.loops:
                    events._set_running_loop(loop)  # what they begin must not end up in another loop
                    while loop.tasks:
                        tasks, loop.tasks = loop.tasks, {}
                        for task in tasks:
                            _end(task)
        finally:
            events._set_running_loop(running)
            sys.unraisablehook = before
        self.loops = []
        self.ready.clear()
        self._later.clear()


def _end(task: asyncio.Task[Any]) -> None:
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    coroutine = task.get_coro()
    for _ in range(_MOST_REFUSALS):
        try:
            coroutine.close()
            return
        except BaseException:  # it waits for something once more, or what it does at its end fails
            continue


class ProcessLoop(asyncio.AbstractEventLoop):
    """The event loop of one simulated process."""

    def __init__(self, scheduler: Scheduler, name: str) -> None:
        self.scheduler = scheduler
        self._ready = scheduler.ready
        self.name = name
        self.is_dead = False
        self.pauses = 0
        self.held: deque[Handle] = deque()  # what was due while this process stood still
        self.chance = scheduler.random("process", name, len(scheduler.loops))
        self.tasks: dict[asyncio.Task[Any], None] = {}  # all that run, and some that have ended
        self._many_tasks = _MANY_TASKS
        # How long work on a thread takes before it is done, and until that is heard of.
        self.work_time: Callable[[], tuple[float, float]] = lambda: (0.0005, 0.0001)
        self.file_system: FileSystem | None = None  # the machine's disk
        self._task_number = 0
        self._exception_handler: Callable[[Any, dict[str, Any]], object] | None = None

    def __repr__(self) -> str:
        return f"<ProcessLoop {self.name}>"

    # --- what happens to the process ---

    def kill(self) -> None:
        self.is_dead = True
        self.held.clear()
        for task in self.tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]

    def pause(self) -> None:
        self.pauses += 1

    def resume(self) -> None:
        self.pauses -= 1
        if not self.pauses:
            held, self.held = self.held, deque()
            self.scheduler.ready.extend(held)

    # --- asyncio's interface, as far as brokers and clients use it ---

    def time(self) -> float:
        return self.scheduler.now

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Any:
        handle = Handle(self, self.scheduler.now, callback, args, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Any:
        handle = Handle(self, when, callback, args, context)
        self.scheduler.at(when, handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Any:
        scheduler = self.scheduler
        when = scheduler.now + delay
        handle = Handle(self, when, callback, args, context)
        scheduler.at(when, handle)
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Coroutine[Any, Any, T] | Generator[Any, None, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        self._task_number += 1
        task: asyncio.Task[T] = asyncio.Task(
            coro, loop=self, name=name or f"{self.name}-{self._task_number}", context=context
        )
        self.tasks[task] = None
        if len(self.tasks) > self._many_tasks:
            self.tasks = {each: None for each in self.tasks if not each.done()}
            self._many_tasks = max(_MANY_TASKS, 2 * len(self.tasks))
        return task

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        """Do the work after a while, as a thread would, and tell of it a little later."""
        future: asyncio.Future[T] = self.create_future()

        def work() -> None:
            try:
                result: Any = func(*args)
            except BaseException as error:
                self.call_later(heard_after, settle, None, error)
            else:
                self.call_later(heard_after, settle, result, None)

        def settle(result: Any, error: BaseException | None) -> None:
            if future.cancelled():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        done_after, heard_after = self.work_time()
        self.call_later(done_after, work)
        return future

    def add_reader(self, fd: Any, callback: Callable[..., object], *args: Any) -> None:  # type: ignore[override]
        fd.set_reader(partial(callback, *args) if args else callback)

    def remove_reader(self, fd: Any) -> bool:
        return bool(fd.set_reader(None))

    def add_writer(self, fd: Any, callback: Callable[..., object], *args: Any) -> None:  # type: ignore[override]
        fd.set_writer(partial(callback, *args) if args else callback)

    def remove_writer(self, fd: Any) -> bool:
        return bool(fd.set_writer(None))

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return self.is_dead

    def get_debug(self) -> bool:
        return False

    def set_debug(self, enabled: bool) -> None:
        pass

    def set_exception_handler(self, handler: Any) -> None:
        self._exception_handler = handler

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self.is_dead:
            return
        if self._exception_handler is not None:
            self._exception_handler(self, context)
        elif self.scheduler.on_exception is not None:
            self.scheduler.on_exception(self, context)
        else:
            raise RuntimeError(context.get("message", "a callback failed")) from context.get("exception")
