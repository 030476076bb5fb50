"""The description of a setting for a client: its value, where that comes from, and the values that it overrides."""

from enum import IntEnum
from typing import NamedTuple

from barnabas.broker.config.values import ConfigType


class ConfigSource(IntEnum):
    """Where a value comes from, with its number in DescribeConfigs."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    GROUP_CONFIG = 8


class ConfigSynonym(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    name: str
    value: str | None  # None if there is none or it must stay hidden
    source: ConfigSource
    read_only: bool
    sensitive: bool
    type: ConfigType
    documentation: str | None
    synonyms: tuple[ConfigSynonym, ...]  # the value in force first, then the values that it overrides
