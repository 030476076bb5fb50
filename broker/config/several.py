"""The configurations of several brokers in one process, made from one.

They have consecutive ids and ports, and folders of their own. The first is as a single broker would be, so that the
data of a single broker can become that of the first of several.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.describe import ConfigSource
from barnabas.broker.config.errors import ConfigError
from barnabas.broker.config.listeners import shifted

BROKERS_FOLDER: Final = "brokers"
"""In the first broker's data directory, where the folders of the others are."""

_REPLICATION_FACTOR: Final = "default.replication.factor"
_MOST_REPLICAS: Final = 3


def configs_for(
    count: int, path: str | None = None, assignments: Sequence[str] = (), listeners: Sequence[str] = ()
) -> list[BrokerConfig]:
    """`path` and `assignments` as for BrokerConfig.load, whose ConfigError this raises.

    `listeners` are those of the first brokers, if they should not be derived from the first one's. Unless the settings
    say otherwise, the topics of several brokers have up to three replicas.
    """
    if listeners:
        assignments = [*assignments, f"listeners={listeners[0]}"]
    first = BrokerConfig.load(path, assignments)
    if count > 1 and first.zookeeper_connect is not None:
        problem = "brokers around zookeeper.connect are processes of their own: start each with its broker.id"
        raise ConfigError([problem])
    if count > 1 and first.source(_REPLICATION_FACTOR) is ConfigSource.DEFAULT_CONFIG:
        assignments = [*assignments, f"{_REPLICATION_FACTOR}={min(count, _MOST_REPLICAS)}"]
        first = BrokerConfig.load(path, assignments)
    others = []
    for number in range(1, count):
        own_listeners = listeners[number] if number < len(listeners) else shifted(first.listeners, number)
        others.append(_another(first, number, own_listeners, path, assignments))
    return [first, *others]


def _another(
    first: BrokerConfig, number: int, listeners: str, path: str | None, assignments: Sequence[str]
) -> BrokerConfig:
    broker_id = first.node_id + number
    own = [f"node.id={broker_id}", f"broker.id={broker_id}", f"listeners={listeners}"]
    if first.advertised_listeners is not None:
        own.append(f"advertised.listeners={shifted(first.advertised_listeners, number)}")
    own.append(f"log.dirs={os.path.join(first.data_dirs[0], BROKERS_FOLDER, str(broker_id))}")
    return BrokerConfig.load(path, [*assignments, *own])
