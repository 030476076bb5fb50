"""Pipelines that run somewhere and tell this console how they are doing (barnabas.pipeline.announcing)."""

from __future__ import annotations

import json
from typing import Any, Final

from barnabas.broker.clock import Clock
from barnabas.broker.console.errors import ConsoleError
from barnabas.broker.console.paging import Json
from barnabas.broker.security.authorizer import Access
from barnabas.protocol.acls import AclOperation

_MOST: Final = 100
_LONGEST: Final = 64 * 1024  # of what one pipeline tells, as JSON
_SILENT_MS: Final = 30_000  # whoever says nothing for so long has ended without a word
_KEPT_MS: Final = 10 * 60_000  # how long one that has ended is shown


class Pipelines:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told: dict[str, Json] = {}

    def announce(self, body: dict[str, Any]) -> None:
        name, run, state = body.get("name"), body.get("run"), body.get("state")
        if not all(isinstance(each, str) and 0 < len(each) <= 200 for each in (name, run, state)):
            raise ConsoleError("a pipeline has a name, a run and a state")
        if len(json.dumps(body)) > _LONGEST:
            raise ConsoleError("this is too much to store about one pipeline")
        self._forget_old()
        if run not in self._told and len(self._told) >= _MOST:
            raise ConsoleError(f"more than {_MOST} pipelines are not shown")
        self._told[str(run)] = {**body, "heard_at_ms": self._clock.now_ms()}

    def shown(self, access: Access) -> Json:
        """Those of whose topics the user may describe all."""
        self._forget_old()
        now_ms = self._clock.now_ms()
        rows = [
            {**each, "silent": each["state"] != "ended" and now_ms - each["heard_at_ms"] > _SILENT_MS}
            for each in self._told.values()
            if all(access.topic(AclOperation.DESCRIBE, str(topic)) for topic in each.get("topics", []))
        ]
        return {"total": len(rows), "rows": sorted(rows, key=lambda row: str(row["name"]))}

    def _forget_old(self) -> None:
        now_ms = self._clock.now_ms()
        self._told = {run: each for run, each in self._told.items() if now_ms - each["heard_at_ms"] < _KEPT_MS}
