"""How a command ends: 0 if it did what was asked, 1 if it could not, 2 if the question was wrong.

Ctrl-C and a reader that went away (`| head`) are no errors to explain.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps

from broker.cli.client.errors import ClientError

_INTERRUPTED = 128 + 2  # as a shell reports a program that SIGINT ended


class UsageError(Exception):
    """Arguments that are each well-formed and do not go together."""


def ends_quietly(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    @wraps(run)
    def wrapped(options: argparse.Namespace) -> int:
        try:
            status = run(options)
            sys.stdout.flush()
            return status
        except UsageError as error:
            complain(error)
            return 2
        except BrokenPipeError:
            # What is still buffered has nowhere to go, and must not fail once more when Python exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except ClientError as error:
            complain(error)
            return 1
        except OSError as error:
            complain(f"{error.filename}: {error.strerror}" if error.filename else error)
            return 1
        except KeyboardInterrupt:
            return _INTERRUPTED

    return wrapped


@contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """Let SIGTERM end what is inside as Ctrl-C does, so that it says goodbye to whom it must."""
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def complain(problem: object) -> None:
    print(f"barnabas: {problem}", file=sys.stderr)
