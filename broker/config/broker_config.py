"""A broker's configuration: the typed values in force, and where each one comes from.

A value comes from the first of these that has one: the alterations for this broker, the alterations for the whole
cluster, the file and the command line, the default. All problems are reported at once, before anything starts.
"""

from collections.abc import Collection, Iterable, Iterator
from itertools import dropwhile
from typing import Any

from barnabas.broker.config.consistency import lockouts, too_large_steps
from barnabas.broker.config.definitions.security import SecuritySettings
from barnabas.broker.config.definitions.topic import SYNONYMS
from barnabas.broker.config.describe import ConfigEntry, ConfigSource, ConfigSynonym
from barnabas.broker.config.errors import ConfigError
from barnabas.broker.config.evaluate import Evaluation, Texts, evaluate
from barnabas.broker.config.listeners import Listener
from barnabas.broker.config.names import (
    LISTENER_PREFIX,
    ONLY_PER_LISTENER,
    PER_LISTENER,
    SETTINGS,
    BrokerSettings,
    base_name,
    update_mode,
)
from barnabas.broker.config.setting import READ_ONLY
from barnabas.broker.config.values import ConfigType, Strings

# log.retention.ms, .minutes and .hours mean the same thing: the description of one shows the others as synonyms.
_FAMILIES = {
    name: tuple(member for member, _ in family) for family in SYNONYMS.values() if len(family) > 1 for name, _ in family
}


class BrokerConfig(BrokerSettings):
    """Each setting is an attribute: `config.socket_request_max_bytes`.

    An alteration changes this object in place: code that reads an attribute when it needs it sees the current value.
    """

    without_effect: Strings  # the settings that are set and have no effect, by their full names
    broker_listeners: tuple[Listener, ...]
    inter_broker_listener: Listener

    def __init__(self, static: Texts | None = None, origins: Texts | None = None) -> None:
        """`static` is the content of the file and the command line, `origins` the place of each setting in them."""
        self._static = _with_node_id(static or {})
        self._cluster_wide: Texts = {}
        self._this_broker: Texts = {}
        self._adopt(evaluate(self._static, origins or {}))

    @classmethod
    def load(cls, path: str | None = None, assignments: Iterable[str] = ()) -> "BrokerConfig":
        """From a server.properties and from `name=value` texts; later ones override earlier ones."""
        static: dict[str, str] = {}
        origins: dict[str, str] = {}
        problems = []
        if path is not None:
            from barnabas.broker.config.properties import (
                read_properties,  # a start without a file should not pay for it
            )

            for name, value, line in read_properties(path):
                static[name], origins[name] = value, f"{path}:{line}"
        for assignment in assignments:
            name, separator, value = assignment.partition("=")
            if separator and name.strip():
                static[name.strip()], origins[name.strip()] = value, "--config"
            else:
                problems.append(f"--config: {assignment!r} is not of the form name=value")
        try:
            config = cls(static, origins)
        except ConfigError as error:
            raise ConfigError([*problems, *error.problems]) from None
        if problems:
            raise ConfigError(problems)
        return config

    @property
    def data_dirs(self) -> Strings:
        """Where the logs are: one directory."""
        return self.log_dir if self.log_dirs is None else self.log_dirs

    def try_dynamic(self, cluster_wide: Texts, this_broker: Texts) -> None:
        """Raise ConfigError if these alterations must not be made; change nothing."""
        values = self._evaluate_dynamic(cluster_wide, this_broker).values
        problems = list(too_large_steps(self, values))
        if problems:
            raise ConfigError(problems)

    def set_dynamic(self, cluster_wide: Texts, this_broker: Texts) -> Strings:
        """Put stored alterations into force. Returns what is wrong with those that are left out.

        They were checked when they were altered. By now they may contradict the file, or what is allowed has changed.
        """
        problems: list[str] = []
        try:
            evaluation = self._evaluate_dynamic(cluster_wide, this_broker)
        except ConfigError:
            cluster_wide = self._usable(cluster_wide, {}, problems)
            this_broker = self._usable(this_broker, cluster_wide, problems)
            evaluation = self._evaluate_dynamic(cluster_wide, this_broker)
        self._cluster_wide = dict(cluster_wide)
        self._this_broker = dict(this_broker)
        self._adopt(evaluation)
        return tuple(problems)

    def _evaluate_dynamic(self, cluster_wide: Texts, this_broker: Texts) -> Evaluation:
        evaluation = evaluate({**self._static, **cluster_wide, **this_broker}, {})
        problems = list(lockouts(evaluation.values, {*cluster_wide, *this_broker}))
        if problems:
            raise ConfigError(problems)
        return evaluation

    def _usable(self, altered: Texts, below: Texts, problems: list[str]) -> Texts:
        """The alterations that are consistent with the file, with those below, and with each other."""
        usable: dict[str, str] = {}
        for name, text in altered.items():
            try:
                self._evaluate_dynamic(below, {**usable, name: text})
            except ConfigError as error:
                problems += error.problems
            else:
                usable[name] = text
        return usable

    def _adopt(self, evaluation: Evaluation) -> None:
        self.__dict__.update(evaluation.values)
        self._listener_values = evaluation.listener_values
        self.broker_listeners = evaluation.listeners.for_clients
        self.inter_broker_listener = evaluation.listeners.inter_broker
        self.without_effect = evaluation.without_effect
        self._not_opened = evaluation.listeners.not_opened

    def for_listener(self, name: str, mechanism: str = "") -> SecuritySettings:
        """The security settings of one listener: its own where it has any, and those of the broker.

        Some are set for one SASL mechanism of the listener only.
        """
        settings = SecuritySettings()
        prefix = f"{LISTENER_PREFIX}{name.lower()}."
        own = self._listener_values
        for each, setting in PER_LISTENER.items():
            value = None if each in ONLY_PER_LISTENER else own.get(prefix + each, self.__dict__[setting.attribute])
            settings.__dict__[setting.attribute] = own.get(f"{prefix}{mechanism.lower()}.{each}", value)
        protocol = next((each.security_protocol for each in self.broker_listeners if each.name == name), "")
        if protocol == "SASL_SSL" and f"{prefix}ssl.client.auth" not in own:
            settings.__dict__["ssl_client_auth"] = "none"  # as in Kafka: its clients have passwords
        return settings

    def connection_limits_of(self, listener: str) -> tuple[int, int]:
        """`max.connections` and `max.connection.creation.rate` of one listener: its own, or those of the broker."""
        own, prefix = self._listener_values, f"{LISTENER_PREFIX}{listener.lower()}."
        return (
            own.get(f"{prefix}max.connections", self.max_connections),
            own.get(f"{prefix}max.connection.creation.rate", self.max_connection_creation_rate),
        )

    def is_protected(self, listener: str) -> bool:
        """Whether a listener is only for brokers. The limits of the whole broker do not keep them from each other."""
        return len(self.broker_listeners) > 1 and listener == self.inter_broker_listener.name

    @property
    def warnings(self) -> Strings:
        """Sentences about what is accepted and has no effect."""
        sentences = []
        if self.without_effect:
            sentences.append(f"these settings have no effect in Barnabas: {', '.join(self.without_effect)}")
        if self._not_opened:
            sentences.append(
                f"these listeners belong to a KRaft controller and are not opened: {', '.join(self._not_opened)}"
            )
        return tuple(sentences)

    def is_set(self, name: str) -> bool:
        """Whether a setting was given a value, even if that is the default."""
        return any(name in texts for texts in (self._static, self._cluster_wide, self._this_broker))

    @property
    def dynamic_cluster_wide(self) -> Texts:
        return self._cluster_wide

    @property
    def dynamic_this_broker(self) -> Texts:
        return self._this_broker

    def describe(self, names: Collection[str] | None = None) -> list[ConfigEntry]:
        """This broker's settings for DescribeConfigs; `names` selects some of them."""
        given = {**self._static, **self._cluster_wide, **self._this_broker}
        known = [name for name, setting in SETTINGS.items() if not setting.internal or name in given]
        others = [name for name in given if name not in SETTINGS]
        return [self._entry(name) for name in known + others if names is None or name in names]

    def describe_cluster_wide(self, names: Collection[str] | None = None) -> list[ConfigEntry]:
        """The alterations for the whole cluster, which DescribeConfigs shows for the broker with the empty name."""
        entries = [self._entry(name) for name in self._cluster_wide if names is None or name in names]
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        return [
            entry._replace(
                value=None if entry.sensitive else self._cluster_wide[entry.name],
                source=source,
                synonyms=tuple(synonym for synonym in entry.synonyms if synonym.source is source),
            )
            for entry in entries
        ]

    def _entry(self, name: str) -> ConfigEntry:
        setting = SETTINGS.get(base_name(name))
        synonyms = self.synonyms(name)
        source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
        if setting is None:
            # Like Kafka: a value without a type stays hidden, because it may be a password.
            return ConfigEntry(
                name, None, source, update_mode(name) is READ_ONLY, True, ConfigType.UNKNOWN, None, synonyms
            )
        value: Any = self._listener_values[name] if name in self._listener_values else getattr(self, setting.attribute)
        return ConfigEntry(
            name,
            None if setting.sensitive else setting.show(value),
            source,
            read_only=setting.update_mode is READ_ONLY or name != setting.name,
            sensitive=setting.sensitive,
            type=setting.kind.type,
            documentation=setting.documentation,
            synonyms=synonyms,
        )

    def synonyms(self, name: str) -> tuple[ConfigSynonym, ...]:
        """All values that a setting has, from the one in force to the default.

        As in Kafka, the list begins with the name itself: if only log.retention.hours is set, log.retention.ms has no
        synonyms.
        """
        return tuple(dropwhile(lambda synonym: synonym.name != name, self._all_synonyms(name)))

    def source(self, name: str) -> ConfigSource:
        """Where the value in force comes from, in whatever unit it is given there."""
        return next((synonym.source for synonym in self._all_synonyms(name)), ConfigSource.DEFAULT_CONFIG)

    def _all_synonyms(self, name: str) -> Iterator[ConfigSynonym]:
        base = base_name(name)
        family = _FAMILIES.get(name, (name,) if name == base else (name, base))
        setting = SETTINGS.get(base)
        hidden = setting is None or setting.sensitive
        layers = (
            (ConfigSource.DYNAMIC_BROKER_CONFIG, self._this_broker),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, self._cluster_wide),
            (ConfigSource.STATIC_BROKER_CONFIG, self._static),
        )
        for source, texts in layers:
            for member in family:
                if member in texts:
                    yield ConfigSynonym(member, None if hidden else texts[member], source)
        for member in family:
            if member in SETTINGS and SETTINGS[member].default is not None:
                default = SETTINGS[member].show(SETTINGS[member].default)
                yield ConfigSynonym(member, None if hidden else default, ConfigSource.DEFAULT_CONFIG)


def _with_node_id(static: Texts) -> dict[str, str]:
    """node.id and its older name broker.id mean the same; a broker.id of -1 counts as unset."""
    texts = dict(static)
    if texts.get("broker.id", "").strip() == "-1":
        del texts["broker.id"]
    if "broker.id" in texts:
        texts.setdefault("node.id", texts["broker.id"])
    elif "node.id" in texts:
        texts["broker.id"] = texts["node.id"]
    return texts
