"""`barnabas users`: who may log in with SCRAM."""

from __future__ import annotations

import argparse
import getpass
import sys
from typing import Final

from barnabas.client.client import Client
from barnabas.client.user_admin import delete_user, set_password, users
from barnabas.command.arguments import add_action, add_client_actions
from barnabas.command.ending import UsageError
from barnabas.command.table import as_json, render
from barnabas.protocol.scram import FEWEST_ITERATIONS, MECHANISMS, MOST_ITERATIONS

_COLUMNS: Final = {"user": "USER", "mechanisms": "MECHANISMS", "iterations": "ITERATIONS"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "A password is asked for, or read from standard input. It is salted and hashed before it is sent."
    actions = add_client_actions(parser)
    add_action(actions, "list", _list, "list users and the mechanisms with which they may log in")

    set_ = add_action(actions, "set", _set, "add a user, or change the password of one")
    set_.add_argument("user", metavar="USER")
    set_.add_argument(
        "--mechanism",
        choices=[*MECHANISMS],
        action="append",
        help="a mechanism with which the user may log in; may be repeated (default: both)",
    )
    set_.add_argument(
        "--iterations",
        metavar="N",
        type=_iterations,
        default=FEWEST_ITERATIONS,
        help=f"how often the password is hashed (default: {FEWEST_ITERATIONS})",
    )

    delete = add_action(actions, "delete", _delete, "delete users")
    delete.add_argument("users", metavar="USER", nargs="+")


def _iterations(text: str) -> int:
    if not text.isdigit() or not FEWEST_ITERATIONS <= int(text) <= MOST_ITERATIONS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from {FEWEST_ITERATIONS} to {MOST_ITERATIONS}")
    return int(text)


def _list(client: Client, options: argparse.Namespace) -> int:
    rows = [
        {
            "user": user.name,
            "mechanisms": list(credentials),
            "iterations": list(credentials.values()),
        }
        for user in users(client)
        for credentials in (dict(sorted(user.credentials.items())),)  # brokers return them in any order
    ]
    print(as_json(rows) if options.json else render(_COLUMNS, rows))
    return 0


def _set(client: Client, options: argparse.Namespace) -> int:
    password = getpass.getpass() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise UsageError("the password is empty")
    for mechanism in options.mechanism or MECHANISMS:
        set_password(client, options.user, password, mechanism, options.iterations)
    return 0


def _delete(client: Client, options: argparse.Namespace) -> int:
    for user in options.users:
        delete_user(client, user)
    return 0
