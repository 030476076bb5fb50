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

from barnabas.broker.background import Background
from barnabas.broker.console.api import Api, access_now, body_of
from barnabas.broker.console.control_routes import add_control
from barnabas.broker.console.door import COOKIE, HEADERS, Door, bearer
from barnabas.broker.console.errors import ConsoleError, Unauthorized
from barnabas.broker.console.exposition import CONTENT_TYPE, exposition
from barnabas.broker.console.people import COOKIE as USER_COOKIE
from barnabas.broker.console.people import EVERYBODY, NOBODY, SECONDS, People, visitor
from barnabas.broker.metrics.metrics import Metrics
from barnabas.broker.testing.http import ControlError
from barnabas.protocol.acls import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.local_cluster import LocalCluster
    from barnabas.broker.testing.control import Control
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
    def __init__(
        self,
        cluster: LocalCluster,
        metrics: Metrics,
        lab: Lab,
        door: Door,
        *,
        writes: bool,
        control: Control | None = None,
    ) -> None:
        """With `control`, its routes can be used from the page."""
        self._door = door
        self._metrics = metrics
        self._files = {path.name: (path.read_bytes(), _TYPES[path.suffix]) for path in _PAGE.iterdir()}
        self._people = People(cluster)
        self._api = Api(cluster, metrics, lab, self._people, writes=writes, controls=control is not None)
        self._control = control
        self._runner: web.AppRunner | None = None
        self._background = Background("the console has stopped to note how far groups are behind")

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen, and return the address; OSError if that fails."""
        app = web.Application(middlewares=[self._guard, _errors_as_json], client_max_size=_MOST_BYTES)
        app.router.add_get("/", self._index)
        app.router.add_get("/page/{name}", self._file)
        app.router.add_get("/metrics", self._tell_metrics)
        app.router.add_get("/api/me", self._me)
        app.router.add_post("/api/sign-in", self._sign_in)
        app.router.add_post("/api/sign-out", self._sign_out)
        self._api.add_routes(app.router)
        if self._control is not None:
            add_control(app.router, self._control.routes, access_now)
        runner = self._runner = web.AppRunner(
            app, access_log=None, handle_signals=False, shutdown_timeout=_SECONDS_TO_END
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, host or None, port).start()
        except BaseException:
            await runner.cleanup()
            raise
        self._background.start(self._api.lags.keep())
        address: tuple[str, int] = runner.addresses[0][:2]
        return address

    async def stop(self) -> None:
        self._api.stop()
        await self._background.stop()
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
                response = await self._let_in(request, handler)
            except web.HTTPException as error:
                response = web.Response(status=error.status, text=error.text)
            except Unauthorized as error:
                response = web.json_response({"error": str(error)}, status=error.status)
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    async def _let_in(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Find out who the user is, where users sign in. The page itself, on which they do that, is for everybody."""
        host, people, found = request.remote or "", self._people, None
        if people.sign_in:
            found = people.by_session(request.cookies.get(USER_COOKIE), host)
            found = found or await people.by_password(request.headers, host)
            if found is None and not _is_public(request.path):
                error = {"error": "sign in first", "sign_in": True}
                return web.json_response(error, status=HTTPStatus.UNAUTHORIZED)
            visitor.set(found or NOBODY)
        else:
            visitor.set(EVERYBODY)
        return await handler(request)

    async def _me(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"user": visitor.get().user, "sign_in": self._people.sign_in})

    async def _sign_in(self, request: web.Request) -> web.StreamResponse:
        body = await body_of(request)
        user, password = body.get("user"), body.get("password")
        if not isinstance(user, str) or not isinstance(password, str):
            raise ConsoleError("'user' and 'password' are texts")
        session = await self._people.enter(user, password)
        response = web.json_response({"user": user})
        response.set_cookie(USER_COOKIE, session, httponly=True, samesite="Strict", path="/", max_age=SECONDS)
        return response

    async def _sign_out(self, request: web.Request) -> web.StreamResponse:
        self._people.leave(request.cookies.get(USER_COOKIE))
        response = web.json_response({})
        response.del_cookie(USER_COOKIE)
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
        if not access_now().cluster(AclOperation.DESCRIBE):
            raise web.HTTPForbidden(text="metrics are for those who may describe the cluster\n")
        wanted = request.query.get("partitions")
        if wanted not in (None, "true", "false"):
            raise web.HTTPBadRequest(text="partitions is true or false\n")
        families = await self._metrics.collect(None if wanted is None else wanted == "true")
        return web.Response(body=await exposition(families), headers={"Content-Type": CONTENT_TYPE})


def _is_public(path: str) -> bool:
    return path in ("/", "/api/me", "/api/sign-in", "/api/sign-out") or path.startswith("/page/")


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
