"""What a name in a server.properties stands for.

Most names stand for themselves. `listener.name.<listener>.<name>` stands for a setting of one listener, and before some
names about authentication there may be a SASL mechanism as well: `listener.name.<listener>.<mechanism>.<name>`.
"""

from typing import Any

from broker.config.definitions.group import GroupSettings
from broker.config.definitions.ignored import IGNORED, IGNORED_CLUSTER_WIDE, IGNORED_PER_BROKER, IGNORED_PREFIXES
from broker.config.definitions.log import LogSettings
from broker.config.definitions.network import NetworkSettings
from broker.config.definitions.replication import ReplicationSettings
from broker.config.definitions.security import SecuritySettings
from broker.config.definitions.topic import SYNONYMS
from broker.config.definitions.transaction import TransactionSettings
from broker.config.errors import did_you_mean
from broker.config.setting import CLUSTER_WIDE, PER_BROKER, READ_ONLY, Setting, UpdateMode, settings_of


class BrokerSettings(
    NetworkSettings, LogSettings, ReplicationSettings, GroupSettings, TransactionSettings, SecuritySettings
):
    """Every setting of a broker that has an effect."""


SETTINGS: dict[str, Setting[Any]] = settings_of(BrokerSettings)

LISTENER_PREFIX = "listener.name."
MECHANISM_SETTINGS = (
    "connections.max.reauth.ms",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
)


def base_name(name: str) -> str:
    """The name without the listener, and the mechanism, that it is meant for."""
    if not name.startswith(LISTENER_PREFIX):
        return name
    _, _, key = name.removeprefix(LISTENER_PREFIX).partition(".")
    for mechanism_setting in MECHANISM_SETTINGS:
        if key.endswith("." + mechanism_setting):
            return mechanism_setting
    return key


def is_ignored(name: str) -> bool:
    return name in IGNORED or name.startswith(IGNORED_PREFIXES)


def update_mode(name: str) -> UpdateMode:
    base = base_name(name)
    if base in SETTINGS:
        return SETTINGS[base].update_mode
    if base in IGNORED_CLUSTER_WIDE:
        return CLUSTER_WIDE
    return PER_BROKER if base in IGNORED_PER_BROKER else READ_ONLY


def unknown_name(name: str) -> str:
    """The sentence about a name that nobody knows."""
    base = base_name(name)
    if base in SYNONYMS:  # a topic's name, where the broker's is meant
        return f"{name} is a topic's setting; the broker's is {SYNONYMS[base][0][0]}"
    return f"{name} is not a setting that Kafka knows{did_you_mean(base, [*SETTINGS, *IGNORED])}"
