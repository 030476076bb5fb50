"""`barnabas conformance`: check that a broker of any kind speaks the protocol as Apache Kafka does."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from barnabas.command.arguments import add_connection, add_json, connection
from barnabas.command.conformance_terminal import Progress, listing, terminal
from barnabas.command.ending import complain
from barnabas.command.values import at_least
from barnabas.conformance import reports
from barnabas.conformance.runner import AT_ONCE, run_all, selected
from barnabas.conformance.target import CannotRun, look_at
from barnabas.conformance.verdict import Verdict

_UNUSABLE = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--only",
        metavar="PATTERN",
        action="append",
        default=[],
        help="only these checks: a room (fetch), a pattern (groups.*) or a name; may be repeated",
    )
    parser.add_argument("--list", action="store_true", help="list the checks instead of running them")
    parser.add_argument(
        "--at-once",
        metavar="N",
        type=at_least(1),
        default=AT_ONCE,
        help="how many checks run at the same time (default: %(default)s)",
    )
    parser.add_argument("--verbose", action="store_true", help="also show the checks that passed or do not apply")
    add_json(parser, "print the report as JSON")
    for kind, title in (("junit", "as JUnit XML, for CI"), ("html", "as a web page")):
        parser.add_argument(f"--{kind}", metavar="FILE", type=Path, help=f"also write a report {title}")
    add_connection(parser, "how long a single check may take")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """0: everything passed; 1: something failed; 2: nothing could be checked."""
    checks = selected(options.only)
    if not checks:
        complain(f"no check is called {' or '.join(options.only)}; --list shows their names")
        return _UNUSABLE
    if options.list:
        print(listing(checks))
        return 0
    brokers, timeout, security = connection(options)
    try:
        target = look_at(brokers, timeout, security)
    except CannotRun as error:
        complain(error)
        return _UNUSABLE
    progress = Progress(len(checks), sys.stderr)
    try:
        results = run_all(target, checks, timeout, options.at_once, progress.done)
    finally:
        progress.clear()
    address = str(target.bootstrap)
    if options.json:
        print(reports.as_json(results, address))
    else:
        print(terminal(results, verbose=options.verbose))
    try:
        for path, render in (
            (options.junit, reports.as_junit),
            (options.html, reports.as_html),
        ):
            if path is not None:
                path.write_text(render(results, address), encoding="utf-8")
    except OSError as error:
        complain(f"{error.filename}: {error.strerror}")
        return _UNUSABLE
    return 1 if any(result.verdict is Verdict.FAILED for result in results) else 0
