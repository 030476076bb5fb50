"""The journal: every request with its answer, in the order of the answers, in a ring that is bounded by its bytes.

An answer is in the journal before its client can have seen it. Whoever waits for an entry is registered in the same
turn of the loop in which the entries that are there were looked through, so that none can slip by between the two.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import structlog

from broker.server.observe import Exchange
from broker.testing.exchange_notes import ANONYMOUS, Notes
from broker.testing.faults.answers import error_codes
from broker.testing.journal.data import Json, to_data
from broker.testing.journal.entry import ANSWERED, CLOSED, MISUNDERSTOOD, NO_ANSWER, Entry, Filter
from broker.testing.journal.states import States, Thing, session_changes
from protocol.errors import ErrorCode, ProtocolError
from protocol.schema import Message

if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.server.connection import Connection

log = structlog.get_logger()

MAX_BYTES: Final = 64 * 1024 * 1024
# How many entries somebody who follows may be behind before he is cut off.
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
    def __init__(self, broker: Broker, changed: Callable[[], None], max_bytes: int = MAX_BYTES) -> None:
        self._broker = broker
        self._changed = changed
        self._max_bytes = max_bytes
        self._entries: deque[Entry] = deque()
        self._bytes = 0
        self._states = States(broker)
        self._listeners: list[Callable[[Entry], None]] = []
        self._file: BinaryIO | None = None
        self.last_number = 0
        self.last_dropped = 0  # for want of room
        self.on = False

    def switch(self, on: bool) -> None:
        if on != self.on:
            self.on = on
            self._states.clear()
            self._changed()

    def write_to(self, file: BinaryIO) -> None:
        """Write every entry to a file, too, as it comes."""
        self._file = file

    def clear(self) -> None:
        """Forget all entries; numbers go on."""
        self._entries.clear()
        self._bytes = 0
        self._states.clear()

    # --- what the laboratory tells ---

    def arrived(self, exchange: Exchange) -> None:
        notes: Notes = exchange.notes
        subjects = notes.subjects
        data: Json = {
            "number": None,
            "at_ms": self._broker.clock.now_ms(),
            "api": exchange.api_key.api_name,
            "version": exchange.version,
            "client_id": exchange.client_id,
            "principal": ANONYMOUS,
            "peer": exchange.connection.name,
            "correlation_id": exchange.correlation_id,
            "partitions": [
                topic if index is None else f"{topic}-{index}" for topic, index in dict.fromkeys(subjects.partitions)
            ],
            "groups": list(dict.fromkeys(subjects.groups)),
            "transactional_ids": list(dict.fromkeys(subjects.transactional_ids)),
            "request": to_data(exchange.message, exchange.version),
        }
        things = self._states.things_of(exchange.api_key, subjects)
        before = self._states.changes(things)
        notes.entry = Draft(data, self._broker.clock.monotonic(), things, before)

    def proceeded(self, exchange: Exchange) -> None:
        """The handler was called; what it did at once is seen before anybody else has his turn."""
        draft: Draft | None = exchange.notes.entry
        if draft is not None and not draft.closed:
            draft.changes += self._states.changes(draft.things)

    def answered(self, exchange: Exchange, answer: Message | None) -> None:
        draft: Draft | None = exchange.notes.entry
        if draft is None or draft.closed:
            return
        draft.changes += self._states.changes(draft.things)
        draft.changes += session_changes(exchange.message, answer)
        errors = [] if answer is None else list(dict.fromkeys(_name(code) for code in error_codes(answer)))
        told = None if answer is None else to_data(answer, exchange.version)
        self._close(exchange, draft, NO_ANSWER if answer is None else ANSWERED, told, errors)

    def abandoned(self, exchange: Exchange, reason: str | None) -> None:
        draft: Draft | None = exchange.notes.entry
        if draft is not None and not draft.closed:
            draft.changes += self._states.changes(draft.things)
            draft.data["reason"] = reason or "the connection went away"
            self._close(exchange, draft, CLOSED, None, [])

    def misunderstood(self, connection: Connection, error: ProtocolError) -> None:
        data = {
            **{"number": self.last_number + 1, "at_ms": self._broker.clock.now_ms(), "api": "", "version": -1},
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
        data["took_ms"] = round((self._broker.clock.monotonic() - draft.began) * 1000, 3)
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

    # --- what is asked of it ---

    def select(self, wanted: Filter, limit: int | None = None) -> list[Entry]:
        """The entries that are there; if there are more than `limit`, the last ones."""
        found = [entry for entry in self._entries if wanted.matches(entry)]
        return found if limit is None else found[len(found) - min(limit, len(found)) :]

    async def expect(self, wanted: Filter, count: int, seconds: float) -> list[Entry]:
        """Wait until there are `count` entries, those that are there already among them, or the time is over."""
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
            # Real time: a test that moves the broker's clock does not wait less for its clients.
            await asyncio.wait([enough], timeout=seconds)
        finally:
            self._listeners.remove(listen)
        return found

    async def follow(self, wanted: Filter) -> AsyncIterator[bytes]:
        """The entries that are there, and then, as they come, those to come."""
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


def _name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)
