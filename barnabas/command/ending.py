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


def hold_standard_files() -> None:
    """Give the numbers 0 to 2 to the null device where the caller closed them (`<&-`, `>&-`).

    Otherwise the next socket gets the number, and `produce` reads its records from it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number is this one
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115, open until the end
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115


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
        complain(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or error)
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
