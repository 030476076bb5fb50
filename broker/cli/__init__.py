"""The `barnabas` command. Each subcommand is a module, imported when it is asked for."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

_COMMANDS: Final = {
    "serve": "run a broker",
    "topics": "list, create, describe, delete and alter topics",
    "groups": "list, describe and delete consumer groups, reset their offsets",
    "produce": "write a record for every line",
    "consume": "print the records of topics",
    "ctl": "drive a broker that was started with --control, in a test",
    "pipeline": "run pipelines on Spark from files",
    "check": "verify the files of a data directory",
    "conformance": "check that a broker speaks the protocol",
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="barnabas", description="A message broker that speaks Kafka's wire protocol.")
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    asked = next((word for word in (sys.argv[1:] if arguments is None else arguments) if word in _COMMANDS), None)
    for name, summary in _COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary)
        if name == asked:
            module = import_module(f"broker.cli.{name}")
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    options = parser.parse_args(arguments)
    if options.version:
        from importlib.metadata import version

        print("barnabas", version("barnabas"))
        return 0
    if options.command is None:
        parser.print_help()
        return 2
    status: int = options.run(options)
    return status
