"""The arguments of commands that talk to a broker: where it is, and how long to wait for it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

from barnabas.client.client import Client
from barnabas.client.connection import Address, parse_address
from barnabas.client.security import PLAINTEXT, Security
from barnabas.command.ending import UsageError
from barnabas.command.parser import BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP, add_actions, add_bootstrap
from barnabas.command.profiles import Profile, load_profile
from barnabas.command.values import duration

T = TypeVar("T")

DEFAULT_TIMEOUT: Final = "30s"


def add_connection(parser: argparse.ArgumentParser, timeout: str = "how long to wait for an answer") -> None:
    group = parser.add_argument_group("connection")
    add_bootstrap(group)
    group.add_argument(
        "--timeout",
        metavar="DURATION",
        type=duration,
        default=argparse.SUPPRESS,
        help=f"{timeout} (default: the profile's, or {DEFAULT_TIMEOUT})",
    )
    add_client_config(group)
    parser.set_defaults(connects=True)


def add_client_config(parser: Any) -> None:
    parser.add_argument(
        "--client-config",
        metavar="FILE",
        default=argparse.SUPPRESS,
        help="Kafka's client settings in a .properties file: security.protocol, sasl.jaas.config and so on",
    )


def add_client_actions(parser: argparse.ArgumentParser) -> Any:
    """`barnabas topics ACTION` and the like, with -b also before the action."""
    add_bootstrap(parser)
    return add_actions(parser)


def add_action(actions: Any, name: str, act: Callable[[Client, argparse.Namespace], int], summary: str) -> Any:
    """The parser of `barnabas topics NAME` and the like, which ends in `act`."""

    def run(options: argparse.Namespace) -> int:
        with client(options) as connected:
            return act(connected, options)

    parser = actions.add_parser(name, help=summary, description=summary)
    parser.set_defaults(run=run)
    add_connection(parser)
    add_json(parser)
    return parser


def add_json(parser: argparse.ArgumentParser, summary: str = "print JSON instead of a table") -> None:
    parser.add_argument("--json", action="store_true", help=summary)


def client(options: argparse.Namespace) -> Client:
    addresses, timeout, security = connection(options)
    return Client(addresses, "barnabas", timeout, security)


def connection(options: argparse.Namespace) -> tuple[list[Address], float, Security]:
    """The brokers, the timeout, and how the brokers are reached."""
    addresses, timeout = brokers_and_timeout(options)
    path = getattr(options, "client_config", None)
    if path is None:
        return addresses, timeout, PLAINTEXT
    from barnabas.command.client_config import read_client_config

    security, bootstrap_servers = read_client_config(path)
    if bootstrap_servers is not None and not _is_told(options):
        addresses = _parsed(bootstrap, bootstrap_servers, f"{path}: bootstrap.servers")
    return addresses, timeout, security


def _is_told(options: argparse.Namespace) -> bool:
    """Whether the command line or the environment says where the brokers are."""
    on_command_line = hasattr(options, "bootstrap") or hasattr(options, "profile")
    return on_command_line or bool(os.environ.get(BOOTSTRAP_VARIABLE))


def brokers_and_timeout(options: argparse.Namespace) -> tuple[list[Address], float]:
    """The brokers and the timeout: from the command line, the environment, the profile, or the defaults."""
    profile = load_profile(getattr(options, "profile", None))
    timeout: float | None = getattr(options, "timeout", None)
    if timeout is None:
        timeout = _parsed(duration, profile.timeout or DEFAULT_TIMEOUT, f"{profile.origin}.timeout")
    return _brokers(options, profile), timeout


def _brokers(options: argparse.Namespace, profile: Profile) -> list[Address]:
    on_command_line, in_environment = getattr(options, "bootstrap", None), os.environ.get(BOOTSTRAP_VARIABLE)
    if on_command_line is not None:
        return _parsed(bootstrap, on_command_line, "--bootstrap")
    # A profile that the command line names wins over the environment, as all of the command line does.
    if in_environment and not (profile.bootstrap and hasattr(options, "profile")):
        return _parsed(bootstrap, in_environment, BOOTSTRAP_VARIABLE)
    return _parsed(bootstrap, profile.bootstrap or DEFAULT_BOOTSTRAP, f"{profile.origin}.bootstrap")


def _parsed(parse: Callable[[str], T], text: str, origin: str) -> T:
    try:
        return parse(text)
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"{origin}: {error}") from None


def bootstrap(text: str) -> list[Address]:
    try:
        return [parse_address(each) for each in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
