"""From texts to typed values: what a server.properties, the command line and alterations add up to."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from barnabas.broker.config.consistency import contradictions
from barnabas.broker.config.definitions.ignored import ALTERABLE_KINDS, REFUSED
from barnabas.broker.config.errors import ConfigError, InvalidConfigError
from barnabas.broker.config.listeners import Listeners, resolve_listeners
from barnabas.broker.config.names import (
    LISTENER_LIMITS,
    ONLY_PER_LISTENER,
    PER_LISTENER,
    SETTINGS,
    BrokerSettings,
    base_name,
    is_ignored,
    unknown_name,
)
from barnabas.broker.config.values import Strings

Texts = Mapping[str, str]

_PER_LISTENER = {*PER_LISTENER, *LISTENER_LIMITS}
_DEFAULTS = {setting.attribute: setting.default for setting in SETTINGS.values()}


class Evaluation(NamedTuple):
    values: dict[str, Any]  # all settings, by attribute
    listener_values: dict[str, Any]  # by full name, `listener.name.…`
    listeners: Listeners
    without_effect: Strings  # names that are set and ignored


def evaluate(texts: Texts, origins: Texts) -> Evaluation:
    """The typed values of texts, or a ConfigError with all problems; `origins` says where each text was written.

    Checks for contradictions only if every value is valid by itself.
    """
    values = dict(_DEFAULTS)
    listener_values = {}
    without_effect = []
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
            if setting.is_ignored(value):
                if setting.effect.refusal is None:
                    without_effect.append(name)
                else:
                    problems.append(f"{origin}{name} is not supported: {setting.effect.refusal}")
            elif base in ONLY_PER_LISTENER if name == base else setting.effect.works and base not in _PER_LISTENER:
                without_effect.append(name)
        elif base in REFUSED:
            if text.strip() not in REFUSED[base].harmless:
                problems.append(f"{origin}{name} is not supported: {REFUSED[base].why}")
        elif is_ignored(base):
            kind = ALTERABLE_KINDS.get(base)
            if kind is not None and not kind.is_valid(text.strip()):
                problems.append(f"{origin}{name} is {text!r}, but it must be {kind.expected}")
            without_effect.append(name)
        else:
            problems.append(origin + unknown_name(name))
    if problems:
        raise ConfigError(problems)

    settings = BrokerSettings()
    settings.__dict__.update(values)
    problems += contradictions(settings)
    between_brokers_is_set = "security.inter.broker.protocol" in texts
    try:
        listeners = resolve_listeners(
            settings.listeners,
            settings.advertised_listeners,
            settings.listener_security_protocol_map,
            settings.inter_broker_listener_name,
            settings.security_inter_broker_protocol if between_brokers_is_set else None,
            settings.controller_listener_names,
        )
    except ConfigError as error:
        raise ConfigError([*problems, *error.problems]) from None
    if problems:
        raise ConfigError(problems)
    return Evaluation(values, listener_values, listeners, tuple(without_effect))
