"""The results of a run for programs, for CI and for a browser."""

from __future__ import annotations

from barnabas.conformance.reports.html import as_html
from barnabas.conformance.reports.json import as_json
from barnabas.conformance.reports.junit import as_junit

__all__ = ["as_html", "as_json", "as_junit"]
