"""A topic's configuration: its own overrides, and the broker's settings for the rest."""

from collections.abc import Collection, Mapping
from typing import Any

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.definitions.topic import SYNONYMS, TopicSettings
from barnabas.broker.config.describe import ConfigEntry, ConfigSource, ConfigSynonym
from barnabas.broker.config.errors import InvalidConfigError, did_you_mean
from barnabas.broker.config.names import SETTINGS
from barnabas.broker.config.setting import Setting, settings_of
from barnabas.broker.config.values import Strings

TOPIC_SETTINGS: dict[str, Setting[Any]] = settings_of(TopicSettings)

# The attributes of the broker's configuration that give a default, and the factor from their unit to the topic's.
_INHERITED = {
    name: tuple((SETTINGS[broker_name].attribute, factor) for broker_name, factor in synonyms)
    for name, synonyms in SYNONYMS.items()
}


class TopicConfig(TopicSettings):
    """Each setting is an attribute: `config.retention_ms`. It is immutable; an alteration makes a new one."""

    def __init__(self, overrides: Mapping[str, str], broker: BrokerConfig) -> None:
        """Raise InvalidConfigError if an override is wrong by itself."""
        self.overrides = dict(overrides)
        self._broker = broker
        values = {}
        unknown = [name for name in overrides if name not in TOPIC_SETTINGS]
        problems = [f"{name} is not a topic setting" for name in unknown]
        if unknown:
            problems[0] += did_you_mean(unknown[0], TOPIC_SETTINGS)
        for name, setting in TOPIC_SETTINGS.items():
            if name not in overrides:
                values[setting.attribute] = _inherited(setting, broker)
                continue
            try:
                values[setting.attribute] = setting.parse(overrides[name])
            except InvalidConfigError as error:
                problems.append(str(error))
        if problems:
            raise InvalidConfigError("; ".join(problems))
        self.__dict__.update(values)

    @classmethod
    def stored(cls, overrides: Mapping[str, str], broker: BrokerConfig) -> "TopicConfig":
        """From overrides that were valid when they were stored; those that are not valid any more are left out."""
        try:
            return cls(overrides, broker)
        except InvalidConfigError:
            return cls({name: text for name, text in overrides.items() if problem_with(name, text) is None}, broker)

    def check(self) -> None:
        """Raise InvalidConfigError if settings contradict each other, or must not be ignored.

        This is checked when a topic is altered. A topic that passed stays in service, even if its broker has changed.
        """
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            raise InvalidConfigError(
                f"min.compaction.lag.ms is {self.min_compaction_lag_ms}, but it must not be larger than "
                f"max.compaction.lag.ms, which is {self.max_compaction_lag_ms}"
            )
        for name in without_effect(self.overrides):
            refusal = TOPIC_SETTINGS[name].effect.refusal
            if refusal is not None:
                raise InvalidConfigError(f"{name} is not supported: {refusal}")

    def describe(self, names: Collection[str] | None = None) -> list[ConfigEntry]:
        """The settings for DescribeConfigs; `names` selects some of them."""
        return [
            self._entry(setting)
            for name, setting in TOPIC_SETTINGS.items()
            if (not setting.internal or name in self.overrides) and (names is None or name in names)
        ]

    def source(self, name: str) -> ConfigSource:
        """Where the value in force comes from.

        A description may differ: as in Kafka, it calls a value that the broker has in hours a default.
        """
        if name in self.overrides:
            return ConfigSource.DYNAMIC_TOPIC_CONFIG
        return self._broker.source(SYNONYMS[name][0][0]) if name in SYNONYMS else ConfigSource.DEFAULT_CONFIG

    def _entry(self, setting: Setting[Any]) -> ConfigEntry:
        value = setting.show(getattr(self, setting.attribute))
        synonyms = self._broker.synonyms(SYNONYMS[setting.name][0][0]) if setting.name in SYNONYMS else ()
        if setting.name in self.overrides:
            synonyms = (ConfigSynonym(setting.name, value, ConfigSource.DYNAMIC_TOPIC_CONFIG), *synonyms)
        return ConfigEntry(
            setting.name,
            value,
            source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
            read_only=False,
            sensitive=False,
            type=setting.kind.type,
            documentation=setting.documentation,
            synonyms=synonyms,
        )


def _inherited(setting: Setting[Any], broker: BrokerConfig) -> Any:
    for attribute, factor in _INHERITED.get(setting.name, ()):
        value = getattr(broker, attribute)
        if value is None:
            continue
        if setting.name == "retention.ms":
            return max(-1, value * factor)  # any negative number means forever
        return value if factor == 1 else value * factor
    return setting.default


def without_effect(overrides: Mapping[str, str]) -> Strings:
    """The names of those overrides that have no effect. The overrides are valid."""
    return tuple(
        name
        for name, text in overrides.items()
        if not (setting := TOPIC_SETTINGS[name]).effect.works and setting.is_ignored(setting.parse(text))
    )


def problem_with(name: str, text: str) -> str | None:
    """What is wrong with a topic's setting by itself."""
    if name not in TOPIC_SETTINGS:
        return f"{name} is not a topic setting"
    try:
        TOPIC_SETTINGS[name].parse(text)
    except InvalidConfigError as error:
        return str(error)
    return None
