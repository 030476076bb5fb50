"""The console: a page, its API and `/metrics`, served by aiohttp on the broker's own event loop.

Nothing of this is imported without `barnabas serve --console`. Every request passes the door (broker.console.door).
What the API answers is JSON; the page asks for what it shows and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog
from aiohttp import web

from barnabas.broker.console.api import Api
from barnabas.broker.console.door import COOKIE, HEADERS, Door, bearer
from barnabas.broker.console.errors import ConsoleError
from barnabas.broker.console.exposition import CONTENT_TYPE, exposition
from barnabas.broker.metrics.metrics import Metrics
from barnabas.broker.testing.http import ControlError

if TYPE_CHECKING:
    from barnabas.broker.local_cluster import LocalCluster
    from barnabas.broker.testing.lab import Lab

log = structlog.get_logger()

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_PAGE: Final = Path(__file__).parent / "page"
_TYPES: Final = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}
_MOST_BYTES: Final = 2 * 1024 * 1024
_SECONDS_TO_END: Final = 1.0


class Console:
    def __init__(self, cluster: LocalCluster, metrics: Metrics, lab: Lab, door: Door, *, writes: bool) -> None:
        self._door = door
        self._metrics = metrics
        self._files = {path.name: (path.read_bytes(), _TYPES[path.suffix]) for path in _PAGE.iterdir()}
        self._api = Api(cluster, metrics, lab, writes=writes)
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen, and return the address; OSError if that fails."""
        app = web.Application(middlewares=[self._guard, _errors_as_json], client_max_size=_MOST_BYTES)
        app.router.add_get("/", self._index)
        app.router.add_get("/page/{name}", self._file)
        app.router.add_get("/metrics", self._tell_metrics)
        self._api.add_routes(app.router)
        runner = self._runner = web.AppRunner(
            app, access_log=None, handle_signals=False, shutdown_timeout=_SECONDS_TO_END
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, host or None, port).start()
        except BaseException:
            await runner.cleanup()
            raise
        address: tuple[str, int] = runner.addresses[0][:2]
        return address

    async def stop(self) -> None:
        self._api.stop()
        if self._runner is not None:
            await self._runner.cleanup()

    # --- the door ---

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        is_page = request.path == "/"
        token = request.query.get("token") if is_page else None
        given = token or bearer(request.headers) or request.cookies.get(COOKIE)
        refusal = self._door.objection(request.method, is_page, request.headers, given)
        response: web.StreamResponse
        if refusal is not None:
            response = web.Response(status=refusal.status, text=refusal.reason + "\n")
        elif token is not None:  # the address that was printed: from now on the browser has the token
            response = web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": "/"})
            if self._door.knows(token):
                response.set_cookie(COOKIE, token, httponly=True, samesite="Strict", path="/")
        else:
            try:
                response = await handler(request)
            except web.HTTPException as error:
                response = web.Response(status=error.status, text=error.text)
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    # --- the page and the metrics ---

    async def _index(self, request: web.Request) -> web.StreamResponse:
        return self._sent("index.html")

    async def _file(self, request: web.Request) -> web.StreamResponse:
        return self._sent(request.match_info["name"])

    def _sent(self, name: str) -> web.StreamResponse:
        found = self._files.get(name)
        if found is None:
            raise web.HTTPNotFound(text=f"there is no {name} here\n")
        return web.Response(body=found[0], content_type=found[1], charset="utf-8")

    async def _tell_metrics(self, request: web.Request) -> web.StreamResponse:
        wanted = request.query.get("partitions")
        if wanted not in (None, "true", "false"):
            raise web.HTTPBadRequest(text="partitions is true or false\n")
        families = await self._metrics.collect(None if wanted is None else wanted == "true")
        return web.Response(body=await exposition(families), headers={"Content-Type": CONTENT_TYPE})


@web.middleware
async def _errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except (ConsoleError, ControlError) as error:
        return web.json_response({"error": str(error)}, status=error.status, dumps=dumps)
    except web.HTTPException:
        raise
    except (ConnectionError, TimeoutError):
        raise
    except Exception:
        log.exception("the console failed", path=request.path)
        return web.json_response({"error": "the console failed; the broker's log says why"}, status=500)


def dumps(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"))
