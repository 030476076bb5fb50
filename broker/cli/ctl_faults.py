"""`barnabas ctl faults`: add, list and remove faults of a running broker."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from barnabas.client import ControlClient
from broker.cli.table import render

_COLUMNS = {"id": "ID", "fault": "FAULT", "seen": "SEEN", "hits": "HITS", "over": "OVER"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="what to do", dest="faults_action", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="add one fault: FIELD=VALUE ..., as in api=Produce error=NOT_COORDINATOR")
    add.add_argument("fields", nargs="+", metavar="FIELD=VALUE")
    load = actions.add_parser("load", help="add the faults of a YAML or JSON file")
    load.add_argument("file")
    actions.add_parser("list", help="show the faults and how often they happened")
    remove = actions.add_parser("remove", help="remove one fault")
    remove.add_argument("id", type=int)
    actions.add_parser("clear", help="remove all faults")
    stop = actions.add_parser("stop", help="let the broker answer nobody for a while")
    stop.add_argument("ms", type=int)
    actions.add_parser("resume", help="let a stopped broker go on")


def run(options: argparse.Namespace, client: ControlClient) -> int:
    action = options.faults_action
    if action == "add":
        try:
            fault = dict(_field(text) for text in options.fields)
        except ValueError as error:
            print(f"barnabas: {error}", file=sys.stderr)
            return 2
        _show([client.call("POST", "/faults", fault)])
    elif action == "load":
        return _load(options.file, client)
    elif action == "list":
        _show(client.call("GET", "/faults"))
    elif action == "remove":
        client.call("DELETE", f"/faults/{options.id}")
    elif action == "clear":
        client.call("DELETE", "/faults")
    elif action == "stop":
        client.call("POST", "/faults/stop", {"ms": options.ms})
    else:
        client.call("POST", "/faults/resume")
    return 0


def _load(path: str, client: ControlClient) -> int:
    from broker.testing.faults.script import ScriptError, load

    try:
        faults = load(path)
    except ScriptError as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return 2
    _show(client.call("POST", "/faults", faults))
    return 0


def _field(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"{text!r} is not of the form FIELD=VALUE")
    if value in ("true", "false"):
        return name, value == "true"
    if name == "api" and "," in value:
        return name, value.split(",")
    for number in (int, float):
        # Names and ranges of versions stay text, even where they look like numbers.
        if name in ("topic", "group", "client_id", "principal", "transactional_id", "versions"):
            break
        try:
            return name, number(value)
        except ValueError:
            pass
    return name, value


def _show(faults: list[dict[str, Any]]) -> None:
    rows = []
    for fault in faults:
        fields = " ".join(f"{name}={_text(value)}" for name, value in fault.items() if name not in _COLUMNS)
        rows.append({**fault, "fault": fields})
    print(render(_COLUMNS, rows))


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
