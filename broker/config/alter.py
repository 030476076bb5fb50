"""Changing settings while the broker runs: pure decisions from the overrides that hold to those that shall hold.

An override is a text that was set for one topic, for one broker, or for all brokers of the cluster. Nothing here takes
effect: whoever asked writes the answer down, and then makes a new TopicConfig or calls BrokerConfig.set_dynamic. What
cannot be raises InvalidConfigError or InvalidConfigRequestError.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from broker.config.broker_config import BrokerConfig
from broker.config.errors import ConfigError, InvalidConfigError, InvalidConfigRequestError
from broker.config.names import SETTINGS, base_name, is_ignored, unknown_name, update_mode
from broker.config.setting import PER_BROKER, READ_ONLY, Setting
from broker.config.topic_config import TOPIC_SETTINGS, TopicConfig
from broker.config.values import ConfigType

# These are altered for one listener at a time: listener.name.<listener>.ssl.keystore.location.
_PER_LISTENER = ("ssl.key.", "ssl.keystore.", "ssl.truststore.")


class OperationKind(IntEnum):
    """What to do with an override, with its number in IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Operation(NamedTuple):
    kind: int  # an OperationKind, or whatever number a client sent
    name: str
    value: str | None = None


def alter_topic_config(
    overrides: Mapping[str, str], operations: Iterable[Operation], broker: BrokerConfig
) -> dict[str, str]:
    """A topic's overrides after IncrementalAlterConfigs."""
    altered = _apply(overrides, operations, TOPIC_SETTINGS)
    TopicConfig(altered, broker).check()
    return altered


def replace_topic_config(configs: Mapping[str, str | None], broker: BrokerConfig) -> dict[str, str]:
    """A topic's overrides after AlterConfigs, which gives all of them anew."""
    overrides = _without_nulls(configs)
    TopicConfig(overrides, broker).check()
    return overrides


def new_topic_config(configs: Mapping[str, str | None], broker: BrokerConfig) -> dict[str, str]:
    """The overrides that CreateTopics gives a topic. Only here, Kafka calls a missing value INVALID_CONFIG."""
    try:
        return replace_topic_config(configs, broker)
    except InvalidConfigRequestError as error:
        raise InvalidConfigError(str(error)) from None


def alter_broker_config(
    overrides: Mapping[str, str], operations: Iterable[Operation], broker: BrokerConfig, *, cluster_wide: bool
) -> dict[str, str]:
    """The overrides of this broker, or of all, after IncrementalAlterConfigs."""
    altered = _apply(overrides, operations, SETTINGS)
    _check_broker_overrides(altered, broker, cluster_wide)
    return altered


def replace_broker_config(
    configs: Mapping[str, str | None], broker: BrokerConfig, *, cluster_wide: bool
) -> dict[str, str]:
    """The overrides of this broker, or of all, after AlterConfigs."""
    overrides = _without_nulls(configs)
    _check_broker_overrides(overrides, broker, cluster_wide)
    return overrides


def _apply(
    overrides: Mapping[str, str], operations: Iterable[Operation], settings: Mapping[str, Setting[Any]]
) -> dict[str, str]:
    altered = dict(overrides)
    seen = set()
    for kind, name, value in operations:
        if name in seen:
            raise InvalidConfigRequestError(f"{name} occurs twice")
        seen.add(name)
        if kind == OperationKind.DELETE:
            altered.pop(name, None)
            continue
        if value is None:
            raise InvalidConfigRequestError(f"{name} has no value")
        if kind == OperationKind.SET:
            altered[name] = value
        elif kind in (OperationKind.APPEND, OperationKind.SUBTRACT):
            setting = settings.get(base_name(name))
            if setting is None or setting.kind.type is not ConfigType.LIST:
                raise InvalidConfigError(
                    f"{name} is not a list, so that nothing can be appended to or subtracted from it"
                )
            # Kafka, too, begins with the default and not with what the broker's file says.
            current = altered.get(name, setting.show(setting.default) or "")
            altered[name] = _alter_list(current, value, append=kind == OperationKind.APPEND)
        else:
            raise InvalidConfigRequestError(f"{kind} is not an operation on {name}")
    return altered


def _alter_list(current: str, value: str, append: bool) -> str:
    items = [item for item in current.split(",") if item]
    for item in value.split(","):
        if append and item not in items:
            items.append(item)
        elif not append and item in items:
            items.remove(item)
    return ",".join(items)


def _check_broker_overrides(overrides: Mapping[str, str], broker: BrokerConfig, cluster_wide: bool) -> None:
    """For a broker's settings, Kafka answers INVALID_REQUEST whatever is wrong."""
    for name in overrides:
        base = base_name(name)
        if base not in SETTINGS and not is_ignored(base):
            raise InvalidConfigRequestError(unknown_name(name))
        mode = update_mode(name)
        if mode is READ_ONLY:
            raise InvalidConfigRequestError(f"{name} cannot be altered while the broker runs")
        if mode is PER_BROKER and cluster_wide:
            raise InvalidConfigRequestError(f"{name} can be altered for one broker only, not for the whole cluster")
        if name.startswith(_PER_LISTENER):
            raise InvalidConfigRequestError(
                f"{name} can be altered for one listener only: listener.name.<listener>.{name}"
            )
    try:
        if cluster_wide:
            broker.try_dynamic(overrides, broker.dynamic_this_broker)
        else:
            broker.try_dynamic(broker.dynamic_cluster_wide, overrides)
    except ConfigError as error:
        raise InvalidConfigRequestError("; ".join(error.problems)) from None


def _without_nulls(configs: Mapping[str, str | None]) -> dict[str, str]:
    missing = [name for name, value in configs.items() if value is None]
    if missing:
        raise InvalidConfigRequestError(f"no value for {', '.join(missing)}")
    return {name: value for name, value in configs.items() if value is not None}
