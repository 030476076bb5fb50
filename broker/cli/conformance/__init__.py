"""`barnabas conformance`: check that a broker, of whatever make, speaks the protocol as Apache Kafka does."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from broker.cli.arguments import DEFAULT_BOOTSTRAP, at_least, bootstrap, seconds
from broker.cli.conformance import reports
from broker.cli.conformance.runner import AT_ONCE, run_all, selected
from broker.cli.conformance.target import CannotRun, look_at
from broker.cli.conformance.verdict import Verdict
from broker.cli.ending import complain, ends_quietly

_UNUSABLE = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bootstrap",
        metavar="HOST:PORT",
        type=bootstrap,
        default=DEFAULT_BOOTSTRAP,
        help="the broker to check, or one of a cluster (default: %(default)s)",
    )
    parser.add_argument(
        "--only",
        metavar="PATTERN",
        action="append",
        default=[],
        help="only checks with such names: a room (fetch), a pattern (groups.*), a name; may be given several times",
    )
    parser.add_argument("--list", action="store_true", help="list the checks instead of running them")
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=30.0,
        help="how long a single check may take (default: %(default)g)",
    )
    parser.add_argument(
        "--at-once",
        metavar="N",
        type=at_least(1),
        default=AT_ONCE,
        help="how many checks run at once (default: %(default)s)",
    )
    parser.add_argument("--verbose", action="store_true", help="also show the checks that passed or do not apply")
    for kind, title in (("json", "as JSON"), ("junit", "as JUnit's XML, for CI"), ("html", "as a page for people")):
        parser.add_argument(f"--{kind}", metavar="FILE", type=Path, help=f"write a report {title}")


@ends_quietly
def run(options: argparse.Namespace) -> int:
    """0: everything passed; 1: something failed; 2: nothing could be checked."""
    checks = selected(options.only)
    if not checks:
        complain(f"no check is called {' or '.join(options.only)}; --list has their names")
        return _UNUSABLE
    if options.list:
        print(reports.listing(checks))
        return 0
    try:
        target = look_at(options.bootstrap, options.timeout)
    except CannotRun as error:
        complain(error)
        return _UNUSABLE
    progress = reports.Progress(len(checks), sys.stderr)
    try:
        results = run_all(target, checks, options.timeout, options.at_once, progress.done)
    finally:
        progress.clear()
    print(reports.terminal(results, verbose=options.verbose))
    address = str(target.bootstrap)
    try:
        for path, render in (
            (options.json, reports.as_json),
            (options.junit, reports.as_junit),
            (options.html, reports.as_html),
        ):
            if path is not None:
                path.write_text(render(results, address), encoding="utf-8")
    except OSError as error:
        complain(f"{error.filename}: {error.strerror}")
        return _UNUSABLE
    return 1 if any(result.verdict is Verdict.FAILED for result in results) else 0
