"""What a name in a server.properties stands for.

Most names stand for themselves. `listener.name.<listener>.<name>` stands for a setting of one listener, and some names
about authentication may have a SASL mechanism in front of them: `listener.name.<listener>.<mechanism>.<name>`.
"""

from typing import Any

from barnabas.broker.config.definitions.cluster import ClusterSettings
from barnabas.broker.config.definitions.group import GroupSettings
from barnabas.broker.config.definitions.ignored import (
    IGNORED,
    IGNORED_CLUSTER_WIDE,
    IGNORED_PER_BROKER,
    IGNORED_PREFIXES,
)
from barnabas.broker.config.definitions.log import LogSettings
from barnabas.broker.config.definitions.network import NetworkSettings
from barnabas.broker.config.definitions.quota import QuotaSettings
from barnabas.broker.config.definitions.replication import ReplicationSettings
from barnabas.broker.config.definitions.security import SecuritySettings
from barnabas.broker.config.definitions.share_coordinator import ShareCoordinatorSettings
from barnabas.broker.config.definitions.share_group import ShareGroupSettings
from barnabas.broker.config.definitions.topic import SYNONYMS
from barnabas.broker.config.definitions.transaction import TransactionSettings
from barnabas.broker.config.errors import did_you_mean
from barnabas.broker.config.setting import CLUSTER_WIDE, PER_BROKER, READ_ONLY, Setting, UpdateMode, settings_of


class BrokerSettings(
    NetworkSettings,
    LogSettings,
    ReplicationSettings,
    GroupSettings,
    TransactionSettings,
    ShareGroupSettings,
    ShareCoordinatorSettings,
    SecuritySettings,
    QuotaSettings,
    ClusterSettings,
):
    """Every setting of a broker that Barnabas declares."""


SETTINGS: dict[str, Setting[Any]] = settings_of(BrokerSettings)

LISTENER_PREFIX = "listener.name."
MECHANISM_SETTINGS = (
    "connections.max.reauth.ms",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
)


# A listener looks for these as `listener.name.<listener>.…` first.
PER_LISTENER: dict[str, Setting[Any]] = {
    name: setting
    for name, setting in settings_of(SecuritySettings).items()
    if name.startswith(("ssl.", "sasl.", "connections."))
}
# How many connections a listener accepts. A listener without a value of its own has the broker's.
LISTENER_LIMITS = ("max.connections", "max.connection.creation.rate")
# As in Kafka, this one has no effect unless it is set for one listener and one mechanism.
ONLY_PER_LISTENER = ("sasl.jaas.config",)


def base_name(name: str) -> str:
    """The name without its listener and mechanism."""
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
    """The sentence about a name that neither Kafka nor Barnabas knows."""
    base = base_name(name)
    if base in SYNONYMS:  # a topic's name instead of the broker's
        return f"{name} is a topic setting; the broker setting is {SYNONYMS[base][0][0]}"
    return f"{name} is not a Kafka setting{did_you_mean(base, [*SETTINGS, *IGNORED])}"
