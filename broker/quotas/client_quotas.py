"""The quotas of users and client ids: which one applies to a client, and how much of it has been used.

The most specific quota applies, for each kind of quota by itself, in Kafka's order:

    a client id of a user, any client id of a user, a user,
    a client id of any user, any client id of any user, any user,
    a client id, any client id

Clients that share a quota share its usage: all connections of a user if it is a user's, even if it is the one for any
user; all connections with a client id if it is a client id's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from barnabas.broker.quotas.entities import (
    CLIENT_KEYS,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    DEFAULT,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    Entity,
)
from barnabas.broker.quotas.rates import Rate, TokenBucket, Window

# How many answers are cached. Clients choose their ids.
_MOST_REMEMBERED: Final = 10_000

GetWindow = Callable[[], Window]


class RateQuota:
    """A limit, and the rate of the clients that share it."""

    __slots__ = ("_is_bounded", "_rate", "_window", "limit")

    def __init__(self, limit: float, rate: Rate, window: GetWindow, is_bounded: bool = False) -> None:
        """`is_bounded`: nobody is throttled for longer than a sample."""
        self.limit = limit
        self._rate = rate
        self._window = window
        self._is_bounded = is_bounded

    def record(self, value: float, now_ms: int) -> int:
        """Record usage. Returns for how many milliseconds to throttle the client."""
        window = self._window()
        self._rate.record(value, now_ms, window)
        throttle_ms = self._rate.throttle_ms(self.limit, now_ms, window)
        return min(throttle_ms, window.most_ms) if self._is_bounded else throttle_ms

    def note(self, value: float, now_ms: int) -> None:
        """Like `record`, for usage that nobody is throttled for. A negative value takes back what was recorded."""
        self._rate.record(value, now_ms, self._window())

    @property
    def most_at_once(self) -> float:
        """As much as the whole window allows. More than that in one answer could never be sent."""
        window = self._window()
        return self.limit * (window.samples - 1) * window.sample_ms / 1000


class MutationQuota:
    """A limit on how many partitions may be created and deleted per second, and the tokens of the clients that share
    it."""

    __slots__ = ("_bucket", "_window", "limit")

    def __init__(self, limit: float, bucket: TokenBucket, window: GetWindow) -> None:
        self.limit = limit
        self._bucket = bucket
        self._window = window

    def take(self, partitions: int, now_ms: int) -> None:
        self._bucket.take(partitions, self.limit, now_ms, self._window())

    def throttle_ms(self, now_ms: int) -> int:
        return self._bucket.throttle_ms(self.limit, now_ms, self._window())


class QuotasOfClient:
    """The quotas that apply to a user and a client id."""

    __slots__ = ("fetch", "mutation", "produce", "request")

    def __init__(
        self,
        produce: RateQuota | None,
        fetch: RateQuota | None,
        request: RateQuota | None,
        mutation: MutationQuota | None,
    ) -> None:
        self.produce = produce
        self.fetch = fetch
        self.request = request
        self.mutation = mutation


Sharing = tuple[str, str | None, str | None]
"""A kind of quota and who shares its usage: a user, a client id, or both."""


class ClientQuotas:
    def __init__(self, window: GetWindow, mutation_window: GetWindow) -> None:
        """The windows may change at any time."""
        self._window = window
        self._mutation_window = mutation_window
        self._limits: dict[str, dict[Entity, float]] = {key: {} for key in CLIENT_KEYS}
        self._rates: dict[Sharing, Rate] = {}
        self._buckets: dict[Sharing, TokenBucket] = {}
        self._known: dict[tuple[str, str], QuotasOfClient | None] = {}

    @property
    def are_there(self) -> bool:
        return any(self._limits.values())

    def set(self, entity: Entity, limits: Mapping[str, float]) -> None:
        """Replace the quotas of a user, a client id or both. Recorded usage stays."""
        for key, by_entity in self._limits.items():
            if key in limits:
                by_entity[entity] = limits[key]
            else:
                by_entity.pop(entity, None)
        self._known.clear()

    def of(self, user: str, client_id: str, now_ms: int) -> QuotasOfClient | None:
        """The quotas that apply to a client, or None if there are none."""
        try:
            return self._known[user, client_id]
        except KeyError:
            if len(self._known) >= _MOST_REMEMBERED:
                self._forget_idle(now_ms)
            found = self._known[user, client_id] = self._find(user, client_id)
            return found

    def _find(self, user: str, client_id: str) -> QuotasOfClient | None:
        produce = self._rate_quota(PRODUCER_BYTE_RATE, user, client_id)
        fetch = self._rate_quota(CONSUMER_BYTE_RATE, user, client_id)
        request = self._rate_quota(REQUEST_PERCENTAGE, user, client_id, is_bounded=True)
        mutation = None
        applied = self.applied(CONTROLLER_MUTATION_RATE, user, client_id)
        if applied is not None:
            limit, sharing = applied
            mutation = MutationQuota(limit, self._buckets.setdefault(sharing, TokenBucket()), self._mutation_window)
        if produce is None and fetch is None and request is None and mutation is None:
            return None
        return QuotasOfClient(produce, fetch, request, mutation)

    def _rate_quota(self, key: str, user: str, client_id: str, is_bounded: bool = False) -> RateQuota | None:
        applied = self.applied(key, user, client_id)
        if applied is None:
            return None
        limit, sharing = applied
        return RateQuota(limit, self._rates.setdefault(sharing, Rate()), self._window, is_bounded)

    def applied(self, key: str, user: str, client_id: str) -> tuple[float, Sharing] | None:
        """The limit that applies to a client, and who shares it."""
        limits = self._limits[key]
        if not limits:
            return None
        both, of_user, of_client_id = (key, user, client_id), (key, user, None), (key, None, client_id)
        for entity, sharing in (
            (Entity(user, client_id), both),
            (Entity(user, DEFAULT), both),
            (Entity(user), of_user),
            (Entity(DEFAULT, client_id), both),
            (Entity(DEFAULT, DEFAULT), both),
            (Entity(DEFAULT), of_user),
            (Entity(None, client_id), of_client_id),
            (Entity(None, DEFAULT), of_client_id),
        ):
            limit = limits.get(entity)
            if limit is not None:
                return limit, sharing
        return None

    def _forget_idle(self, now_ms: int) -> None:
        """Keep only what still counts: an idle rate would be measured like a new one."""
        window, mutation_window = self._window(), self._mutation_window()
        self._known.clear()
        self._rates = {key: rate for key, rate in self._rates.items() if not rate.is_idle(now_ms, window)}
        self._buckets = {key: each for key, each in self._buckets.items() if not each.is_idle(now_ms, mutation_window)}
