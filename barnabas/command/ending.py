"""How a command ends: 0 if it did what was asked, 1 if it could not, 2 if the command line was wrong.

Whatever goes wrong is one sentence on standard error. Ctrl-C, and a reader that went away (`| head`), need none.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from barnabas.errors import BarnabasError
from barnabas.printable import printable_lines

_INTERRUPTED = 128 + 2  # as a shell reports a program that SIGINT ended


class UsageError(BarnabasError):
    """Arguments that are well-formed one by one, but do not go together; or a config file that is wrong."""


def status_of(run: Callable[[], int]) -> int:
    try:
        try:
            return run()
        finally:
            sys.stdout.flush()
    except UsageError as error:
        complain(error)
        return 2
    except BrokenPipeError:
        # What is still buffered has nowhere to go, and must not fail again when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except BarnabasError as error:
        complain(error)
        return 1
    except OSError as error:
        complain(f"{error.filename}: {error.strerror}" if error.filename else error)
        return 1
    except KeyboardInterrupt:
        return _INTERRUPTED


@contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """Let SIGTERM end what is inside as Ctrl-C does, so that a member leaves its group and nothing is left behind."""
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def complain(problem: object) -> None:
    print(printable_lines(f"barnabas: {problem}"), file=sys.stderr)
