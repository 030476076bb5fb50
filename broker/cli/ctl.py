"""`barnabas ctl`: ask something of a broker that was started with --control."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from barnabas.client import ControlClient
from barnabas.errors import BarnabasError
from broker.cli.arguments import assignment

_URL_VARIABLE: Final = "BARNABAS_CONTROL"
_TOKEN_VARIABLE: Final = "BARNABAS_CONTROL_TOKEN"

# Those that have more to them are modules of their own, with add_arguments(parser) and run(options, client).
_MODULES: Final[dict[str, tuple[str, str]]] = {
    "faults": ("broker.cli.ctl_faults", "let requests fail, wait or get lost"),
    "journal": ("broker.cli.ctl_journal", "look into the journal of all requests"),
    "strict": ("broker.cli.ctl_strict", "show what clients did against the protocol"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--url", default=os.environ.get(_URL_VARIABLE), help=f"of the control interface ({_URL_VARIABLE})"
    )
    parser.add_argument(
        "--token", default=os.environ.get(_TOKEN_VARIABLE), help=f"that it asks for ({_TOKEN_VARIABLE})"
    )
    actions = parser.add_subparsers(title="what to ask", dest="action", metavar="ACTION", required=True)

    state = actions.add_parser("state", help="print what the broker knows, as JSON")
    state.add_argument("part", nargs="?", help="topics, groups, transactions, producers, connections or clock")
    state.set_defaults(ask=_state)

    clock = actions.add_parser("clock", help="show the broker's clock, or move it")
    clock.add_argument("move", nargs="?", choices=["advance"])
    clock.add_argument("seconds", nargs="?", type=_seconds, help="how far: 90, 45s, 10m, 2h or 7d")
    clock.set_defaults(ask=_clock)

    topic = actions.add_parser("create-topic", help="create a topic")
    topic.add_argument("name")
    topic.add_argument("--partitions", type=int)
    topic.add_argument("--config", metavar="KEY=VALUE", type=assignment, action="append", default=[])
    topic.set_defaults(ask=_create_topic)

    actions.add_parser("reset", help="empty the broker").set_defaults(ask=_reset)

    snapshot = actions.add_parser("snapshot", help="keep the present state")
    snapshot.add_argument("name", nargs="?")
    snapshot.set_defaults(ask=_snapshot)
    actions.add_parser("snapshots", help="list the states that were kept").set_defaults(ask=_snapshots)
    restore = actions.add_parser("restore", help="bring a kept state back")
    restore.add_argument("name")
    restore.set_defaults(ask=_restore)

    stop = actions.add_parser("stop", help="stop the broker")
    stop.set_defaults(ask=_stop)

    for name, (module, summary) in _MODULES.items():
        command = actions.add_parser(name, help=summary, description=summary)
        found = import_module(module)
        found.add_arguments(command)
        command.set_defaults(act=found.run)


def run(options: argparse.Namespace) -> int:
    if not options.url or not options.token:
        missing = f"--url or {_URL_VARIABLE}" if not options.url else f"--token or {_TOKEN_VARIABLE}"
        print(f"barnabas: where is the broker? {missing} is missing", file=sys.stderr)
        return 2
    client = ControlClient(options.url, options.token)
    try:
        if hasattr(options, "act"):
            status: int = options.act(options, client)
            return status
        ask: Callable[[argparse.Namespace, ControlClient], Any] = options.ask
        answer = ask(options, client)
    except (BarnabasError, TimeoutError) as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return 1
    if answer is not None:
        print(json.dumps(answer, indent=2))
    return 0


def _state(options: argparse.Namespace, client: ControlClient) -> Any:
    return client.call("GET", f"/state/{options.part}" if options.part else "/state")


def _clock(options: argparse.Namespace, client: ControlClient) -> Any:
    if options.move is None:
        return client.call("GET", "/clock")
    if options.seconds is None:
        raise BarnabasError("how far is the clock to be moved?")
    return client.call("POST", "/clock/advance", {"seconds": options.seconds}, timeout=300.0)


def _create_topic(options: argparse.Namespace, client: ControlClient) -> Any:
    topic: dict[str, Any] = {"name": options.name, "configs": dict(options.config)}
    if options.partitions is not None:
        topic["partitions"] = options.partitions
    return client.call("POST", "/topics", topic)


def _reset(options: argparse.Namespace, client: ControlClient) -> Any:
    return client.call("POST", "/reset")


def _snapshot(options: argparse.Namespace, client: ControlClient) -> Any:
    return client.call("POST", "/snapshots", {"name": options.name} if options.name else {})


def _snapshots(options: argparse.Namespace, client: ControlClient) -> Any:
    return client.call("GET", "/snapshots")


def _restore(options: argparse.Namespace, client: ControlClient) -> Any:
    return client.call("POST", f"/snapshots/{options.name}/restore")


def _stop(options: argparse.Namespace, client: ControlClient) -> Any:
    return client.call("POST", "/stop")


def _seconds(text: str) -> float:
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1)
    try:
        return float(number) * unit
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 90, 45s, 10m, 2h or 7d") from None
