"""Limits the cleaner's rate (`log.cleaner.io.max.bytes.per.second`), and stops it."""

import math
import threading
import time
from collections.abc import Callable
from typing import Final

from barnabas.storage.errors import CleaningAborted

# The lowest rates would need a longer sleep than a thread supports.
_LONGEST_SLEEP: Final = 3600.0


class Pace:
    """Called after every read and write, on the thread that does the work."""

    def __init__(
        self,
        bytes_per_second: float = math.inf,
        stop: threading.Event | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        self._bytes_per_second = bytes_per_second
        self._stop = stop or threading.Event()
        self._clock = clock
        # A stop ends a sleep.
        self._sleep = sleep or self._stop.wait
        self._started = clock()
        self._bytes = 0

    def took(self, size: int) -> None:
        """Wait until `size` more bytes fit into the rate. Raises CleaningAborted after a stop."""
        self._bytes += size
        while (ahead := self._bytes / self._bytes_per_second - self._elapsed()) > 0 and not self._stop.is_set():
            self._sleep(min(ahead, _LONGEST_SLEEP))
        if self._stop.is_set():
            raise CleaningAborted("stopped")

    def _elapsed(self) -> float:
        return self._clock() - self._started
