"""A topic's configuration: its own overrides, and below them what the broker says."""

from collections.abc import Collection, Mapping
from typing import Any

from broker.config.broker_config import BrokerConfig
from broker.config.definitions.topic import SYNONYMS, TopicSettings
from broker.config.describe import ConfigEntry, ConfigSource, ConfigSynonym
from broker.config.errors import InvalidConfigError, did_you_mean
from broker.config.names import SETTINGS
from broker.config.setting import Setting, settings_of

TOPIC_SETTINGS: dict[str, Setting[Any]] = settings_of(TopicSettings)

# Which attributes of the broker's configuration give a default, and the factor from its unit to the topic's.
_INHERITED = {
    name: tuple((SETTINGS[broker_name].attribute, factor) for broker_name, factor in synonyms)
    for name, synonyms in SYNONYMS.items()
}


class TopicConfig(TopicSettings):
    """Each setting is an attribute: `config.retention_ms`. It stays as it is; an alteration makes a new one."""

    def __init__(self, overrides: Mapping[str, str], broker: BrokerConfig) -> None:
        """InvalidConfigError if an override is wrong by itself."""
        self.overrides = dict(overrides)
        self._broker = broker
        values = {}
        problems = [
            f"{name} is not a topic's setting{did_you_mean(name, TOPIC_SETTINGS)}"
            for name in overrides
            if name not in TOPIC_SETTINGS
        ]
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

    def check(self) -> None:
        """InvalidConfigError if the settings contradict one another.

        That is asked when a topic is altered. A topic that was right then is served on, whatever became of its broker.
        """
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            raise InvalidConfigError(
                f"min.compaction.lag.ms is {self.min_compaction_lag_ms}, but it must not be larger than "
                f"max.compaction.lag.ms, which is {self.max_compaction_lag_ms}"
            )
        if self.remote_storage_enable:
            raise InvalidConfigError("remote.storage.enable cannot be true: there is no tiered storage here")

    def describe(self, names: Collection[str] | None = None) -> list[ConfigEntry]:
        """The settings as DescribeConfigs has them; `names` restricts them."""
        return [
            self._entry(setting)
            for name, setting in TOPIC_SETTINGS.items()
            if (not setting.internal or name in self.overrides) and (names is None or name in names)
        ]

    def source(self, name: str) -> ConfigSource:
        """Where the value that holds comes from.

        A description may say otherwise: in Kafka's, one that the broker gives in hours has the source of a default.
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
            documentation=setting.doc,
            synonyms=synonyms,
        )


def _inherited(setting: Setting[Any], broker: BrokerConfig) -> Any:
    for attribute, factor in _INHERITED.get(setting.name, ()):
        value = getattr(broker, attribute)
        if value is None:
            continue
        if setting.name == "retention.ms":
            return max(-1, value * factor)  # any negative number is for ever
        return value if factor == 1 else value * factor
    return setting.default
