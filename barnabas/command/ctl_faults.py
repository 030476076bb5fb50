"""`barnabas ctl faults`: add, list and remove the faults of a running broker."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from barnabas.command.ctl_connection import add_control, runs
from barnabas.command.ending import UsageError
from barnabas.command.parser import add_actions
from barnabas.command.table import as_json, render
from barnabas.command.values import duration
from barnabas.control import ControlClient

_COLUMNS = {"id": "ID", "fault": "FAULT", "seen": "SEEN", "hits": "HITS", "over": "OVER"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_control(parser)
    actions = add_actions(parser)
    add = _add(actions, "add", _added, "add one fault, such as api=Produce error=NOT_COORDINATOR")
    add.add_argument("fields", nargs="+", metavar="FIELD=VALUE")
    load = _add(actions, "load", _loaded, "add the faults of a YAML or JSON file")
    load.add_argument("file", metavar="FILE")
    _add(actions, "list", lambda options, client: client.call("GET", "/faults"), "show the faults and their hits")
    remove = _add(actions, "remove", _removed, "remove one fault")
    remove.add_argument("id", metavar="ID", type=int)
    _add(actions, "clear", lambda options, client: client.call("DELETE", "/faults"), "remove all faults")
    stop = _add(actions, "stop", _stopped, "make the broker answer nobody for a while")
    stop.add_argument("seconds", metavar="DURATION", type=duration, help="how long: 500ms, 10s")
    _add(actions, "resume", lambda options, client: client.call("POST", "/faults/resume"), "end such a stop early")


def _add(actions: Any, name: str, ask: Callable[[argparse.Namespace, ControlClient], Any], summary: str) -> Any:
    def act(options: argparse.Namespace, client: ControlClient) -> int:
        faults = ask(options, client)
        if faults is not None:
            print(as_json(faults) if options.json else _table(faults))
        return 0

    parser = actions.add_parser(name, help=summary, description=summary)
    parser.set_defaults(run=runs(act))
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    add_control(parser)
    return parser


def _added(options: argparse.Namespace, client: ControlClient) -> Any:
    return [client.call("POST", "/faults", dict(_field(text) for text in options.fields))]


def _loaded(options: argparse.Namespace, client: ControlClient) -> Any:
    from barnabas.broker.testing.faults.script import ScriptError, load

    try:
        faults = load(options.file)
    except ScriptError as error:
        raise UsageError(str(error)) from None
    return client.call("POST", "/faults", faults)


def _removed(options: argparse.Namespace, client: ControlClient) -> None:
    client.call("DELETE", f"/faults/{options.id}")


def _stopped(options: argparse.Namespace, client: ControlClient) -> None:
    client.call("POST", "/faults/stop", {"ms": round(options.seconds * 1000)})


def _field(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"{text!r} is not of the form FIELD=VALUE")
    if value in ("true", "false"):
        return name, value == "true"
    if name == "api" and "," in value:
        return name, value.split(",")
    for number in (int, float):
        # Names and version ranges stay text, even if they look like numbers.
        if name in ("topic", "group", "client_id", "principal", "transactional_id", "versions"):
            break
        try:
            return name, number(value)
        except ValueError:
            pass
    return name, value


def _table(faults: list[dict[str, Any]]) -> str:
    rows = []
    for fault in faults:
        fields = " ".join(f"{name}={_text(value)}" for name, value in fault.items() if name not in _COLUMNS)
        rows.append({**fault, "fault": fields})
    return render(_COLUMNS, rows)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
