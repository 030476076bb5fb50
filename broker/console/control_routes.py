"""The control interface's routes on the console's address: faults, clock, snapshots, reset, at a click.

They are those of broker.testing.control, below `/api/control`, and answer the same. docs/testing.md describes them.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from aiohttp import web

from barnabas.broker.console.errors import ConsoleError, Forbidden
from barnabas.broker.security.authorizer import Access
from barnabas.broker.testing.http import Call, Route, Text
from barnabas.protocol.acls import AclOperation

# What streams, or ends the process, is for the control interface itself.
_NOT_HERE: Final = ("/journal/follow", "/stop", "/")


def add_control(router: web.UrlDispatcher, routes: Iterable[Route], access_now: Callable[[], Access]) -> None:
    for route in routes:
        if route.path not in _NOT_HERE:
            router.add_route(route.method, f"/api/control{route.path}", _handler(route, access_now))


def _handler(route: Route, access_now: Callable[[], Access]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        if not access_now().cluster(AclOperation.ALTER):
            raise Forbidden("you may not alter the cluster")
        body = await request.read()
        if body and request.content_type != "application/json":  # which no form of another site can send
            raise ConsoleError("the body must be JSON, and its Content-Type application/json")
        answer = await route.handle(Call(request.method, request.path, dict(request.match_info), request.query, body))
        if answer is None:
            return web.Response(status=204)
        if isinstance(answer, Text):
            return web.Response(body=answer.body, content_type=answer.content_type)
        return web.json_response(answer, dumps=lambda data: json.dumps(data, separators=(",", ":")))

    return handle
