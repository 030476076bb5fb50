"""`barnabas conformance`: check that a broker, of whatever make, speaks the protocol as Apache Kafka does."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from broker.cli.arguments import at_least, bootstrap, seconds

_UNUSABLE = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bootstrap", metavar="HOST:PORT", type=bootstrap, default="127.0.0.1:9092",
        help="the broker to check, or one of a cluster (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--only", metavar="PATTERN", action="append", default=[],
        help="only checks with such names: a room (fetch), a pattern (groups.*), a name; may be given several times",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="list the checks instead of running them")
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=seconds, default=30.0,
        help="how long a single check may take (default: %(default)g)",
    )  # fmt: skip
    parser.add_argument(
        "--at-once", metavar="N", type=at_least(1), default=8, help="how many checks run at once (default: %(default)s)"
    )
    parser.add_argument("--verbose", action="store_true", help="also show the checks that passed or do not apply")
    for kind in ("json", "junit", "html"):
        parser.add_argument(f"--{kind}", metavar="FILE", type=Path, help=f"write a report as {kind.upper()}")


def run(options: argparse.Namespace) -> int:
    """0: everything passed; 1: something failed; 2: nothing could be checked."""
    from broker.cli.conformance import reports
    from broker.cli.conformance.runner import run_all, selected
    from broker.cli.conformance.target import CannotRun, look_at
    from broker.cli.conformance.verdict import Verdict

    checks = selected(options.only)
    if not checks:
        print(f"no check is called {' or '.join(options.only)}; --list has their names", file=sys.stderr)
        return _UNUSABLE
    if options.list:
        print(reports.listing(checks))
        return 0
    try:
        target = look_at(options.bootstrap, options.timeout)
    except CannotRun as error:
        print(f"barnabas conformance: {error}", file=sys.stderr)
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
        print(f"barnabas conformance: {error.filename}: {error.strerror}", file=sys.stderr)
        return _UNUSABLE
    return 1 if any(result.verdict is Verdict.FAILED for result in results) else 0
