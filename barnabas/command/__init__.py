"""The `barnabas` command. Each subcommand is a module that is imported when it is used."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence
from typing import Final

from barnabas.command.ending import UsageError, hold_standard_files, status_of
from barnabas.command.parser import Parser, add_bootstrap
from barnabas.command.search_path import leave_out_rich, prefer_installed
from barnabas.version import VERSION

# What the scripts of `barnabas completion` call. It is not a command for people.
COMPLETE: Final = "__complete"

_COMMANDS: Final = {
    "serve": "run a broker",
    "topics": "list, create, describe, alter and delete topics",
    "groups": "list, describe and delete consumer groups, reset their offsets",
    "configs": "show and change the settings of topics, brokers and groups",
    "users": "list SCRAM users, set their passwords, delete them",
    "acls": "list, create and delete rules about who may do what",
    "quotas": "list, set and remove quotas of users, client ids and addresses",
    "cluster": "show the brokers, the controller and the features of a cluster",
    "produce": "write records, one per line of input",
    "consume": "print the records of topics",
    "certs": "create certificates for development",
    "ctl": "control a broker under test, one that was started with --control",
    "pipeline": "run Spark pipelines from YAML files",
    "check": "verify the files of a data directory",
    "conformance": "check that a broker speaks the protocol as Apache Kafka does",
    "museum": "bring back a famous bug of replication, and watch what happens",
    "completion": "print a completion script for bash, zsh or fish",
}

# Commands whose module is not one of this package.
_MODULES: Final = {"museum": "barnabas.simulation.museum.command"}

_EPILOG: Final = """\
examples:
  barnabas serve --data data                           a broker on 127.0.0.1:9092
  barnabas topics create orders --partitions 3
  echo hello | barnabas produce orders
  barnabas consume orders --from-beginning

The commands for topics, groups and records work with every Kafka broker: -b HOST[:PORT] says where it is.
'barnabas COMMAND --help' shows the options of a command."""


def main(arguments: Sequence[str] | None = None) -> int:
    hold_standard_files()
    return status_of(lambda: _run(sys.argv[1:] if arguments is None else list(arguments)))


def _run(arguments: Sequence[str]) -> int:
    parser = command_parser()
    if arguments[:1] == [COMPLETE]:
        from barnabas.command.candidates import complete

        return complete(arguments[1:], parser)
    if arguments[:1] == ["serve"]:
        prefer_installed()
        leave_out_rich()
        gc.disable()  # what is imported now stays; `serve` enables it when it is ready
    try:
        return _run_command(parser, arguments)
    finally:
        gc.enable()


def _run_command(parser: Parser, arguments: Sequence[str]) -> int:
    options = parser.parse_args(arguments)
    if options.version:
        print("barnabas", VERSION)
        return 0
    if options.command is None:
        parser.print_help()
        return 2
    _refuse_connection_options(options)
    status: int = options.run(options)
    return status


def command_parser() -> Parser:
    parser = Parser(
        prog="barnabas",
        description="A message broker that speaks Kafka's wire protocol, and a command line for any Kafka broker.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    add_bootstrap(parser)
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    for name, summary in _COMMANDS.items():
        module = _MODULES.get(name, f"barnabas.command.{name}")
        commands.add_parser(name, help=summary, description=summary, module=module)
    return parser


def _refuse_connection_options(options: argparse.Namespace) -> None:
    """-b and --profile may come before any subcommand, but some subcommands use no broker."""
    given = [f"--{name}" for name in ("bootstrap", "profile") if hasattr(options, name)]
    if given and not getattr(options, "connects", False):
        raise UsageError(f"barnabas {options.command} does not connect to a broker: {given[0]} does not apply")
