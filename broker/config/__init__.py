"""Settings, by Kafka's own names: read, checked, described and altered.

    config = BrokerConfig.load("server.properties", ["num.partitions=3"])
    config.num_partitions

To add a setting, declare it in one of the modules of `definitions`, and remove its name from `definitions.ignored`. A
setting either works, or is declared to have no effect: then the broker warns when it is set, or refuses to start if
ignoring it would weaken security or lose data.
"""

from barnabas.broker.config.alter import (
    Operation,
    OperationKind,
    alter_broker_config,
    alter_group_config,
    alter_topic_config,
    new_topic_config,
    replace_broker_config,
    replace_group_config,
    replace_topic_config,
)
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.describe import ConfigEntry, ConfigSource, ConfigSynonym
from barnabas.broker.config.errors import ConfigError, InvalidConfigError, InvalidConfigRequestError
from barnabas.broker.config.listeners import Listener
from barnabas.broker.config.topic_config import TopicConfig
from barnabas.broker.config.values import ConfigType

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
    "alter_group_config",
    "alter_topic_config",
    "new_topic_config",
    "replace_broker_config",
    "replace_group_config",
    "replace_topic_config",
]
