"""The report for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence

from barnabas.conformance.reports.summary import counts
from barnabas.conformance.verdict import Result


def as_json(results: Sequence[Result], address: str) -> str:
    document = {
        "bootstrap": address,
        "summary": {verdict.value: count for verdict, count in counts(results).items()},
        "checks": [
            {
                "name": result.check.name,
                "room": result.check.room,
                "rule": result.check.rule,
                "stands_on": result.check.stands_on,
                "needs": {
                    key.api_name: [versions.lowest, None if versions.highest == 32767 else versions.highest]
                    for key, versions in result.check.needs.items()
                },
                "features": dict(result.check.features),
                "verdict": result.verdict.value,
                "expected": result.expected,
                "seen": result.seen,
                "seconds": round(result.seconds, 3),
                "steps": [{"expected": step.expected, "seen": step.seen} for step in result.steps],
            }
            for result in results
        ],
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"
