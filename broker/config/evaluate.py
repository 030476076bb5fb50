"""From texts to typed values: what a server.properties, the command line and alterations come to together."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from broker.config.consistency import contradictions
from broker.config.errors import ConfigError, InvalidConfigError
from broker.config.listeners import Listeners, resolve_listeners
from broker.config.names import SETTINGS, BrokerSettings, base_name, is_ignored, unknown_name
from broker.config.values import Strings

Texts = Mapping[str, str]

_DEFAULTS = {setting.attribute: setting.default for setting in SETTINGS.values()}


class Evaluation(NamedTuple):
    values: dict[str, Any]  # by attribute, all settings
    listener_values: dict[str, Any]  # by full name, `listener.name.…`
    listeners: Listeners
    ignored: Strings  # names that were given and have no effect


def evaluate(texts: Texts, origins: Texts) -> Evaluation:
    """The typed values of texts, or a ConfigError with all that is wrong; `origins` says where a text stands.

    Contradictions are looked for only among values that are right one by one.
    """
    values = dict(_DEFAULTS)
    listener_values = {}
    ignored = []
    problems = []
    for name, text in texts.items():
        base = base_name(name)
        setting = SETTINGS.get(base)
        origin = f"{origins[name]}: " if name in origins else ""
        if setting is not None:
            try:
                value = setting.parse(text, name)
            except InvalidConfigError as error:
                problems.append(f"{origin}{error}")
                continue
            if name == base:
                values[setting.attribute] = value
            else:
                listener_values[name] = value
        elif is_ignored(base):
            ignored.append(name)
        else:
            problems.append(origin + unknown_name(name))
    if problems:
        raise ConfigError(problems)

    settings = BrokerSettings()
    settings.__dict__.update(values)
    problems += contradictions(settings)
    try:
        listeners = resolve_listeners(
            settings.listeners,
            settings.advertised_listeners,
            settings.listener_security_protocol_map,
            settings.inter_broker_listener_name,
            texts.get("security.inter.broker.protocol"),
            settings.controller_listener_names,
        )
    except ConfigError as error:
        raise ConfigError([*problems, *error.problems]) from None
    if listeners.inter_broker.security_protocol.startswith("SASL_"):
        mechanism = settings.sasl_mechanism_inter_broker_protocol
        if mechanism not in settings.sasl_enabled_mechanisms:
            problems.append(
                f"sasl.mechanism.inter.broker.protocol is {mechanism}, but it must be among sasl.enabled.mechanisms"
            )
    if problems:
        raise ConfigError(problems)
    return Evaluation(values, listener_values, listeners, tuple(ignored))
