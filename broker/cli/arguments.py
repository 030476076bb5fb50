"""Arguments that several commands have."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from broker.cli.client.client import Client
from broker.cli.client.connection import Address, parse_address

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"


def add_connection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bootstrap",
        metavar="HOST:PORT",
        type=bootstrap,
        default=DEFAULT_BOOTSTRAP,
        help="a broker, or several with commas between them (default: %(default)s)",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=30.0,
        help="how long to wait for an answer (default: %(default)g)",
    )


def add_action(actions: Any, name: str, act: Callable[[Client, argparse.Namespace], int], summary: str) -> Any:
    """The parser of `barnabas topics NAME` and the like, which ends in `act`."""
    parser = actions.add_parser(name, help=summary, description=summary)
    parser.set_defaults(act=act)
    add_connection(parser)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser


def client(options: argparse.Namespace, client_id: str = "barnabas") -> Client:
    return Client(options.bootstrap, client_id, options.timeout)


def bootstrap(text: str) -> list[Address]:
    try:
        return [parse_address(each) for each in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form KEY=VALUE")
    return name, value


def seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return number


def at_least(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} up")
        return int(text)

    return parse


def partitions(text: str) -> list[int]:
    """0,2,5"""
    numbers = text.split(",")
    if not all(number.isdecimal() for number in numbers):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of partitions such as 0,1,2")
    return sorted({int(number) for number in numbers})
