"""What a controller's term needs besides the registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from barnabas.broker.clock import Clock
from barnabas.broker.controller.create_topics import ValidateConfigs
from barnabas.broker.controller.images import TopicImage
from barnabas.broker.interbroker.order_lines import OpenChannel, ServeLocally


class TermSettings(Protocol):
    """The broker settings that a controller reads, afresh each time."""

    @property
    def num_partitions(self) -> int: ...
    @property
    def default_replication_factor(self) -> int: ...
    @property
    def delete_topic_enable(self) -> bool: ...
    @property
    def request_timeout_ms(self) -> int: ...
    @property
    def auto_leader_rebalance_enable(self) -> bool: ...
    @property
    def leader_imbalance_check_interval_seconds(self) -> int: ...
    @property
    def leader_imbalance_per_broker_percentage(self) -> int: ...


class World(NamedTuple):
    """What a term needs besides the registry."""

    broker_id: int
    settings: TermSettings
    clock: Clock
    serve_locally: ServeLocally
    open_channel: OpenChannel
    listener: str  # the one between brokers
    validate_configs: ValidateConfigs
    unclean_allowed: Callable[[TopicImage], bool]
    random_bytes: Callable[[int], bytes]
    failure_of: Callable[[str], str | None] = lambda topic: None
    """Why this broker could not create the logs of a topic, as far as it knows."""
    suspects: Callable[[], Mapping[int, int]] = dict
    """Brokers that seem to have died, each with the epoch of its registration (cluster.vigil)."""
