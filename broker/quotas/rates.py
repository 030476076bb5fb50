"""How fast something happens, and how long to throttle a client that is too fast: the arithmetic of Kafka's metrics.

A Rate is a sum over samples of equal length, divided by the time that they cover. Until there are as many samples as
were asked for, the time counts as if there were, so that a burst of a fresh client does not look like a high rate.
A client that is over its limit waits until the same sum, over the time so far and the wait, is within it.
"""

from __future__ import annotations

from math import floor, inf
from typing import Final, NamedTuple

_INT_MAX: Final = 2**31 - 1


class Window(NamedTuple):
    """`quota.window.num` samples of `quota.window.size.seconds`."""

    samples: int
    sample_ms: int

    @property
    def most_ms(self) -> int:
        """The longest throttle time, where that is bounded."""
        return self.sample_ms


class _Sample:
    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.value = 0.0
        self.start_ms = self.last_ms = now_ms


class Rate:
    """Something per second. A sample counts as long as part of it is within the window."""

    __slots__ = ("_current", "_samples")

    def __init__(self) -> None:
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int, window: Window) -> None:
        if not self._samples:
            self._samples.append(_Sample(now_ms))
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= window.sample_ms:
            sample = self._next_sample(now_ms, window)
        sample.value += value
        sample.last_ms = now_ms

    def _next_sample(self, now_ms: int, window: Window) -> _Sample:
        # One more than the window has, because the oldest is partly outside of it.
        self._current = (self._current + 1) % (window.samples + 1)
        if self._current >= len(self._samples):
            self._current = len(self._samples)
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def per_second(self, now_ms: int, window: Window) -> float:
        span = self.span_ms(now_ms, window)
        return sum([sample.value for sample in self._samples]) / (span / 1000)

    def span_ms(self, now_ms: int, window: Window) -> int:
        """The time that the samples cover, or would cover if all had been started."""
        oldest = now_ms
        for sample in self._samples:
            if now_ms - sample.last_ms >= window.samples * window.sample_ms:
                sample.reset(now_ms)
            oldest = min(oldest, sample.start_ms)
        span = now_ms - oldest
        missing = window.samples - 1 - span // window.sample_ms
        return max(span + max(missing, 0) * window.sample_ms, 1)

    def throttle_ms(self, limit: float, now_ms: int, window: Window) -> int:
        """How long to throttle; 0 within the limit."""
        rate = self.per_second(now_ms, window)
        if rate <= limit:
            return 0
        return _rounded((rate - limit) / limit * self.span_ms(now_ms, window) if limit else inf)

    def is_idle(self, now_ms: int, window: Window) -> bool:
        """Whether none of it counts any more, so that a new one would serve as well."""
        return all(now_ms - sample.last_ms >= window.samples * window.sample_ms for sample in self._samples)


class TokenBucket:
    """A token bucket: what may happen at once is bounded by what has not happened before. Tokens arrive every second,
    up to a window's worth.

    The number of tokens may become negative; nothing more is admitted until it is not.
    """

    __slots__ = ("_tokens", "_updated_ms")

    def __init__(self) -> None:
        self._tokens = inf
        self._updated_ms = 0

    def take(self, tokens: float, limit: float, now_ms: int, window: Window) -> None:
        self._refill(limit, now_ms, window)
        self._tokens -= tokens

    def throttle_ms(self, limit: float, now_ms: int, window: Window) -> int:
        """How long until the bucket is not in debt; 0 if it is not."""
        self._refill(limit, now_ms, window)
        return _rounded(-self._tokens / limit * 1000) if self._tokens < 0 else 0

    def is_idle(self, now_ms: int, window: Window) -> bool:
        return now_ms - self._updated_ms >= window.samples * window.sample_ms and self._tokens >= 0

    def _refill(self, limit: float, now_ms: int, window: Window) -> None:
        most = window.samples * window.sample_ms / 1000 * limit
        self._tokens = min(most, self._tokens + limit * (now_ms - self._updated_ms) / 1000)
        self._updated_ms = now_ms


def _rounded(ms: float) -> int:
    """Rounded as in Java, and no more than fits into an answer."""
    return _INT_MAX if ms >= _INT_MAX else floor(ms + 0.5)
