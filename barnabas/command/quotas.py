"""`barnabas quotas`: how much users, client ids and addresses may use."""

from __future__ import annotations

import argparse
from typing import Any, Final

from barnabas.client.client import Client
from barnabas.client.quota_admin import Quotas, quotas, set_quotas
from barnabas.command.arguments import add_action, add_client_actions
from barnabas.command.ending import UsageError
from barnabas.command.table import as_json, render

_KEYS: Final = {
    "producer_byte_rate": "bytes per second that are written",
    "consumer_byte_rate": "bytes per second that are read",
    "request_percentage": "percent of a thread's time that requests take",
    "controller_mutation_rate": "partitions per second that are created or deleted",
    "connection_creation_rate": "connections per second that an address opens",
}
_KINDS: Final = ("user", "client-id", "ip")
_DEFAULT: Final = "(default)"
_COLUMNS: Final = {"user": "USER", "client-id": "CLIENT-ID", "ip": "IP", "quota": "QUOTA", "value": "VALUE"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    width = max(map(len, _KEYS)) + 2
    keys = "".join(f"\n  {key:{width}}{meaning}" for key, meaning in _KEYS.items())
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"quotas:{keys}"
    actions = add_client_actions(parser)
    list_ = add_action(actions, "list", _list, "list all quotas, or those of a user, client id or address")
    _add_entity(list_)

    set_ = add_action(actions, "set", _set, "set quotas of a user, a client id, both together, or an address")
    _add_entity(set_)
    set_.add_argument("values", metavar="QUOTA=VALUE", nargs="+", type=_assignment)

    unset = add_action(actions, "unset", _unset, "remove quotas")
    _add_entity(unset)
    unset.add_argument("keys", metavar="QUOTA", nargs="+", choices=[*_KEYS])


def _add_entity(parser: Any) -> None:
    for kind, whose in (("user", "a user"), ("client-id", "a client id"), ("ip", "an address")):
        one = parser.add_mutually_exclusive_group()
        one.add_argument(f"--{kind}", metavar="NAME", help=f"the quotas of {whose}")
        one.add_argument(f"--default-{kind}", action="store_true", help=f"of every {kind} without quotas of its own")


def _assignment(text: str) -> tuple[str, float]:
    key, _, number = text.partition("=")
    if key not in _KEYS:
        raise argparse.ArgumentTypeError(f"{key!r} is not a quota; there are {', '.join(_KEYS)}")
    try:
        return key, float(number)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form {key}=NUMBER") from None


def _entity(options: argparse.Namespace) -> dict[str, str | None]:
    entity: dict[str, str | None] = {}
    for kind in _KINDS:
        attribute = kind.replace("-", "_")
        if getattr(options, f"default_{attribute}"):
            entity[kind] = None
        elif getattr(options, attribute) is not None:
            entity[kind] = getattr(options, attribute)
    return entity


def _list(client: Client, options: argparse.Namespace) -> int:
    found = sorted(quotas(client, _entity(options)), key=_order)
    if options.json:
        print(as_json([{"entity": dict(each.entity), "quotas": dict(sorted(each.values.items()))} for each in found]))
        return 0
    rows = [
        {**{kind: _shown(each, kind) for kind in _KINDS}, "quota": key, "value": f"{value:.15g}"}
        for each in found
        for key, value in sorted(each.values.items())
    ]
    print(render(_COLUMNS, rows))
    return 0


def _order(each: Quotas) -> list[tuple[str, bool, str]]:
    return [(kind, name is not None, name or "") for kind, name in sorted(each.entity.items(), reverse=True)]


def _shown(each: Quotas, kind: str) -> str | None:
    if kind not in each.entity:
        return None
    name = each.entity[kind]
    return _DEFAULT if name is None else name


def _set(client: Client, options: argparse.Namespace) -> int:
    set_quotas(client, _somebody(options), dict(options.values))
    return 0


def _unset(client: Client, options: argparse.Namespace) -> int:
    set_quotas(client, _somebody(options), dict.fromkeys(options.keys))
    return 0


def _somebody(options: argparse.Namespace) -> dict[str, str | None]:
    entity = _entity(options)
    if not entity:
        raise UsageError("whose quotas? Give --user, --client-id, --ip, or --default-… of these")
    return entity
