"""Altering settings at run-time: pure decisions from the current overrides to the new ones.

An override is a text that is set for one topic, for one broker, or for all brokers of the cluster. Nothing changes
here: the caller stores the result, and then makes a new TopicConfig or calls BrokerConfig.set_dynamic. An alteration
that is not possible raises InvalidConfigError or InvalidConfigRequestError.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.errors import ConfigError, InvalidConfigError, InvalidConfigRequestError
from barnabas.broker.config.group_config import GROUP_SETTINGS, check_group_config
from barnabas.broker.config.names import SETTINGS, base_name, is_ignored, unknown_name, update_mode
from barnabas.broker.config.setting import PER_BROKER, READ_ONLY, Setting
from barnabas.broker.config.topic_config import TOPIC_SETTINGS, TopicConfig
from barnabas.broker.config.values import ConfigType

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
    """A topic's overrides after AlterConfigs, which replaces all of them."""
    overrides = _without_nulls(configs)
    TopicConfig(overrides, broker).check()
    return overrides


def new_topic_config(configs: Mapping[str, str | None], broker: BrokerConfig) -> dict[str, str]:
    """The overrides of a new topic. Only CreateTopics answers a missing value with INVALID_CONFIG in Kafka."""
    try:
        return replace_topic_config(configs, broker)
    except InvalidConfigRequestError as error:
        raise InvalidConfigError(str(error)) from None


def alter_broker_config(
    overrides: Mapping[str, str], operations: Iterable[Operation], broker: BrokerConfig, *, cluster_wide: bool
) -> dict[str, str]:
    """The overrides of this broker, or of all, after IncrementalAlterConfigs."""
    altered = _apply(overrides, operations, SETTINGS)
    in_force = broker.dynamic_cluster_wide if cluster_wide else broker.dynamic_this_broker
    # What was stored and is left out may stay as it is: it would otherwise keep every other setting from being altered.
    left_out = {name for name, text in overrides.items() if in_force.get(name) != text == altered.get(name)}
    checked = {name: text for name, text in altered.items() if name not in left_out}
    _check_broker_overrides(checked, broker, cluster_wide)
    return altered


def replace_broker_config(
    configs: Mapping[str, str | None], broker: BrokerConfig, *, cluster_wide: bool
) -> dict[str, str]:
    """The overrides of this broker, or of all, after AlterConfigs."""
    overrides = _without_nulls(configs)
    _check_broker_overrides(overrides, broker, cluster_wide)
    return overrides


def alter_group_config(
    overrides: Mapping[str, str], operations: Iterable[Operation], broker: BrokerConfig
) -> dict[str, str]:
    """A group's overrides after IncrementalAlterConfigs."""
    altered = _apply(overrides, operations, GROUP_SETTINGS)
    check_group_config(altered, broker)
    return altered


def replace_group_config(configs: Mapping[str, str | None], broker: BrokerConfig) -> dict[str, str]:
    """A group's overrides after AlterConfigs."""
    overrides = _without_nulls(configs)
    check_group_config(overrides, broker)
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
                    f"{name} is not a list, so nothing can be appended to it or subtracted from it"
                )
            # As in Kafka, this starts from the default, not from the broker's file.
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
    """Kafka answers every problem with a broker's settings with INVALID_REQUEST."""
    for name in overrides:
        base = base_name(name)
        if base not in SETTINGS and not is_ignored(base):
            raise InvalidConfigRequestError(unknown_name(name))
        mode = update_mode(name)
        if mode is READ_ONLY:
            raise InvalidConfigRequestError(f"{name} cannot be altered at run-time")
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
