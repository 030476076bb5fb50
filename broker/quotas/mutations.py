"""What one request creates and deletes, as far as its client's quota allows.

From some version of each request on, the quota is strict: what exceeds it is refused. In older versions everything is
done, and the client is throttled afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from barnabas.broker.quotas.client_quotas import MutationQuota

Admit = Callable[[str, int], bool]
"""Whether so many partitions of a topic may be created or deleted. Asked again, it gives the same answer."""

EXCEEDED: Final = "The throttling quota has been exceeded."


def everything(topic: str, partitions: int) -> bool:
    return True


class Mutations:
    def __init__(self, quota: MutationQuota, is_strict: bool, now_ms: Callable[[], int]) -> None:
        self._quota = quota
        self._is_strict = is_strict
        self._now_ms = now_ms
        self._decided: dict[str, bool] = {}  # a decision about topics may have to be made again
        self._throttled_until_ms = 0

    def admit(self, topic: str, partitions: int) -> bool:
        if topic not in self._decided:
            self._decided[topic] = self._take(partitions)
        return self._decided[topic]

    def _take(self, partitions: int) -> bool:
        now_ms = self._now_ms()
        if self._is_strict:
            waits = self._quota.throttle_ms(now_ms)
            if not waits:
                self._quota.take(partitions, now_ms)
        else:
            self._quota.take(partitions, now_ms)
            waits = self._quota.throttle_ms(now_ms)
        if waits:
            self._throttled_until_ms = now_ms + waits
        return not (waits and self._is_strict)

    def throttle_ms(self, now_ms: int) -> int:
        """The remaining time for which the client is throttled."""
        return max(self._throttled_until_ms - now_ms, 0)
