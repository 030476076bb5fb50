"""The journal: every request with its answer, in the order of the answers, in a ring of limited size.

An answer is in the journal before its client can have seen it. A waiter is registered in the same turn of
the loop in which the existing entries were searched, so that no entry can be missed in between.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import structlog

from barnabas.broker.clock import Clock
from barnabas.broker.server.observe import Exchange
from barnabas.broker.testing.journal.data import Json, to_data
from barnabas.broker.testing.journal.entry import ANSWERED, CLOSED, MISUNDERSTOOD, NO_ANSWER, Entry, Filter
from barnabas.broker.testing.journal.states import States, Thing, session_changes
from barnabas.broker.testing.notes import Notes
from barnabas.protocol.error_counts import error_counts, error_name
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.server.connection import Connection

log = structlog.get_logger()

MAX_BYTES: Final = 64 * 1024 * 1024
# How many entries a follower may be behind before it is disconnected.
_MAX_BEHIND: Final = 100_000


class Draft:
    """An entry whose answer is still to come."""

    __slots__ = ("began", "changes", "changes_before", "closed", "data", "things")

    def __init__(self, data: Json, began: float, things: list[Thing], changes_before: list[Json]) -> None:
        self.data = data
        self.began = began
        self.things = things
        self.changes_before = changes_before
        self.changes: list[Json] = []
        self.closed = False


class Journal:
    def __init__(self, clock: Clock, changed: Callable[[], None], max_bytes: int = MAX_BYTES) -> None:
        self._clock = clock
        self._changed = changed
        self._max_bytes = max_bytes
        self._entries: deque[Entry] = deque()
        self._bytes = 0
        self._states = States()
        self._listeners: list[Callable[[Entry], None]] = []
        self._file: BinaryIO | None = None
        self.last_number = 0
        self.last_dropped = 0  # because they no longer fit
        self.on = False

    def switch(self, on: bool) -> None:
        if on != self.on:
            self.on = on
            self._states.clear()
            self._changed()

    def write_to(self, file: BinaryIO) -> None:
        """Also write every entry to a file as it comes."""
        self._file = file

    def clear(self) -> None:
        """Drop all entries; numbering continues."""
        self._entries.clear()
        self._bytes = 0
        self._states.clear()

    # --- called by the lab ---

    def arrived(self, exchange: Exchange) -> None:
        notes: Notes = exchange.notes
        subjects = notes.subjects
        data: Json = {
            "number": None,
            "at_ms": self._clock.now_ms(),
            "broker": notes.broker.config.node_id,
            "api": exchange.api_key.api_name,
            "version": exchange.version,
            "client_id": exchange.client_id,
            "principal": str(exchange.connection.principal),
            "peer": exchange.connection.name,
            "correlation_id": exchange.correlation_id,
            "partitions": [
                topic if index is None else f"{topic}-{index}" for topic, index in dict.fromkeys(subjects.partitions)
            ],
            "groups": list(dict.fromkeys(subjects.groups)),
            "transactional_ids": list(dict.fromkeys(subjects.transactional_ids)),
            "request": to_data(exchange.message, exchange.version),
        }
        things = self._states.things_of(notes.broker, exchange.api_key, subjects)
        before = self._states.changes(notes.broker, things)
        notes.entry = Draft(data, self._clock.monotonic(), things, before)

    def proceeded(self, exchange: Exchange) -> None:
        """The handler was called; its immediate effects are recorded before anything else runs."""
        draft: Draft | None = exchange.notes.entry
        if draft is not None and not draft.closed:
            draft.changes += self._states.changes(exchange.notes.broker, draft.things)

    def answered(self, exchange: Exchange, answer: Message | None) -> None:
        draft: Draft | None = exchange.notes.entry
        if draft is None or draft.closed:
            return
        draft.changes += self._states.changes(exchange.notes.broker, draft.things)
        draft.changes += session_changes(exchange.message, answer)
        errors = [] if answer is None else [error_name(code) for code in error_counts(answer)]
        told = None if answer is None else to_data(answer, exchange.version)
        self._close(exchange, draft, NO_ANSWER if answer is None else ANSWERED, told, errors)

    def abandoned(self, exchange: Exchange, reason: str | None) -> None:
        draft: Draft | None = exchange.notes.entry
        if draft is not None and not draft.closed:
            draft.changes += self._states.changes(exchange.notes.broker, draft.things)
            draft.data["reason"] = reason or "the connection went away"
            self._close(exchange, draft, CLOSED, None, [])

    def misunderstood(self, broker: Broker, connection: Connection, error: ProtocolError) -> None:
        data = {
            **{"number": self.last_number + 1, "at_ms": self._clock.now_ms(), "broker": broker.config.node_id},
            **{"api": "", "version": -1},
            **{"client_id": None, "peer": connection.name, "outcome": MISUNDERSTOOD, "reason": str(error)},
        }
        nothing: frozenset[Any] = frozenset()
        self._append("", -1, None, nothing, nothing, nothing, nothing, MISUNDERSTOOD, data)

    def _close(self, exchange: Exchange, draft: Draft, outcome: str, answer: Json | None, errors: list[str]) -> None:
        draft.closed = True
        notes: Notes = exchange.notes
        data = draft.data
        data["number"] = self.last_number + 1
        data["outcome"] = outcome
        data["took_ms"] = round((self._clock.monotonic() - draft.began) * 1000, 3)
        data["answer"] = answer
        data["errors"] = errors
        data["changes"] = draft.changes
        if draft.changes_before:
            data["changes_before"] = draft.changes_before
        if notes.fault is not None:
            data["fault"] = notes.fault.number
        subjects = notes.subjects
        self._append(
            data["api"],
            exchange.version,
            exchange.client_id,
            frozenset(subjects.partitions),
            frozenset(subjects.groups),
            frozenset(subjects.transactional_ids),
            frozenset(errors),
            outcome,
            data,
        )

    def _append(
        self,
        api: str,
        version: int,
        client_id: str | None,
        partitions: frozenset[tuple[str, int | None]],
        groups: frozenset[str],
        transactional_ids: frozenset[str],
        errors: frozenset[str],
        outcome: str,
        data: Json,
    ) -> None:
        self.last_number += 1
        line = json.dumps(data, separators=(",", ":")).encode() + b"\n"
        topics = frozenset(topic for topic, _ in partitions)
        entry = Entry(
            self.last_number,
            api,
            version,
            client_id,
            topics,
            partitions,
            groups,
            transactional_ids,
            errors,
            outcome,
            line,
        )
        self._entries.append(entry)
        self._bytes += len(line)
        while self._bytes > self._max_bytes and len(self._entries) > 1:
            oldest = self._entries.popleft()
            self._bytes -= len(oldest.line)
            self.last_dropped = oldest.number
        if self._file is not None:
            self._write(self._file, line)
        for listener in list(self._listeners):
            listener(entry)

    def _write(self, file: BinaryIO, line: bytes) -> None:
        try:
            file.write(line)
            file.flush()
        except OSError as error:
            log.error("the journal cannot be written", reason=error.strerror)
            self._file = None

    # --- queries ---

    def select(self, wanted: Filter, limit: int | None = None) -> list[Entry]:
        """The existing entries; if there are more than `limit`, the last ones."""
        found = [entry for entry in self._entries if wanted.matches(entry)]
        return found if limit is None else found[len(found) - min(limit, len(found)) :]

    async def expect(self, wanted: Filter, count: int, seconds: float) -> list[Entry]:
        """Wait until there are `count` entries, including existing ones, or the time is over."""
        found = self.select(wanted)
        if len(found) >= count or seconds <= 0:
            return found
        enough: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def listen(entry: Entry) -> None:
            if wanted.matches(entry):
                found.append(entry)
                if len(found) >= count and not enough.done():
                    enough.set_result(None)

        self._listeners.append(listen)
        try:
            # Real time: moving the broker's clock does not make clients faster.
            await asyncio.wait([enough], timeout=seconds)
        finally:
            self._listeners.remove(listen)
        return found

    async def follow(self, wanted: Filter) -> AsyncIterator[bytes]:
        """The existing entries, and then new ones as they come."""
        queue: asyncio.Queue[Entry | None] = asyncio.Queue()

        def listen(entry: Entry) -> None:
            if wanted.matches(entry):
                queue.put_nowait(entry if queue.qsize() < _MAX_BEHIND else None)

        there = self.select(wanted)
        self._listeners.append(listen)
        try:
            for entry in there:
                yield entry.line
            while True:
                following = await queue.get()
                if following is None:
                    return
                yield following.line
        finally:
            self._listeners.remove(listen)
