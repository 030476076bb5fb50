"""`barnabas conformance`: check that a broker of any kind speaks the protocol as Apache Kafka does."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from barnabas.command.arguments import add_connection, add_json, connection
from barnabas.command.conformance_terminal import Progress, listing, terminal
from barnabas.command.ending import complain
from barnabas.command.values import at_least
from barnabas.conformance import reports
from barnabas.conformance.runner import AT_ONCE, run_all, selected
from barnabas.conformance.target import CannotRun, Target, look_at
from barnabas.conformance.verdict import Verdict
from barnabas.version import VERSION

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
        if options.junit is not None:
            options.junit.write_text(reports.as_junit(results, address), encoding="utf-8")
        if options.html is not None:
            options.html.write_text(reports.as_html(results, address, _about(target)), encoding="utf-8")
    except OSError as error:
        complain(f"{error.filename}: {error.strerror}")
        return _UNUSABLE
    return 1 if any(result.verdict is Verdict.FAILED for result in results) else 0


def _about(target: Target) -> list[str]:
    """When this was, and what was checked with what."""
    now = datetime.now(UTC)
    features = ", ".join(f"{name} {level}" for name, level in sorted(target.features.items()))
    return [
        f"{now:%Y-%m-%d %H:%M} UTC",
        f"Checked with barnabas {VERSION}, on Python {sys.version_info.major}.{sys.version_info.minor}",
        f"The broker advertises {len(target.versions)} APIs" + (f" and {features}" if features else ""),
    ]
