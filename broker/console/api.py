"""The console's API. docs/console.md describes it; the page uses nothing else.

A view (broker.console.views) can be asked for once, `/api/topics?page=0`, or be watched. `/api/live` takes questions
under names of the caller's own, `watch={"list":{"view":"topics","page":"0"}}`, and sends server-sent events: the
answers to all of them, and then those that have changed. One stream is enough for a page: a browser has few to give.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from barnabas.broker.console.changes import Changes
from barnabas.broker.console.door import HEADERS
from barnabas.broker.console.errors import ConsoleError, Forbidden, NotFound
from barnabas.broker.console.lags import LagHistory
from barnabas.broker.console.messages import MOST_SHOWN, Messages
from barnabas.broker.console.paging import Json, Query
from barnabas.broker.console.people import People, visitor
from barnabas.broker.console.pipelines import Pipelines
from barnabas.broker.console.views import Views
from barnabas.broker.metrics.metrics import Metrics
from barnabas.broker.security.authorizer import Access
from barnabas.broker.testing.journal.entry import FilterError, parse_filter
from barnabas.broker.testing.journal.journal import Journal
from barnabas.broker.testing.strict.strict import Strict
from barnabas.protocol.acls import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.local_cluster import LocalCluster
    from barnabas.broker.testing.lab import Lab

_SECONDS_BETWEEN_LOOKS: Final = 1.0
# So often a watcher hears something, even if nothing has changed: otherwise nobody notices that it has gone.
_LOOKS_WITHOUT_NEWS: Final = 15
_MOST_ENTRIES: Final = 200
_MOST_QUESTIONS: Final = 8

Body = dict[str, Any]
Handle = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Api:
    def __init__(
        self, cluster: LocalCluster, metrics: Metrics, lab: Lab, people: People, *, writes: bool, controls: bool
    ) -> None:
        self._people = people
        self.lags = LagHistory(cluster)
        self._views = Views(cluster, metrics, self.lags, writes=writes, controls=controls)
        self._views.table["journal"] = self._journal
        self._views.table["strict"] = self._strict
        self._views.table["pipelines"] = self._pipelines
        self._announced = Pipelines(cluster.clock)
        self._messages = Messages(cluster)
        self._changes = Changes(cluster, self._messages)
        self._lab = lab
        self._writes = writes
        self._streams: set[asyncio.Task[Any]] = set()

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get("/api/live", self._live)
        router.add_get("/api/messages", self._read_messages)
        router.add_get("/api/message", self._read_message)
        router.add_get("/api/tail", self._tail)
        router.add_post("/api/journal", self._switch(self._lab.journal))
        router.add_post("/api/strict", self._switch(self._lab.strict))
        router.add_post("/api/pipelines", self._announce)
        changes = self._changes
        for path, change in (
            ("/api/topics/create", changes.create_topic),
            ("/api/topics/grow", changes.grow_topic),
            ("/api/topics/alter", changes.alter_topic),
            ("/api/topics/delete", changes.delete_topic),
            ("/api/messages/produce", changes.produce),
            ("/api/messages/replay", changes.replay),
            ("/api/messages/delete", changes.delete_records),
            ("/api/groups/reset", changes.reset_group),
            ("/api/groups/delete", changes.delete_group),
        ):
            router.add_post(path, self._changing(change))
        for name in self._views.table:
            router.add_get(f"/api/{name}", self._viewing(name))

    def stop(self) -> None:
        for task in self._streams:
            task.cancel()

    # --- views ---

    def _viewing(self, name: str) -> Handle:
        async def handle(request: web.Request) -> web.StreamResponse:
            return _answer(self._views.table[name](access_now(), request.query))

        return handle

    async def _live(self, request: web.Request) -> web.StreamResponse:
        questions = self._questions(request.query.get("watch", ""))
        reader = visitor.get()
        access = reader.access

        async def looks() -> AsyncIterator[Any]:
            told: dict[str, Any] = {}
            silent = 0
            while self._people.is_still_there(reader):
                now = {}
                for name, question in questions.items():
                    now[name] = self._look(access, question)
                    await asyncio.sleep(0)  # clients come first
                changed = {name: answer for name, answer in now.items() if told.get(name) != answer}
                silent += 1
                if changed or silent > _LOOKS_WITHOUT_NEWS:
                    told, silent = now, 0
                    yield changed
                await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)

        return await self._stream(request, looks())

    def _questions(self, text: str) -> dict[str, dict[str, str]]:
        try:
            told = json.loads(text)
            questions = {str(name): {str(k): str(v) for k, v in asked.items()} for name, asked in told.items()}
        except (ValueError, AttributeError):
            raise ConsoleError("'watch' is a JSON object of questions") from None
        if not 0 < len(questions) <= _MOST_QUESTIONS:
            raise ConsoleError(f"one stream answers 1 to {_MOST_QUESTIONS} questions")
        for asked in questions.values():
            if asked.get("view") not in self._views.table:
                raise NotFound(f"there is no such view, only {', '.join(self._views.table)}")
        return questions

    def _look(self, access: Access, question: Query) -> Any:
        try:
            return self._views.table[question["view"]](access, question)
        except ConsoleError as error:  # its topic has been deleted, for example
            return {"error": str(error)}

    async def _stream(self, request: web.Request, parts: AsyncIterator[Any]) -> web.StreamResponse:
        """Server-sent events, until the reader goes away or the console stops.

        Only a write tells that the reader has gone: None, where there is nothing to send, is a comment.
        """
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        try:
            async for part in parts:
                event = b":" if part is None else b"data: " + json.dumps(part, separators=(",", ":")).encode()
                await response.write(event + b"\n\n")
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._streams.discard(task)
            close = getattr(parts, "aclose", None)
            if close is not None:
                await close()
        return response

    # --- messages ---

    async def _read_messages(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        topic, partition, text = _readable(request), query.get("partition"), query.get("search", "")
        limit = min(_number(query, "limit", 50), MOST_SHOWN)
        cursor = query.get("cursor")
        if "offset" in query or "time" in query:
            time_ms = _number(query, "time", 0) if "time" in query else None
            offset = _number(query, "offset", 0)
            found = await self._messages.from_position(topic, partition, text, cursor, limit, offset, time_ms)
        else:
            found = await self._messages.newest(topic, partition, text, cursor, limit)
        return _answer(found)

    async def _read_message(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        offset = _number(query, "offset", 0)
        return _answer(await self._messages.one(_readable(request), query.get("partition", "0"), offset))

    async def _tail(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        topic, partition, text = _readable(request), query.get("partition"), query.get("search", "")
        self._messages.partitions(topic, partition)  # complains before anything is streamed
        reader = visitor.get()

        async def parts() -> AsyncIterator[Any]:
            async with aclosing(self._messages.tail(topic, partition, text)) as tail:
                async for part in tail:
                    if not (self._people.is_still_there(reader) and reader.access.topic(AclOperation.READ, topic)):
                        return
                    yield part

        return await self._stream(request, parts())

    # --- the journal, strict mode ---

    def _journal(self, access: Access, query: Query) -> Json:
        _check_sees_all(access)
        journal = self._lab.journal
        wanted = {name: query[name] for name in ("api", "client_id", "topic", "group", "error") if query.get(name)}
        try:
            found = journal.select(parse_filter(wanted), _MOST_ENTRIES)
        except FilterError as error:
            raise ConsoleError(str(error)) from None
        return {
            "on": journal.on,
            "last": journal.last_number,
            "rows": [_short(json.loads(entry.line)) for entry in reversed(found[-_MOST_ENTRIES:])],
        }

    def _strict(self, access: Access, query: Query) -> Json:
        _check_sees_all(access)
        strict = self._lab.strict
        reports = sorted(strict.reports, key=lambda report: -report.at_ms)
        return {
            "on": strict.on,
            "total": len(reports),
            "rows": [report.describe() for report in reports[:_MOST_ENTRIES]],
        }

    def _switch(self, part: Journal | Strict) -> Handle:
        async def handle(request: web.Request) -> web.StreamResponse:
            _check_sees_all(access_now())
            wanted = (await body_of(request)).get("on")
            if not isinstance(wanted, bool):
                raise ConsoleError("'on' is true or false")
            part.switch(wanted)
            return _answer({"on": part.on})

        return handle

    # --- pipelines ---

    def _pipelines(self, access: Access, query: Query) -> Json:
        return self._announced.shown(access)

    async def _announce(self, request: web.Request) -> web.StreamResponse:
        """A pipeline tells how it is doing."""
        self._announced.announce(await body_of(request))
        return _answer({})

    # --- changes ---

    def _changing(self, change: Callable[[Access, Body], Awaitable[Any]]) -> Handle:
        async def handle(request: web.Request) -> web.StreamResponse:
            if not self._writes:
                raise Forbidden("this console can only look: start the broker with --console-write to change something")
            return _answer(await change(access_now(), await body_of(request)))

        return handle


def access_now() -> Access:
    """What whoever asks may do: the door has found out who that is."""
    return visitor.get().access


def _readable(request: web.Request) -> str:
    """The topic whose messages are wanted."""
    topic, access = request.query.get("topic", ""), access_now()
    if not access.topic(AclOperation.DESCRIBE, topic):
        raise NotFound(f"there is no topic {topic!r}")
    if not access.topic(AclOperation.READ, topic):
        raise Forbidden(f"you may not read {topic}")
    return topic


def _check_sees_all(access: Access) -> None:
    """Requests of everybody are for those who may do everything to the cluster."""
    if not access.cluster(AclOperation.ALTER):
        raise Forbidden("you may not alter the cluster, and the requests of others are shown to those who may")


def _answer(data: Any) -> web.StreamResponse:
    return web.json_response(data, dumps=lambda data: json.dumps(data, separators=(",", ":")))


async def body_of(request: web.Request) -> Body:
    """Only JSON: a form of another site cannot send it."""
    if request.content_type != "application/json":
        raise ConsoleError("the body must be JSON, and its Content-Type application/json")
    try:
        body = await request.json()
    except ValueError:
        raise ConsoleError("the body is not JSON") from None
    if not isinstance(body, dict):
        raise ConsoleError("the body is not a JSON object")
    return body


def _number(query: Query, name: str, default: int) -> int:
    text = query.get(name)
    if text is None or text == "":
        return default
    if not text.isdigit() or len(text) > 18:
        raise ConsoleError(f"{name} is a number that is not negative")
    return int(text)


def _short(entry: Json) -> Json:
    """An entry without what fills the screen: the page shows the request and its answer as text, cut."""
    for part in ("request", "answer"):
        text = json.dumps(entry.get(part), indent=1)
        entry[part] = text if len(text) <= 4000 else text[:4000] + " …"
    return entry
