"""`barnabas ctl journal`: show the journal of a running broker, follow it, turn it on and off."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any, Final

from barnabas.command.ctl_connection import add_control, runs
from barnabas.command.table import as_json as json_text
from barnabas.control import ControlClient
from barnabas.journal import line_of

_FILTERS: Final = {
    "--api": "only these APIs, separated by commas",
    "--client-id": "of this client",
    "--topic": "about this topic",
    "--partition": "about this partition",
    "--group": "about this group",
    "--transactional-id": "about this transactional id",
    "--error": "with this error, or 'any', or 'none'",
    "--outcome": "answered, 'no answer due', closed or misunderstood",
    "--since": "after the entry with this number",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=["show", "follow", "on", "off", "clear"], default="show")
    for name, summary in _FILTERS.items():
        parser.add_argument(name, metavar=name.lstrip("-").upper(), help=summary)
    parser.add_argument("--limit", metavar="N", help="only the last N entries")
    parser.add_argument("--json", action="store_true", help="print whole entries, as JSON lines")
    add_control(parser)
    parser.set_defaults(run=runs(run))


def run(options: argparse.Namespace, client: ControlClient) -> int:
    if options.action in ("on", "off"):
        client.call("POST", "/journal", {"on": options.action == "on"})
    elif options.action == "clear":
        client.call("DELETE", "/journal")
    else:
        names = [name.lstrip("-").replace("-", "_") for name in _FILTERS]
        query = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
        if options.action == "follow":
            _print(client.lines("GET", "/journal/follow", query=query), options.json)
        else:
            if options.limit is not None:
                query["limit"] = options.limit
            _print(client.lines("GET", "/journal", query=query), options.json)
    return 0


def _print(entries: Iterable[Any], as_json: bool) -> None:
    for entry in entries:
        print(json_text(entry, one_line=True) if as_json else line_of(entry), flush=True)
