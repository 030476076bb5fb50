"""The control interface: what a test may ask of a running broker over HTTP, in any language.

This is the one table of its routes. Every one is documented, with an example, in docs/testing.md.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from barnabas.broker.controller.create_topics import NewTopic
from barnabas.broker.controller.delete_topics import TopicReference
from barnabas.broker.metrics.families import as_data
from barnabas.broker.metrics.metrics import Metrics
from barnabas.broker.testing import baseline
from barnabas.broker.testing.clock import MovableClock
from barnabas.broker.testing.http import BadRequest, Call, ControlError, HttpServer, NotFound, Route
from barnabas.broker.testing.lab import Lab
from barnabas.broker.testing.lab_routes import routes_of
from barnabas.broker.testing.nodes import all_well, known_everywhere, node_routes, refusals, term_of
from barnabas.broker.testing.reset import reset
from barnabas.broker.testing.settling import settle
from barnabas.broker.testing.snapshots import Snapshots
from barnabas.broker.testing.state import PARTS, state_of

if TYPE_CHECKING:
    from barnabas.broker.local_cluster import LocalCluster


class Control:
    def __init__(
        self,
        cluster: LocalCluster,
        token: str,
        stop: Callable[[bool], None],
        lab: Lab | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        """`stop` ends the brokers; its argument says whether to keep data that would be removed with them."""
        if not isinstance(cluster.clock, MovableClock):
            raise TypeError("a broker that is controlled needs a clock that can be moved")
        self._cluster = cluster
        self._clock = clock = cluster.clock
        self._stop = stop
        self._lab = lab or Lab(cluster)
        self._metrics = metrics or Metrics(cluster)
        self._snapshots = Snapshots(cluster, clock)
        self._changing = asyncio.Lock()  # operations on the whole broker run one at a time
        self._http = HttpServer(self._routes(), token)

    @property
    def routes(self) -> list[Route]:
        return self._http.routes

    async def start(self, host: str, port: int) -> tuple[str, int]:
        return await self._http.start(host, port)

    async def stop(self) -> None:
        await self._http.stop()

    def _routes(self) -> list[Route]:
        return [
            Route("GET", "/", self._index),
            Route("GET", "/state", self._state),
            Route("GET", "/state/{part}", self._state_part),
            Route("GET", "/metrics", self._tell_metrics),
            Route("GET", "/clock", self._time),
            Route("POST", "/clock/advance", self._advance),
            Route("POST", "/topics", self._create_topic),
            Route("DELETE", "/topics/{name}", self._delete_topic),
            Route("POST", "/reset", self._reset),
            Route("GET", "/snapshots", self._list_snapshots),
            Route("POST", "/snapshots", self._take_snapshot),
            Route("POST", "/snapshots/{name}/restore", self._restore_snapshot),
            Route("DELETE", "/snapshots/{name}", self._delete_snapshot),
            Route("GET", "/baseline", self._baseline),
            Route("POST", "/baseline", self._restore_baseline),
            Route("POST", "/stop", self._stop_brokers),
            *node_routes(self._cluster),
            *routes_of(self._lab),
        ]

    async def _index(self, call: Call) -> Any:
        return {"broker": "barnabas", "pid": os.getpid(), "routes": [f"{r.method} {r.path}" for r in self._http.routes]}

    # --- state ---

    async def _state(self, call: Call) -> Any:
        return state_of(self._cluster)

    async def _state_part(self, call: Call) -> Any:
        tell = PARTS.get(call.params["part"])
        if tell is None:
            raise NotFound(f"the state has no part {call.params['part']!r}, only {', '.join(PARTS)}")
        return tell(self._cluster)

    async def _tell_metrics(self, call: Call) -> Any:
        return as_data(await self._metrics.collect())

    # --- clock ---

    async def _time(self, call: Call) -> Any:
        return {"now_ms": self._clock.now_ms(), "ahead_ms": self._clock.ahead_ms}

    async def _advance(self, call: Call) -> Any:
        seconds = call.fields("seconds").get("seconds")
        if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 <= seconds <= 1e10:
            raise BadRequest("'seconds' says how far to move the clock: a number that is not negative", "seconds")
        async with self._changing:
            with self._silence():
                fired = await self._clock.advance(seconds, lambda: settle(self._cluster))
        return {"now_ms": self._clock.now_ms(), "ahead_ms": self._clock.ahead_ms, "fired": fired}

    @contextmanager
    def _silence(self) -> Iterator[None]:
        """Requests are held back while the clock moves: no client sent a heartbeat at a time in between."""
        servers = [broker.server for broker in self._cluster.brokers if not broker.server.is_paused]
        for server in servers:
            server.pause()
        try:
            yield
        finally:
            for server in servers:
                server.resume()

    # --- topics ---

    async def _create_topic(self, call: Call) -> Any:
        fields = call.fields("name", "partitions", "replication_factor", "configs")
        name, partitions, configs = fields.get("name"), fields.get("partitions", -1), fields.get("configs", {})
        replicas = fields.get("replication_factor", -1)
        if not isinstance(name, str):
            raise BadRequest("a topic needs a name", "name")
        if not isinstance(partitions, int) or isinstance(partitions, bool):
            raise BadRequest("'partitions' is a number", "partitions")
        if not isinstance(replicas, int) or isinstance(replicas, bool):
            raise BadRequest("'replication_factor' is a number", "replication_factor")
        if not isinstance(configs, dict):
            raise BadRequest("'configs' is an object of settings", "configs")
        topic = NewTopic(name, partitions, replicas, configs={key: _text(value) for key, value in configs.items()})
        (result,) = await term_of(self._cluster).create_topics([topic])
        if result.error_code:
            message = result.error_message or "the topic could not be created"
            raise ControlError(HTTPStatus.CONFLICT, f"{result.error_code.name}: {message}")
        await known_everywhere(self._cluster, name)
        return {"name": name, "partitions": result.num_partitions}

    async def _delete_topic(self, call: Call) -> Any:
        (result,) = await term_of(self._cluster).delete_topics([TopicReference(call.params["name"])])
        if result.error_code:
            raise NotFound(f"{result.error_code.name}: there is no topic {call.params['name']!r}")

    # --- the whole cluster ---

    async def _reset(self, call: Call) -> Any:
        call.fields()
        self._require_all_here()
        async with self._changing:
            self._lab.reset()
            await all_well(self._cluster)
            await reset(self._cluster)
            self._clock.set_wall_ahead(0)

    async def _baseline(self, call: Call) -> Any:
        return baseline.describe(self._lab, self._clock)

    async def _restore_baseline(self, call: Call) -> Any:
        fields = call.fields(*baseline.FIELDS)
        baseline.check(fields)
        async with self._changing:
            await all_well(self._cluster)
            baseline.restore(self._lab, self._clock, fields)
        return baseline.describe(self._lab, self._clock)

    async def _list_snapshots(self, call: Call) -> Any:
        return self._snapshots.names()

    async def _take_snapshot(self, call: Call) -> Any:
        name = call.fields("name").get("name")
        if name is not None and not isinstance(name, str):
            raise BadRequest("a snapshot's name is a text", "name")
        self._require_all_here()
        async with self._changing:
            return await self._snapshots.take(name)

    async def _restore_snapshot(self, call: Call) -> Any:
        call.fields()
        self._require_all_here()
        async with self._changing:
            return await self._snapshots.restore(call.params["name"])

    def _require_all_here(self) -> None:
        with refusals():
            self._cluster.require_all_here()

    async def _delete_snapshot(self, call: Call) -> Any:
        self._snapshots.delete(call.params["name"])

    async def _stop_brokers(self, call: Call) -> Any:
        keep = call.fields("keep_data").get("keep_data", False)
        if not isinstance(keep, bool):
            raise BadRequest("'keep_data' is true or false", "keep_data")
        self._stop(keep)


def _text(value: object) -> str:
    """A setting's value as Kafka writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
