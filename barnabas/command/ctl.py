"""`barnabas ctl`: drive a broker that was started with --control. State and answers are printed as JSON."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from barnabas.command import ctl_faults, ctl_journal, ctl_strict
from barnabas.command.ctl_connection import add_control, runs
from barnabas.command.ending import UsageError
from barnabas.command.parser import add_actions
from barnabas.command.table import as_json
from barnabas.command.values import assignment, at_least, duration
from barnabas.control import ControlClient

# An advance waits until everything that it caused has happened.
_SECONDS_TO_ADVANCE = 300.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_control(parser)
    actions = add_actions(parser)

    state = _add(actions, "state", _state, "print what the broker knows")
    state.add_argument("part", nargs="?", help="topics, groups, transactions, producers, connections or clock")

    clock = _add(actions, "clock", _clock, "show the broker's clock, or move it")
    clock.add_argument("move", nargs="?", choices=["advance"])
    clock.add_argument("seconds", metavar="DURATION", nargs="?", type=duration, help="how far: 500ms, 45s, 10m, 2h, 7d")

    topic = _add(actions, "create-topic", _create_topic, "create a topic")
    topic.add_argument("name", metavar="TOPIC")
    topic.add_argument("-p", "--partitions", metavar="N", type=at_least(1), help="(default: the broker's)")
    topic.add_argument(
        "--config", metavar="KEY=VALUE", type=assignment, action="append", default=[], help="a setting; may be repeated"
    )

    _add(actions, "reset", _reset, "empty the broker")

    snapshot = _add(actions, "snapshot", _snapshot, "save the current state")
    snapshot.add_argument("name", metavar="NAME", nargs="?")
    _add(actions, "snapshots", _snapshots, "list the saved states")
    restore = _add(actions, "restore", _restore, "restore a saved state")
    restore.add_argument("name", metavar="NAME")

    _add(actions, "stop", _stop, "stop the broker")

    for name, summary, module in (
        ("faults", "make requests fail, wait or get lost", ctl_faults),
        ("journal", "show the journal of all requests", ctl_journal),
        ("strict", "show where clients broke the rules of the protocol", ctl_strict),
    ):
        module.add_arguments(actions.add_parser(name, help=summary, description=summary))


def _add(actions: Any, name: str, ask: Callable[[argparse.Namespace, ControlClient], Any], summary: str) -> Any:
    def act(options: argparse.Namespace, client: ControlClient) -> int:
        answer = ask(options, client)
        if answer is not None:
            print(as_json(answer))
        return 0

    parser = actions.add_parser(name, help=summary, description=summary)
    parser.set_defaults(run=runs(act))
    add_control(parser)
    return parser


def _state(options: argparse.Namespace, client: ControlClient) -> Any:
    return client.call("GET", f"/state/{options.part}" if options.part else "/state")


def _clock(options: argparse.Namespace, client: ControlClient) -> Any:
    if options.move is None:
        return client.call("GET", "/clock")
    if options.seconds is None:
        raise UsageError("ctl clock advance: how far? Add a duration such as 30s")
    return client.call("POST", "/clock/advance", {"seconds": options.seconds}, timeout=_SECONDS_TO_ADVANCE)


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
