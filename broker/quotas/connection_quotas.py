"""How many connections may be opened per second: of the whole broker, of a listener, of an address.

At a broker's or a listener's limit, the listener waits before it accepts the next one. At an address's limit, a
connection is refused, and does not count.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.config.values import INT_MAX
from barnabas.broker.quotas.client_quotas import GetWindow
from barnabas.broker.quotas.entities import DEFAULT, Name
from barnabas.broker.quotas.rates import Rate

# How many addresses are remembered.
_MOST_REMEMBERED: Final = 10_000


class ConnectionQuotas:
    def __init__(self, window: GetWindow) -> None:
        self._window = window
        self._broker = Rate()
        self._listeners: dict[str, Rate] = {}
        self._addresses: dict[str, Rate] = {}
        self._limits: dict[Name, float] = {}

    def set_limit(self, address: Name, limit: float | None) -> None:
        """What one address may do, or with DEFAULT any that has no limit of its own."""
        if limit is None:
            self._limits.pop(address, None)
        else:
            self._limits[address] = limit

    def record(self, listener: str, broker_limit: int, listener_limit: int, now_ms: int) -> int:
        """Record a connection. Returns for how many milliseconds its listener waits."""
        of_broker = self._waits(self._broker, broker_limit, now_ms)
        of_listener = self._waits(self._listeners.setdefault(listener, Rate()), listener_limit, now_ms)
        return max(of_broker, of_listener)

    def record_from(self, address: str, now_ms: int) -> int:
        """Record a connection from an address. Returns 0, or for how many milliseconds to throttle the address."""
        limit = self._limits.get(address, self._limits.get(DEFAULT)) if self._limits else None
        if limit is None:
            return 0
        if len(self._addresses) >= _MOST_REMEMBERED:
            window = self._window()
            self._addresses = {key: rate for key, rate in self._addresses.items() if not rate.is_idle(now_ms, window)}
        rate = self._addresses.setdefault(address, Rate())
        waits = self._waits(rate, limit, now_ms)
        if waits:
            rate.record(-1, now_ms, self._window())
        return waits

    def _waits(self, rate: Rate, limit: float, now_ms: int) -> int:
        if limit >= INT_MAX:
            return 0
        window = self._window()
        rate.record(1, now_ms, window)
        return min(rate.throttle_ms(limit, now_ms, window), window.most_ms)
