"""The control interface: what a test may ask of a running broker over HTTP, in any language.

This is the one table of its routes. Every one is documented, with an example, in TESTING.md.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from broker.controller.create_topics import NewTopic
from broker.controller.delete_topics import TopicReference
from broker.testing.clock import MovableClock
from broker.testing.http import BadRequest, Call, ControlError, HttpServer, NotFound, Route
from broker.testing.lab import Lab
from broker.testing.lab_routes import routes_of
from broker.testing.quiet import settle
from broker.testing.reset import reset
from broker.testing.snapshots import Snapshots
from broker.testing.state import PARTS, state_of

if TYPE_CHECKING:
    from broker.broker import Broker


class Control:
    def __init__(self, broker: Broker, token: str, stop: Callable[[bool], None], lab: Lab | None = None) -> None:
        """`stop` ends the broker; it is told whether data that would go with it is to be kept."""
        if not isinstance(broker.clock, MovableClock):
            raise TypeError("a broker that is controlled needs a clock that can be moved")
        self._broker = broker
        self._clock = clock = broker.clock
        self._stop = stop
        self._lab = lab or Lab(broker)
        self._snapshots = Snapshots(broker, clock)
        self._changing = asyncio.Lock()  # what moves the whole broker does so one at a time
        self._http = HttpServer(self._routes(), token)

    async def start(self, host: str, port: int) -> tuple[str, int]:
        return await self._http.start(host, port)

    async def stop(self) -> None:
        await self._http.stop()

    def _routes(self) -> list[Route]:
        return [
            Route("GET", "/", self._index),
            Route("GET", "/state", self._state),
            Route("GET", "/state/{part}", self._state_part),
            Route("GET", "/clock", self._time),
            Route("POST", "/clock/advance", self._advance),
            Route("POST", "/topics", self._create_topic),
            Route("DELETE", "/topics/{name}", self._delete_topic),
            Route("POST", "/reset", self._reset),
            Route("GET", "/snapshots", self._list_snapshots),
            Route("POST", "/snapshots", self._take_snapshot),
            Route("POST", "/snapshots/{name}/restore", self._restore_snapshot),
            Route("DELETE", "/snapshots/{name}", self._delete_snapshot),
            Route("POST", "/stop", self._stop_broker),
            *routes_of(self._lab),
        ]

    async def _index(self, call: Call) -> Any:
        return {"broker": "barnabas", "pid": os.getpid(), "routes": [f"{r.method} {r.path}" for r in self._http.routes]}

    # --- state ---

    async def _state(self, call: Call) -> Any:
        return state_of(self._broker)

    async def _state_part(self, call: Call) -> Any:
        tell = PARTS.get(call.params["part"])
        if tell is None:
            raise NotFound(f"the state has no part {call.params['part']!r}, only {', '.join(PARTS)}")
        return tell(self._broker)

    # --- clock ---

    async def _time(self, call: Call) -> Any:
        return {"now_ms": self._clock.now_ms(), "ahead_ms": self._clock.ahead_ms}

    async def _advance(self, call: Call) -> Any:
        seconds = call.fields("seconds").get("seconds")
        if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 <= seconds <= 1e10:
            raise BadRequest("'seconds' says how far to move the clock: a number that is not negative", "seconds")
        async with self._changing:
            with self._silence():
                fired = await self._clock.advance(seconds, lambda: settle(self._broker))
        return {"now_ms": self._clock.now_ms(), "ahead_ms": self._clock.ahead_ms, "fired": fired}

    @contextmanager
    def _silence(self) -> Iterator[None]:
        """No client says anything while the clock is moved: a heartbeat half-way would be one that nobody sent then."""
        server = self._broker.server
        if server.is_paused:
            yield
            return
        server.pause()
        try:
            yield
        finally:
            server.resume()

    # --- topics ---

    async def _create_topic(self, call: Call) -> Any:
        fields = call.fields("name", "partitions", "configs")
        name, partitions, configs = fields.get("name"), fields.get("partitions", -1), fields.get("configs", {})
        if not isinstance(name, str):
            raise BadRequest("a topic needs a name", "name")
        if not isinstance(partitions, int) or isinstance(partitions, bool):
            raise BadRequest("'partitions' is a number", "partitions")
        if not isinstance(configs, dict):
            raise BadRequest("'configs' is an object of settings", "configs")
        topic = NewTopic(name, partitions, configs={key: _text(value) for key, value in configs.items()})
        (result,) = await self._broker.create_topics([topic])
        if result.error_code:
            message = result.error_message or "the topic could not be created"
            raise ControlError(HTTPStatus.CONFLICT, f"{result.error_code.name}: {message}")
        return {"name": name, "partitions": len(self._broker.replicas.of_topic(name))}

    async def _delete_topic(self, call: Call) -> Any:
        (result,) = await self._broker.controller.delete_topics([TopicReference(call.params["name"])])
        if result.error_code:
            raise NotFound(f"{result.error_code.name}: there is no topic {call.params['name']!r}")

    # --- the whole of it ---

    async def _reset(self, call: Call) -> Any:
        call.fields()
        async with self._changing:
            self._lab.reset()
            await reset(self._broker)
            self._clock.set_wall_ahead(0)

    async def _list_snapshots(self, call: Call) -> Any:
        return self._snapshots.names()

    async def _take_snapshot(self, call: Call) -> Any:
        name = call.fields("name").get("name")
        if name is not None and not isinstance(name, str):
            raise BadRequest("a snapshot's name is a text", "name")
        async with self._changing:
            return await self._snapshots.take(name)

    async def _restore_snapshot(self, call: Call) -> Any:
        call.fields()
        async with self._changing:
            return await self._snapshots.restore(call.params["name"])

    async def _delete_snapshot(self, call: Call) -> Any:
        self._snapshots.delete(call.params["name"])

    async def _stop_broker(self, call: Call) -> Any:
        keep = call.fields("keep_data").get("keep_data", False)
        if not isinstance(keep, bool):
            raise BadRequest("'keep_data' is true or false", "keep_data")
        self._stop(keep)


def _text(value: object) -> str:
    """A setting's value as Kafka writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
