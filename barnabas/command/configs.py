"""`barnabas configs`: the settings of topics, brokers and groups, and where they come from."""

from __future__ import annotations

import argparse
from typing import Any, Final

from barnabas.client.client import Client
from barnabas.client.config_admin import (
    ALL_BROKERS,
    KINDS,
    Setting,
    alter_settings,
    resources,
    settings_of,
)
from barnabas.client.errors import ClientError
from barnabas.command.arguments import add_action, add_client_actions
from barnabas.command.table import as_json, render
from barnabas.command.values import assignment
from barnabas.printable import printable

SETTING_COLUMNS: Final = {"name": "CONFIG", "value": "VALUE", "source": "SET-BY"}
_LISTED: Final = {"type": "TYPE", "resource": "NAME", **SETTING_COLUMNS}
_DESCRIBED: Final = {**SETTING_COLUMNS, "read_only": "READ-ONLY"}
_HIDDEN: Final = "(hidden)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "TYPE is topic, broker or group. Name a broker by its id, or use 'default' for all brokers.\n"
        "SET-BY says where a value comes from: topic, broker, cluster (set for all brokers), group, server.properties\n"
        "(or the command line of serve), default."
    )
    actions = add_client_actions(parser)

    list_ = add_action(actions, "list", _list, "list the settings that differ from the defaults")
    list_.add_argument("kind", metavar="TYPE", nargs="?", type=_kind, choices=KINDS, help="(default: all types)")

    describe = add_action(actions, "describe", _describe, "show all settings of a topic, broker or group")
    _add_resource(describe)
    describe.add_argument("keys", metavar="KEY", nargs="*", help="only these settings")

    set_ = add_action(actions, "set", _set, "change settings of a topic, broker or group")
    _add_resource(set_)
    set_.add_argument("assignments", metavar="KEY=VALUE", nargs="+", type=assignment)

    unset = add_action(actions, "unset", _unset, "set settings back to their defaults")
    _add_resource(unset)
    unset.add_argument("keys", metavar="KEY", nargs="+")


def _add_resource(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", metavar="TYPE", type=_kind, choices=KINDS, help="topic, broker or group")
    parser.add_argument("name", metavar="RESOURCE", help=f"a topic, a broker's id or '{ALL_BROKERS}', or a group")


def _kind(text: str) -> str:
    """Kafka's own tool uses the plural."""
    return text.removesuffix("s")


def row(setting: Setting) -> dict[str, Any]:
    return setting._asdict()


def _list(client: Client, options: argparse.Namespace) -> int:
    rows = [
        {"type": kind, "resource": name, **row(setting)}
        for kind in ([options.kind] if options.kind else KINDS)
        for name in resources(client, kind)
        for setting in settings_of(client, kind, name)
        # A resource also describes what it inherits. That is listed where it is set.
        if setting.source == kind or (kind == "broker" and setting.source == _own_source(name))
    ]
    print(as_json(rows) if options.json else render(_LISTED, _shown(rows)))
    return 0


def _own_source(broker: str) -> str:
    """The other source of settings that are listed with a broker."""
    return "cluster" if broker == ALL_BROKERS else "server.properties"


def _describe(client: Client, options: argparse.Namespace) -> int:
    found = settings_of(client, options.kind, options.name, options.keys or None)
    missing = [key for key in options.keys if key not in {setting.name for setting in found}]
    if missing:
        raise ClientError(f"{options.kind} '{options.name}' has no setting {' or '.join(map(repr, missing))}")
    rows = [row(setting) for setting in found]
    print(as_json(rows) if options.json else render(_DESCRIBED, _shown(rows)))
    return 0


def _set(client: Client, options: argparse.Namespace) -> int:
    put = dict(options.assignments)
    alter_settings(client, options.kind, options.name, put=put)
    return _report(options, [f"set {key}={value}" for key, value in put.items()], put)


def _unset(client: Client, options: argparse.Namespace) -> int:
    alter_settings(client, options.kind, options.name, delete=options.keys)
    return _report(options, [f"unset {key}" for key in options.keys], dict.fromkeys(options.keys))


def _report(options: argparse.Namespace, done: list[str], values: dict[str, Any]) -> int:
    if options.json:
        print(as_json({"type": options.kind, "resource": options.name, "configs": values}))
    else:
        print(printable(f"{', '.join(done)} on {options.kind} '{options.name}'"))
    return 0


def _shown(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**each, "value": _HIDDEN} if each["sensitive"] else each for each in rows]
