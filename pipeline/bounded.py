"""Calls into librdkafka that end in time even when it ignores the timeout it was given."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_GRACE = 5.0  # seconds beyond the call's own timeout


class NoAnswerError(Exception):
    """A call that did not return; the thread that waits for it is abandoned."""


def bounded(call: Callable[[float], T], seconds: float, what: str) -> T:
    """Run `call(seconds)` in its own thread, and give up a little later than the call itself should have."""
    result: list[T] = []
    failure: list[BaseException] = []

    def attempt() -> None:
        try:
            result.append(call(seconds))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=attempt, name=what, daemon=True)
    thread.start()
    thread.join(seconds + _GRACE)
    if thread.is_alive():
        raise NoAnswerError(f"{what}: no answer within {seconds + _GRACE:g} s")
    if failure:
        raise failure[0]
    return result[0]
