"""`barnabas ctl strict`: where clients of a running broker broke the rules of the protocol."""

from __future__ import annotations

import argparse
from http import HTTPStatus

from barnabas.command.ctl_connection import add_control, runs
from barnabas.command.ending import UsageError
from barnabas.command.table import as_json
from barnabas.control import ControlClient
from barnabas.errors import ControlFailed
from barnabas.printable import printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=["show", "on", "off", "clear"], default="show")
    parser.add_argument("--json", action="store_true", help="print the reports as JSON lines")
    add_control(parser)
    parser.set_defaults(run=runs(run))


def run(options: argparse.Namespace, client: ControlClient) -> int:
    """Shows the reports. The exit code is 1 if there are any, so that a script can tell."""
    if options.action in ("on", "off"):
        client.call("POST", "/strict", {"on": options.action == "on"})
        return 0
    if options.action == "clear":
        client.call("DELETE", "/strict")
        return 0
    try:
        reports = client.call("GET", "/strict")["reports"]
    except ControlFailed as error:
        if error.status == HTTPStatus.CONFLICT:  # strict mode is off; 1 would look like reports
            raise UsageError(str(error)) from None
        raise
    for report in reports:
        if options.json:
            print(as_json(report, one_line=True))
        else:
            times = "" if report["count"] == 1 else f" ({report['count']} times)"
            who = f"{report['client_id']!r} at {report['peer']}"
            print(printable(f"{report['rule']}: {who}: {report['message']}{times} [{report['reference']}]"))
    return 1 if reports else 0
