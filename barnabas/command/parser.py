"""The parser of the command line: help that is easy to read, and subcommands that are imported when they are used."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"
BOOTSTRAP_VARIABLE: Final = "BARNABAS_BOOTSTRAP"


class Help(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32)


class Parser(argparse.ArgumentParser):
    """`module` adds the arguments when they are first needed: starting a broker does not import a client."""

    def __init__(self, *arguments: Any, module: str | None = None, **options: Any) -> None:
        options.setdefault("formatter_class", Help)
        super().__init__(*arguments, **options)
        self._module = module

    def load(self) -> None:
        if self._module is not None:
            module, self._module = self._module, None
            import_module(module).add_arguments(self)

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        self.load()
        return super().parse_known_args(args, namespace)


def add_bootstrap(
    parser: argparse._ActionsContainer, default: str = f"${BOOTSTRAP_VARIABLE}, the profile's, or {DEFAULT_BOOTSTRAP}"
) -> None:
    """The option may come before or after the subcommand. Without a default, one place does not hide the other."""
    parser.add_argument(
        "-b",
        "--bootstrap",
        metavar="HOST[:PORT]",
        default=argparse.SUPPRESS,
        help=f"the broker, or several separated by commas (default: {default})",
    )
    parser.add_argument("--profile", metavar="PROFILE", default=argparse.SUPPRESS, help="a profile of the config file")


def add_actions(parser: argparse.ArgumentParser) -> Any:
    """`barnabas topics ACTION` and the like. Without an action, the command shows its help."""

    def show_help(options: argparse.Namespace) -> int:
        parser.print_help()
        return 2

    parser.set_defaults(run=show_help)
    return parser.add_subparsers(title="actions", metavar="ACTION")
