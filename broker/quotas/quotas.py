"""All quotas of this broker, as the registry has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import isfinite

import structlog

from barnabas.broker.config import BrokerConfig
from barnabas.broker.quotas.client_quotas import ClientQuotas
from barnabas.broker.quotas.connection_quotas import ConnectionQuotas
from barnabas.broker.quotas.entities import CONNECTION_CREATION_RATE, KEYS, Default, Entity, Name, address_of
from barnabas.broker.quotas.rates import Window

log = structlog.get_logger()


class Quotas:
    def __init__(self, config: BrokerConfig, changed: Callable[[], None]) -> None:
        """`changed` is called after each change."""

        def window() -> Window:
            return Window(config.quota_window_num, config.quota_window_size_seconds * 1000)

        def mutation_window() -> Window:
            return Window(config.controller_quota_window_num, config.controller_quota_window_size_seconds * 1000)

        self.of_clients = ClientQuotas(window, mutation_window)
        self.of_connections = ConnectionQuotas(window)
        self._limits: dict[Entity, Mapping[str, float]] = {}
        self._changed = changed

    def set(self, entity: Entity, configs: Mapping[str, str]) -> None:
        """Follow what the registry has now about a user, a client id or an address, which may include quotas."""
        limits = {key: float(text) for key, text in configs.items() if key in KEYS and _is_limit(key, text)}
        if limits:
            self._limits[entity] = limits
        else:
            self._limits.pop(entity, None)
        if entity.ip is None:
            self.of_clients.set(entity, limits)
        else:
            self._set_address(entity.ip, limits)
        self._changed()

    def _set_address(self, ip: Name, limits: Mapping[str, float]) -> None:
        address = ip if isinstance(ip, Default) else address_of(ip)
        if address is None:
            log.warning("a quota is left out: it is not for an IP address", ip=ip)
        else:
            self.of_connections.set_limit(address, limits.get(CONNECTION_CREATION_RATE))

    def replace(self, all_configs: Mapping[Entity, Mapping[str, str]]) -> None:
        """Follow what the registry has now about all of them."""
        for entity in [each for each in self._limits if each not in all_configs]:
            self.set(entity, {})
        for entity, configs in all_configs.items():
            self.set(entity, configs)

    def limits_of(self, entity: Entity) -> Mapping[str, float]:
        return self._limits.get(entity, {})

    def __iter__(self) -> Iterator[tuple[Entity, Mapping[str, float]]]:
        return iter(self._limits.items())


def _is_limit(key: str, text: str) -> bool:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if isfinite(value) and value > 0:
        return True
    log.warning("a quota that cannot be read is left out", key=key, value=text)
    return False
