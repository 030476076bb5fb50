"""Settings, by Kafka's own names: read, checked, described and altered.

    config = BrokerConfig.load("server.properties", ["num.partitions=3"])
    config.num_partitions

To add a setting, declare it in one of the modules of `definitions`, and take its name out of `definitions.ignored`.
"""

from broker.config.alter import (
    Operation,
    OperationKind,
    alter_broker_config,
    alter_topic_config,
    new_topic_config,
    replace_broker_config,
    replace_topic_config,
)
from broker.config.broker_config import BrokerConfig
from broker.config.describe import ConfigEntry, ConfigSource, ConfigSynonym
from broker.config.errors import ConfigError, InvalidConfigError, InvalidConfigRequestError
from broker.config.listeners import Listener
from broker.config.topic_config import TopicConfig
from broker.config.values import ConfigType

__all__ = [
    "BrokerConfig",
    "ConfigEntry",
    "ConfigError",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "InvalidConfigError",
    "InvalidConfigRequestError",
    "Listener",
    "Operation",
    "OperationKind",
    "TopicConfig",
    "alter_broker_config",
    "alter_topic_config",
    "new_topic_config",
    "replace_broker_config",
    "replace_topic_config",
]
