"""`barnabas ctl strict`: what clients of a running broker did against the protocol."""

from __future__ import annotations

import argparse
import json

from barnabas.client import ControlClient


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=["show", "on", "off", "clear"], default="show")
    parser.add_argument("--json", action="store_true", help="print the reports as JSON lines")


def run(options: argparse.Namespace, client: ControlClient) -> int:
    """Shows the reports; the status is 1 if there are any, so that a script can tell."""
    if options.action in ("on", "off"):
        client.call("POST", "/strict", {"on": options.action == "on"})
        return 0
    if options.action == "clear":
        client.call("DELETE", "/strict")
        return 0
    reports = client.call("GET", "/strict")["reports"]
    for report in reports:
        if options.json:
            print(json.dumps(report))
        else:
            times = "" if report["count"] == 1 else f" ({report['count']} times)"
            who = f"{report['client_id']!r} at {report['peer']}"
            print(f"{report['rule']}: {who}: {report['message']}{times} [{report['reference']}]")
    return 1 if reports else 0
