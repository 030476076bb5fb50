"""A broker's configuration: what holds, typed, and where each value comes from.

A value comes from the first of these that has one: what was altered for this broker, what was altered for the whole
cluster, the file and the command line, the default. All that is wrong with them is reported at once, before anything
starts.
"""

from collections.abc import Collection, Iterable, Iterator
from itertools import dropwhile
from typing import Any, TypeVar, cast

from broker.config.definitions.topic import SYNONYMS
from broker.config.describe import ConfigEntry, ConfigSource, ConfigSynonym
from broker.config.errors import ConfigError
from broker.config.evaluate import Evaluation, Texts, evaluate
from broker.config.listeners import Listener
from broker.config.names import LISTENER_PREFIX, SETTINGS, BrokerSettings, base_name, update_mode
from broker.config.setting import READ_ONLY, Setting
from broker.config.values import ConfigType, Strings

T = TypeVar("T")

# log.retention.ms, .minutes and .hours say the same thing: describing one shows those that stand in for it.
_FAMILIES = {
    name: tuple(member for member, _ in family) for family in SYNONYMS.values() if len(family) > 1 for name, _ in family
}


class BrokerConfig(BrokerSettings):
    """Each setting is an attribute: `config.socket_request_max_bytes`.

    An alteration changes the same object in place: whoever reads an attribute when it is needed sees what holds then.
    """

    warnings: Strings  # sentences about what was accepted and has no effect
    broker_listeners: tuple[Listener, ...]
    inter_broker_listener: Listener

    def __init__(self, static: Texts | None = None, origins: Texts | None = None) -> None:
        """`static` is what the file and the command line say, `origins` where they say it."""
        self._static = _with_node_id(static or {})
        self._cluster_wide: Texts = {}
        self._this_broker: Texts = {}
        self._adopt(evaluate(self._static, origins or {}))

    @classmethod
    def load(cls, path: str | None = None, assignments: Iterable[str] = ()) -> "BrokerConfig":
        """From a server.properties and from `name=value` texts, of which the later ones win."""
        static: dict[str, str] = {}
        origins: dict[str, str] = {}
        problems = []
        if path is not None:
            from broker.config.properties import read_properties  # a start without a file should not pay for it

            for name, value, line in read_properties(path):
                static[name], origins[name] = value, f"{path}:{line}"
        for assignment in assignments:
            name, separator, value = assignment.partition("=")
            if separator and name.strip():
                static[name.strip()], origins[name.strip()] = value, "--set"
            else:
                problems.append(f"--set: {assignment!r} is not of the form name=value")
        try:
            config = cls(static, origins)
        except ConfigError as error:
            raise ConfigError([*problems, *error.problems]) from None
        if problems:
            raise ConfigError(problems)
        return config

    @property
    def data_dirs(self) -> Strings:
        """Where the logs lie."""
        return self.log_dir if self.log_dirs is None else self.log_dirs

    def for_listener(self, listener_name: str, setting: Setting[T], mechanism: str = "") -> T:
        """What holds for one listener: `config.for_listener("SSL", BrokerConfig.ssl_client_auth)`."""
        prefix = f"{LISTENER_PREFIX}{listener_name.lower()}."
        for name in (f"{prefix}{mechanism.lower()}.{setting.name}", prefix + setting.name):
            if name in self._listener_values:
                return cast(T, self._listener_values[name])
        return cast(T, getattr(self, setting.attribute))

    def try_dynamic(self, cluster_wide: Texts, this_broker: Texts) -> None:
        """ConfigError if set_dynamic would raise it; nothing changes."""
        evaluate({**self._static, **cluster_wide, **this_broker}, {})

    def set_dynamic(self, cluster_wide: Texts, this_broker: Texts) -> None:
        """These alterations hold from now on; if they are wrong, ConfigError, and nothing changes."""
        evaluation = evaluate({**self._static, **cluster_wide, **this_broker}, {})
        self._cluster_wide = dict(cluster_wide)
        self._this_broker = dict(this_broker)
        self._adopt(evaluation)

    def _adopt(self, evaluation: Evaluation) -> None:
        self.__dict__.update(evaluation.values)
        self._listener_values = evaluation.listener_values
        self.broker_listeners = evaluation.listeners.for_clients
        self.inter_broker_listener = evaluation.listeners.inter_broker
        self.warnings = tuple(_warnings(evaluation))

    @property
    def dynamic_cluster_wide(self) -> Texts:
        return self._cluster_wide

    @property
    def dynamic_this_broker(self) -> Texts:
        return self._this_broker

    def describe(self, names: Collection[str] | None = None) -> list[ConfigEntry]:
        """This broker's settings, as DescribeConfigs has them; `names` restricts them."""
        given = {**self._static, **self._cluster_wide, **self._this_broker}
        known = [name for name, setting in SETTINGS.items() if not setting.internal or name in given]
        others = [name for name in given if name not in SETTINGS]
        return [self._entry(name) for name in known + others if names is None or name in names]

    def describe_cluster_wide(self, names: Collection[str] | None = None) -> list[ConfigEntry]:
        """What was altered for the whole cluster, as DescribeConfigs has it for the broker with the empty name."""
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
            # Kafka, too, hides the value of a name that it has no type for: it may be a password.
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
            documentation=setting.doc,
            synonyms=synonyms,
        )

    def synonyms(self, name: str) -> tuple[ConfigSynonym, ...]:
        """Everything that is said about a setting, from what holds to the default.

        As Kafka has it, the list begins with the name itself: where only log.retention.hours is set, log.retention.ms
        has none.
        """
        return tuple(dropwhile(lambda synonym: synonym.name != name, self._all_synonyms(name)))

    def source(self, name: str) -> ConfigSource:
        """Where the value that holds comes from, in whichever unit it is given there."""
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
    """node.id and its older name broker.id stand for one another; a broker.id of -1 says nothing."""
    texts = dict(static)
    if texts.get("broker.id", "").strip() == "-1":
        del texts["broker.id"]
    if "broker.id" in texts:
        texts.setdefault("node.id", texts["broker.id"])
    elif "node.id" in texts:
        texts["broker.id"] = texts["node.id"]
    return texts


def _warnings(evaluation: Evaluation) -> Iterator[str]:
    if evaluation.ignored:
        yield f"known to Kafka, but without effect here: {', '.join(evaluation.ignored)}"
    if evaluation.listeners.left_out:
        yield f"listeners of a KRaft controller, which are not opened here: {', '.join(evaluation.listeners.left_out)}"
