"""How fast the cleaner may go (`log.cleaner.io.max.bytes.per.second`), and whether it is to stop."""

import math
import threading
import time
from collections.abc import Callable

from storage.errors import CleaningAborted


class Pace:
    """Asked after every stretch that was read or written, on the thread that does the work."""

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
        # To be told to stop ends a sleep.
        self._sleep = sleep or self._stop.wait
        self._started = clock()
        self._bytes = 0

    def took(self, size: int) -> None:
        """Wait until `size` more bytes fit into the rate; CleaningAborted if there is to be no more work."""
        self._bytes += size
        ahead = self._bytes / self._bytes_per_second - (self._clock() - self._started)
        if ahead > 0 and not self._stop.is_set():
            self._sleep(ahead)
        if self._stop.is_set():
            raise CleaningAborted("told to stop")
