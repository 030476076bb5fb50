"""The types of resources that have settings, and the settings of those that cannot be altered in Barnabas."""

from collections.abc import Collection
from enum import IntEnum

from barnabas.broker.config.describe import ConfigEntry, ConfigSource
from barnabas.broker.config.values import ConfigType


class ResourceType(IntEnum):
    """A type of resource, with its number in requests about settings."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


def _unaltered(name: str, value: str, type: ConfigType, documentation: str) -> ConfigEntry:
    return ConfigEntry(name, value, ConfigSource.DEFAULT_CONFIG, False, False, type, documentation, ())


_CLIENT_METRICS = (
    _unaltered("interval.ms", "300000", ConfigType.INT, "How often clients push their metrics."),
    _unaltered("match", "", ConfigType.LIST, "Which clients push metrics; an empty list selects all."),
    _unaltered("metrics", "", ConfigType.LIST, "The metrics to push, by name or by the beginning of their names."),
)

# There is one logger, and its level cannot be altered.
_LOGGERS = (
    ConfigEntry("root", "INFO", ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG, True, False, ConfigType.UNKNOWN, "", ()),
)
LOGGERS = frozenset(entry.name for entry in _LOGGERS)


def describe_client_metrics(names: Collection[str] | None = None) -> list[ConfigEntry]:
    """The settings of any subscription to client metrics."""
    return [entry for entry in _CLIENT_METRICS if names is None or entry.name in names]


def describe_loggers(names: Collection[str] | None = None) -> list[ConfigEntry]:
    return [entry for entry in _LOGGERS if names is None or entry.name in names]
