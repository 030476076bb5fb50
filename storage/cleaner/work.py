"""Where a compaction runs: on the calling thread, or in a separate process.

The work is pure Python and keeps the interpreter busy. On a thread of the broker it cost the broker most of its
throughput. A separate process only competes for the machine.

    here      on the calling thread; for tests, and where no other process is possible
    in_child  in another process

The process ends when the broker does: it notices that the pipe that brought its plan is closed. Its output goes to the
broker, which logs it if the process fails. So nothing reaches a terminal, even after kill -9 of the broker.
"""

import contextlib
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Final, Protocol

import barnabas
from barnabas.storage.cleaner.pace import Pace
from barnabas.storage.cleaner.plan import CleaningPlan
from barnabas.storage.cleaner.rewrite import CleanedSegment, CleaningStats, clean
from barnabas.storage.errors import CleaningAborted
from barnabas.storage.file_names import CLEANED
from barnabas.storage.filesystem import FileSystem

# Serving clients has priority.
_LOWER_PRIORITY: Final = 10

# The program of the process. The standard library comes before the folders that the broker imports from.
_PROGRAM: Final = f"import sys; sys.path += sys.argv[1:]; from {__name__} import main; main()"


class Work(Protocol):
    """Compacts a log according to a plan."""

    def next(self) -> CleanedSegment | CleaningStats:
        """Do the next part, which takes long. Any thread may call this, one at a time. The statistics come last."""

    def stop(self) -> None:
        """Make the current part end soon, with CleaningAborted. May be called on any thread."""


StartWork = Callable[[CleaningPlan, float, FileSystem], Work]


def here(plan: CleaningPlan, bytes_per_second: float, file_system: FileSystem) -> Work:
    return _WorkHere(plan, bytes_per_second, file_system)


def in_child(plan: CleaningPlan, bytes_per_second: float, file_system: FileSystem) -> Work:
    """Always uses the real file system, because a substitute cannot be shared between processes."""
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
            child_command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
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
            if self._stopped:
                raise CleaningAborted("stopped") from None
            printed = self._end().decode(errors="replace").strip()
            raise ChildProcessError(f"the process exited with {process.returncode}: {printed or 'no output'}") from None
        return part

    def _end(self) -> bytes:
        """End the process if it exists, and return its stderr."""
        process, self._process = self._process, None
        if process is None:
            return b""
        process.kill()
        return process.communicate()[1]

    def _remove_leftovers(self) -> None:
        with contextlib.suppress(OSError):
            for name in os.listdir(self._plan.folder):
                if name.endswith(CLEANED):
                    os.unlink(os.path.join(self._plan.folder, name))


def child_command() -> list[str]:
    """The command that starts the process.

    It is isolated (-I): neither environment variables nor the current directory affect what it imports. It imports from
    the same folders as this process, so that it runs the same code, but from the current directory only if this package
    is there.
    """
    own = os.path.dirname(os.path.dirname(barnabas.__file__))
    folders = [folder for folder in sys.path if _same(folder, own) or not _same(folder, os.curdir)]
    return [sys.executable, "-I", "-S", "-c", _PROGRAM, *filter(None, folders)]


def _same(folder: str, other: str) -> bool:
    try:
        return os.path.samefile(folder, other)
    except OSError:  # the path may not exist
        return False


def main() -> None:
    """The program of the process: reads a plan from stdin and writes the parts to stdout."""
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
    # The broker sends nothing more, so this returns when it closes its end.
    sys.stdin.buffer.read()
    os._exit(1)
