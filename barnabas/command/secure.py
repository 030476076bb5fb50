"""`barnabas serve --secure`: a broker with TLS and passwords, for a laptop or a test."""

from __future__ import annotations

import argparse
import json
import os
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.security.acls import Acl
from barnabas.broker.security.development import (
    AUTHORIZER,
    BROKER_USER,
    MECHANISMS,
    PROTOCOLS,
    acls_of,
    make_certificates,
    settings_for,
)
from barnabas.broker.security.errors import SecurityError
from barnabas.command.ending import UsageError

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_MADE_UP_USER: Final = "admin"
_CERTIFICATES: Final = "certs"


class Secured(NamedTuple):
    protocol: str
    settings: list[str]  # as for --config; they are never on a command line
    users: dict[str, str]
    lines: list[str]  # to be printed before the broker is ready
    acls: list[Acl] | None = None  # None: everybody may do everything

    def __repr__(self) -> str:
        return f"Secured({self.protocol})"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("security", "see docs/security.md")
    group.add_argument(
        "--secure",
        metavar="PROTOCOL",
        nargs="?",
        const="SASL_SSL",
        type=_protocol,
        help="TLS with certificates that are created in DATA/certs, and passwords (default: SASL_SSL; or SSL, "
        "SASL_PLAINTEXT)",
    )
    group.add_argument(
        "--users",
        metavar="FILE",
        help='with --secure, the users as JSON: {"alice": "secret"} (default: a generated user, which is printed)',
    )

    group.add_argument(
        "--acls",
        metavar="FILE",
        help="with --secure, check what users may do, by rules as JSON: "
        '[{"user": "alice", "allow": ["read"], "topic": "orders"}]',
    )


def _protocol(text: str) -> str:
    if text.upper() not in PROTOCOLS[1:]:
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(PROTOCOLS[1:])}")
    return text.upper()


def secured(options: argparse.Namespace, data: str) -> Secured | None:
    """What --secure asks for; None without it. `data` is the data directory."""
    if options.secure is None:
        for option in ("users", "acls"):
            if getattr(options, option) is not None:
                raise UsageError(f"--{option} needs --secure")
        return None
    protocol: str = options.secure
    users: dict[str, str] = {}
    lines = []
    if protocol.startswith("SASL"):
        if options.users is None:
            users = {_MADE_UP_USER: secrets.token_urlsafe(12)}
            lines.append(f"barnabas user {_MADE_UP_USER} password {users[_MADE_UP_USER]}")
        else:
            users = _read_users(options.users)
    elif options.users is not None:
        raise UsageError(f"--users does not apply to {protocol}: its clients have certificates")
    certificates = None
    if protocol.endswith("SSL"):
        try:
            certificates = make_certificates(os.path.join(data, _CERTIFICATES))
        except (SecurityError, OSError) as error:
            raise UsageError(str(error)) from None
        lines.append(f"barnabas certificates in {os.path.dirname(certificates.ca)}")
    settings = settings_for(protocol, certificates, users, secrets.token_urlsafe(24))
    acls = None
    if options.acls is not None:
        if not protocol.startswith("SASL"):
            raise UsageError(f"--acls does not apply to {protocol}: name the users of certificates by super.users")
        acls = _read_acls(options.acls)
        settings["authorizer.class.name"] = AUTHORIZER
    assignments = [f"{name}={value}" for name, value in settings.items()]
    return Secured(protocol, assignments, users, lines, acls)


def with_own_super_user(assignments: list[str]) -> list[str]:
    """Settings in which the broker's own user is a super user, besides those that are there."""
    given = [value for name, _, value in (each.partition("=") for each in assignments) if name.strip() == "super.users"]
    return [*assignments, f"super.users={';'.join([*given[-1:], f'User:{BROKER_USER}'])}"]


def _read_users(path: str) -> dict[str, str]:
    try:
        with open(path, encoding="utf-8") as file:
            users = json.load(file)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not JSON"
        raise UsageError(f"--users {path}: {reason}") from None
    if not isinstance(users, dict) or not all(
        isinstance(name, str) and name and isinstance(value, str) and value for name, value in users.items()
    ):
        raise UsageError(f'--users {path}: it must be users with their passwords, as in {{"alice": "secret"}}')
    return users


def _read_acls(path: str) -> list[Acl]:
    try:
        with open(path, encoding="utf-8") as file:
            rules = json.load(file)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not JSON"
        raise UsageError(f"--acls {path}: {reason}") from None
    if not isinstance(rules, list):
        raise UsageError(f"--acls {path}: it must be a list of rules")
    try:
        return [acl for rule in rules for acl in acls_of(rule)]
    except SecurityError as error:
        raise UsageError(f"--acls {path}: {error}") from None


async def add_scram_users(broker: Broker, users: dict[str, str]) -> None:
    """Let users authenticate with SCRAM as well."""
    from barnabas.broker.security.sasl.scram import write_credential
    from barnabas.protocol.scram import FEWEST_ITERATIONS, ScramCredential

    for user, password in users.items():
        credentials = {
            mechanism: write_credential(
                ScramCredential.of_password(mechanism, password, os.urandom(24), FEWEST_ITERATIONS)
            )
            for mechanism in MECHANISMS
            if mechanism != "PLAIN"
        }
        await broker.config_follower.alter_user(user, lambda present, new=credentials: {**present, **new})  # type: ignore[misc]


async def add_acls(broker: Broker, acls: Sequence[Acl]) -> None:
    if broker.acl_follower is not None:
        await broker.acl_follower.add(acls)
