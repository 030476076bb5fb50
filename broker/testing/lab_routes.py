"""The lab's part of the control interface: faults, journal, strict mode."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from typing import Any, Final

from barnabas.broker.testing.faults.fault import FaultError, milliseconds
from barnabas.broker.testing.http import BadRequest, Call, ControlError, NotFound, Route, Text
from barnabas.broker.testing.journal.entry import Entry, Filter, FilterError, parse_filter
from barnabas.broker.testing.lab import Lab

_FILTERS: Final = tuple(Filter.__dataclass_fields__)
# Longer than any test waits.
_LONGEST_WAIT: Final = 3600.0
# How many entries are shown when an expectation fails.
_SEEN_INSTEAD: Final = 200


def routes_of(lab: Lab) -> list[Route]:
    return [
        *_FaultRoutes(lab).routes(),
        *_JournalRoutes(lab).routes(),
        Route("GET", "/strict", _StrictRoutes(lab).reports),
        Route("POST", "/strict", _StrictRoutes(lab).switch),
        Route("DELETE", "/strict", _StrictRoutes(lab).clear),
    ]


class _FaultRoutes:
    def __init__(self, lab: Lab) -> None:
        self._faults = lab.faults

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/faults", self.all),
            Route("POST", "/faults", self.add),
            Route("DELETE", "/faults", self.clear),
            Route("GET", "/faults/{id}", self.one),
            Route("DELETE", "/faults/{id}", self.remove),
            Route("POST", "/faults/stop", self.stop),
            Route("POST", "/faults/resume", self.resume),
        ]

    async def all(self, call: Call) -> Any:
        return [fault.describe() for fault in self._faults.all()]

    async def add(self, call: Call) -> Any:
        """One fault, or a list of them: all or none."""
        body = call.json()
        try:
            if isinstance(body, list):
                return [fault.describe() for fault in self._faults.add_all(body)]
            return self._faults.add(body).describe()
        except FaultError as error:
            raise BadRequest(str(error), error.field) from None

    async def clear(self, call: Call) -> Any:
        self._faults.clear()

    async def one(self, call: Call) -> Any:
        fault = self._faults.get(_number(call))
        if fault is None:
            raise NotFound(f"there is no fault {call.params['id']}")
        return fault.describe()

    async def remove(self, call: Call) -> Any:
        fault = self._faults.remove(_number(call))
        if fault is None:
            raise NotFound(f"there is no fault {call.params['id']}")
        return fault.describe()

    async def stop(self, call: Call) -> Any:
        try:
            self._faults.stop(milliseconds("ms", call.fields("ms").get("ms")))
        except FaultError as error:
            raise BadRequest(str(error), error.field) from None

    async def resume(self, call: Call) -> Any:
        self._faults.resume()


def _number(call: Call) -> int:
    try:
        return int(call.params["id"])
    except ValueError:
        raise NotFound(f"there is no fault {call.params['id']!r}: faults have numbers") from None


class _JournalRoutes:
    def __init__(self, lab: Lab) -> None:
        self._journal = lab.journal

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/journal", self.select),
            Route("GET", "/journal/follow", self.follow),
            Route("GET", "/journal/position", self.position),
            Route("POST", "/journal", self.switch),
            Route("POST", "/journal/expect", self.expect),
            Route("DELETE", "/journal", self.clear),
        ]

    async def select(self, call: Call) -> Any:
        """Entries as JSON lines."""
        query = dict(call.query)
        limit = query.pop("limit", None)
        entries = self._journal.select(_filter(query), _limit(limit))
        return Text(b"".join(entry.line for entry in entries), "application/jsonl")

    async def follow(self, call: Call) -> AsyncIterator[bytes]:
        return self._journal.follow(_filter(call.query))

    async def position(self, call: Call) -> Any:
        return {"on": self._journal.on, "last": self._journal.last_number}

    async def switch(self, call: Call) -> Any:
        wanted = call.fields("on").get("on")
        if not isinstance(wanted, bool):
            raise BadRequest("'on' is true or false", "on")
        self._journal.switch(wanted)
        return {"on": self._journal.on, "last": self._journal.last_number}

    async def expect(self, call: Call) -> Any:
        """Wait for entries. If they do not come, return what came instead.

        A journal that cannot know the answer must not say "none".
        """
        fields = call.fields(*_FILTERS, "within", "count")
        within = fields.pop("within", 0)
        count = fields.pop("count", 1)
        if isinstance(within, bool) or not isinstance(within, int | float) or not 0 <= within <= _LONGEST_WAIT:
            raise BadRequest("'within' says how many seconds to wait at most", "within")
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise BadRequest("'count' says how many entries to wait for", "count")
        wanted = _filter(fields)
        if not self._journal.on:
            raise ControlError(HTTPStatus.CONFLICT, "the journal is off, so it cannot know")
        dropped = self._journal.last_dropped
        if 0 < wanted.since < dropped:
            message = f"the journal was full and has dropped what came after #{wanted.since}, up to #{dropped}"
            raise ControlError(HTTPStatus.CONFLICT, message)
        found = await self._journal.expect(wanted, count, within)
        answer: dict[str, Any] = {"found": _data(found), "last": self._journal.last_number}
        if len(found) < count:
            others = self._journal.select(Filter(since=wanted.since), _SEEN_INSTEAD)
            answer["seen"] = _data(others)
        return answer

    async def clear(self, call: Call) -> Any:
        self._journal.clear()


class _StrictRoutes:
    def __init__(self, lab: Lab) -> None:
        self._strict = lab.strict

    async def reports(self, call: Call) -> Any:
        """Refused if strict mode was never on: no reports would then look as if clients kept to the rules."""
        if not self._strict.was_ever_on:
            message = (
                "strict mode is off, so clients have not been watched; turn it on, or start the broker with --strict"
            )
            raise ControlError(HTTPStatus.CONFLICT, message)
        return {"on": self._strict.on, "reports": [report.describe() for report in self._strict.reports]}

    async def switch(self, call: Call) -> Any:
        wanted = call.fields("on").get("on")
        if not isinstance(wanted, bool):
            raise BadRequest("'on' is true or false", "on")
        self._strict.switch(wanted)
        return {"on": self._strict.on}

    async def clear(self, call: Call) -> Any:
        self._strict.clear()


def _filter(fields: Mapping[str, Any]) -> Filter:
    try:
        return parse_filter(fields)
    except FilterError as error:
        raise BadRequest(str(error), error.field) from None


def _limit(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdigit():
        raise BadRequest(f"'limit' is a number, not {text!r}", "limit")
    return int(text)


def _data(entries: list[Entry]) -> list[Any]:
    return [json.loads(entry.line) for entry in entries]
