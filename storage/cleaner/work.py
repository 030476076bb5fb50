"""Where the work of a compaction is done: on the thread that asks for it, or in a process of its own.

In pure Python the work keeps the interpreter busy: on a thread beside the broker's it cost the broker most of its
requests, in a process of its own nothing but what the machine has to share. That process ends with the broker's: it
notices when the pipe that it got its plan from is closed.

    here      on whatever thread asks; for tests, and where there can be no other process
    in_child  in another process
"""

import contextlib
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Final, Protocol

from storage.cleaner.pace import Pace
from storage.cleaner.plan import CleaningPlan
from storage.cleaner.rewrite import CleanedSegment, CleaningStats, clean
from storage.errors import CleaningAborted
from storage.file_names import CLEANED
from storage.filesystem import FileSystem

# Clients come first.
_LOWER_PRIORITY: Final = 10


class Work(Protocol):
    """What compacts a log according to a plan."""

    def next(self) -> CleanedSegment | CleaningStats:
        """Do the next part. It takes long; any thread will do, one at a time. The last part are the statistics."""

    def stop(self) -> None:
        """Let the part that is being done end soon, with CleaningAborted. On any thread."""


StartWork = Callable[[CleaningPlan, float, FileSystem], Work]


def here(plan: CleaningPlan, bytes_per_second: float, file_system: FileSystem) -> Work:
    return _WorkHere(plan, bytes_per_second, file_system)


def in_child(plan: CleaningPlan, bytes_per_second: float, file_system: FileSystem) -> Work:
    """The file system is the real one: no other can be in two processes."""
    return _WorkInChild(plan, bytes_per_second)


class _WorkHere:
    def __init__(self, plan: CleaningPlan, bytes_per_second: float, file_system: FileSystem) -> None:
        self._stop = threading.Event()
        self._parts = clean(plan, Pace(bytes_per_second, self._stop), file_system)

    def next(self) -> CleanedSegment | CleaningStats:
        return next(self._parts)

    def stop(self) -> None:
        self._stop.set()


class _WorkInChild:
    def __init__(self, plan: CleaningPlan, bytes_per_second: float) -> None:
        self._plan = plan
        self._bytes_per_second = bytes_per_second
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def next(self) -> CleanedSegment | CleaningStats:
        try:
            part = self._receive(self._process or self._start())
            if isinstance(part, BaseException):
                raise part
        except BaseException:
            self._end()
            self._remove_leftovers()
            raise
        if isinstance(part, CleaningStats):
            self._end()
        return part

    def stop(self) -> None:
        self._stopped = True
        if self._process is not None:
            self._process.kill()

    def _start(self) -> subprocess.Popen[bytes]:
        process = self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            start_new_session=True,
        )
        if self._stopped:
            process.kill()
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                pickle.dump((self._plan, self._bytes_per_second), process.stdin)
                process.stdin.flush()
        return process

    def _receive(self, process: subprocess.Popen[bytes]) -> CleanedSegment | CleaningStats | BaseException:
        if process.stdout is None:
            raise CleaningAborted("the process has no output")
        try:
            part: CleanedSegment | CleaningStats | BaseException = pickle.load(process.stdout)
        except (EOFError, pickle.UnpicklingError):
            raise CleaningAborted("told to stop" if self._stopped else "the process ended too early") from None
        return part

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _remove_leftovers(self) -> None:
        with contextlib.suppress(OSError):
            for name in os.listdir(self._plan.folder):
                if name.endswith(CLEANED):
                    os.unlink(os.path.join(self._plan.folder, name))


def _main() -> None:
    """The process: a plan comes in, parts go out."""
    os.nice(_LOWER_PRIORITY)
    plan, bytes_per_second = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_the_broker, daemon=True).start()
    try:
        for part in clean(plan, Pace(bytes_per_second), FileSystem()):
            _send(part)
    except Exception as error:
        _send(error)


def _send(part: object) -> None:
    pickle.dump(part, sys.stdout.buffer)
    sys.stdout.buffer.flush()


def _end_with_the_broker() -> None:
    # Nothing more comes; this returns when the other end is closed.
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    _main()
