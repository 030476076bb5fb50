"""What a run found, for people on a terminal, for programs, for CI, and for people with a browser."""

from __future__ import annotations

from broker.cli.conformance.reports.html import as_html
from broker.cli.conformance.reports.json import as_json
from broker.cli.conformance.reports.junit import as_junit
from broker.cli.conformance.reports.terminal import Progress, listing, terminal

__all__ = ["Progress", "as_html", "as_json", "as_junit", "listing", "terminal"]
