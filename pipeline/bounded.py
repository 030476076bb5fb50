"""Calls into librdkafka that end in time even when it does not keep to the timeout it was given."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_GRACE = 5.0  # seconds beyond the call's own timeout


class NoAnswerError(Exception):
    """A call that did not come back; the thread that waits for it is left behind."""


def bounded(call: Callable[[float], T], seconds: float, what: str) -> T:
    """`call(seconds)` in a thread of its own, given up a little later than it should have given up itself."""
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
