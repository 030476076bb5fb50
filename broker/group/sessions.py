"""Members of groups must be heard regularly: how long each may be silent, and who has been silent for too long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from barnabas.broker.coordinator.result import NOTHING_TO_DO, CoordinatorResult
from barnabas.broker.coordinator.timers import DecidingTimers


class _Heard(NamedTuple):
    at_ms: int  # by the wall clock, for people who look
    ends_ms: int  # when the session ends, by the timers' time
    timeout_ms: int


_NEVER: Final = _Heard(0, 0, 0)


class Sessions:
    """The sessions of the members of one kind of groups in a shard. Timers have the key (group, member).

    A session is forgotten when a replayed record says that the member is gone, not before: what was decided may fail.
    """

    def __init__(
        self,
        timers: DecidingTimers,
        now_ms: Callable[[], int],
        ended: Callable[[str, str, str], CoordinatorResult],
    ) -> None:
        """`ended` decides about the group and the id of a member whose session has ended, and why, in words."""
        self._timers = timers
        self._now_ms = now_ms
        self._ended = ended
        self._heard: dict[tuple[str, str], _Heard] = {}

    def watch(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        """A member has been heard. Its timer looks at this when it fires, instead of being moved."""
        key = (group_id, member_id)
        is_watched = key in self._heard
        self._heard[key] = _Heard(self._now_ms(), self._timers.elapsed_ms() + timeout_ms, timeout_ms)
        if not is_watched:
            self._await_silence(key, timeout_ms)

    def forget(self, group_id: str, member_id: str) -> None:
        self._heard.pop((group_id, member_id), None)
        self._timers.cancel((group_id, member_id))

    def heard_at_ms(self, group_id: str, member_id: str) -> int | None:
        heard = self._heard.get((group_id, member_id))
        return None if heard is None else heard.at_ms

    def _await_silence(self, key: tuple[str, str], delay_ms: int) -> None:
        self._timers.schedule(key, delay_ms, lambda: self._elapsed(key))

    def _elapsed(self, key: tuple[str, str]) -> CoordinatorResult:
        _, ends_ms, timeout_ms = self._heard.get(key, _NEVER)
        remaining = ends_ms - self._timers.elapsed_ms()
        if remaining > 0:
            self._await_silence(key, remaining)
            return NOTHING_TO_DO
        decision = self._ended(*key, f"its session timed out after {timeout_ms / 1000:g} s without a heartbeat")
        if decision is NOTHING_TO_DO:
            self._heard.pop(key, None)  # it is no member: what it had asked for was not written
        return decision
