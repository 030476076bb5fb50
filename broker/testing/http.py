"""A small HTTP/1.1 server that speaks JSON, with just enough HTTP for the control interface.

One table of routes answers all requests. A handler returns what json.dumps takes (None answers 204), or
an async iterator of bytes, which is streamed, or raises ControlError. Every request must carry the token:
`Authorization: Bearer TOKEN`. Sizes are limited before anything is read, and slow clients are disconnected.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import structlog

log = structlog.get_logger()

_MAX_HEAD: Final = 16 * 1024
_MAX_BODY: Final = 8 * 1024 * 1024
# How long a client may take to send a request, and stay silent between two.
_SECONDS_TO_ASK: Final = 30.0
_SECONDS_IDLE: Final = 300.0


class ControlError(Exception):
    """Why a request is refused, with the status and the offending field of the body."""

    def __init__(self, status: int, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.field = field


class BadRequest(ControlError):
    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(HTTPStatus.BAD_REQUEST, message, field)


class NotFound(ControlError):
    def __init__(self, message: str) -> None:
        super().__init__(HTTPStatus.NOT_FOUND, message)


class Call(NamedTuple):
    """One request."""

    method: str
    path: str
    params: Mapping[str, str]  # the values of the route's {names}
    query: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON; None if there is none."""
        if not self.body:
            return None
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise BadRequest(f"the body is not JSON: {error}") from None

    def fields(self, *known: str) -> dict[str, Any]:
        """The body as an object with only these fields."""
        body = {} if (parsed := self.json()) is None else parsed
        if not isinstance(body, dict):
            raise BadRequest("the body is not a JSON object")
        for name in body:
            if name not in known:
                takes = ", ".join(known) or "none"
                raise BadRequest(f"there is no field {name!r} here; the fields are: {takes}", name)
        return body


class Text(NamedTuple):
    """An answer that is not JSON, or is already encoded."""

    body: bytes
    content_type: str


Answer = Any
Handler = Callable[[Call], Awaitable[Answer]]


class Route(NamedTuple):
    method: str
    path: str  # "/things/{name}": a name in braces stands for one part of the path
    handle: Handler


class _Head(NamedTuple):
    method: str
    target: str
    headers: Mapping[str, str]
    keep_alive: bool


class HttpServer:
    def __init__(self, routes: Iterable[Route], token: str) -> None:
        self.routes = list(routes)
        self._token = token.encode()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen, and return the address; OSError if that fails."""
        self._server = await asyncio.start_server(self._connected, host, port, limit=_MAX_HEAD)
        address: tuple[str, int] = self._server.sockets[0].getsockname()[:2]
        return address

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    # --- connections ---

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while await self._serve_one(reader, writer):
                pass
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError):
            pass  # the client has gone, or was too slow
        except asyncio.CancelledError:
            pass  # the server stops; only `stop` waits for this task
        finally:
            self._connections.discard(task)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; returns whether another may follow on this connection."""
        keep_alive = False
        try:
            head = await self._read_head(reader)
            self._check_token(head)
            body = await self._read_body(head, reader, writer)
            keep_alive = head.keep_alive
            answer = await self._answer(head, body)
        except ControlError as error:
            fault = {"error": str(error)} | ({} if error.field is None else {"field": error.field})
            await _send(writer, error.status, _json(fault), keep_alive=keep_alive)
            return keep_alive
        if isinstance(answer, AsyncIterator):
            await _stream(reader, writer, answer)
            return False
        if answer is None:
            await _send(writer, HTTPStatus.NO_CONTENT, b"", keep_alive=keep_alive)
        elif isinstance(answer, Text):
            await _send(writer, HTTPStatus.OK, answer.body, answer.content_type, keep_alive=keep_alive)
        else:
            await _send(writer, HTTPStatus.OK, _json(answer), keep_alive=keep_alive)
        return keep_alive

    async def _read_head(self, reader: asyncio.StreamReader) -> _Head:
        async with asyncio.timeout(_SECONDS_IDLE):
            first = await reader.readexactly(1)
        try:
            async with asyncio.timeout(_SECONDS_TO_ASK):
                raw = first + await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            raise ControlError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the header is too long") from None
        lines = raw.decode("latin-1").split("\r\n")
        words = lines[0].split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            raise BadRequest("this is not an HTTP/1.1 request")
        headers: dict[str, str] = {}
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if colon:
                headers[name.strip().lower()] = value.strip()
        wish = headers.get("connection", "").lower()
        return _Head(words[0], words[1], headers, "close" not in wish if words[2] == "HTTP/1.1" else False)

    def _check_token(self, head: _Head) -> None:
        scheme, _, token = head.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(token.strip().encode("latin-1"), self._token):
            raise ControlError(HTTPStatus.UNAUTHORIZED, "the header 'Authorization: Bearer TOKEN' is missing or wrong")

    async def _read_body(self, head: _Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        if "transfer-encoding" in head.headers:
            raise ControlError(HTTPStatus.LENGTH_REQUIRED, "a body needs its Content-Length")
        length = head.headers.get("content-length", "0")
        if not length.isascii() or not length.isdecimal():
            raise BadRequest("the Content-Length is not a number")
        if int(length) > _MAX_BODY:
            raise ControlError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body may have {_MAX_BODY} bytes at most")
        if head.headers.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        async with asyncio.timeout(_SECONDS_TO_ASK):
            return await reader.readexactly(int(length))

    # --- the table ---

    async def _answer(self, head: _Head, body: bytes) -> Answer:
        try:
            target = urlsplit(head.target)
        except ValueError:
            raise BadRequest(f"{head.target!r} is not a path") from None
        handle, params = self._find(head.method, target.path)
        query = dict(parse_qsl(target.query, keep_blank_values=True))
        try:
            return await handle(Call(head.method, target.path, params, query, body))
        except ControlError:
            raise
        except Exception as error:
            log.exception("control request failed", method=head.method, path=target.path)
            message = f"{type(error).__name__}: {error}"
            raise ControlError(HTTPStatus.INTERNAL_SERVER_ERROR, message) from error

    def _find(self, method: str, path: str) -> tuple[Handler, dict[str, str]]:
        others: list[str] = []
        for route in self.routes:
            params = _match(route.path, path)
            if params is None:
                continue
            if route.method == method:
                return route.handle, params
            others.append(route.method)
        if others:
            message = f"{path} takes {' and '.join(sorted(set(others)))}, not {method}"
            raise ControlError(HTTPStatus.METHOD_NOT_ALLOWED, message)
        raise NotFound(f"there is no {path} here; GET / lists the routes")


def _match(pattern: str, path: str) -> dict[str, str] | None:
    wanted, given = pattern.split("/"), path.split("/")
    if len(wanted) != len(given):
        return None
    params: dict[str, str] = {}
    for want, part in zip(wanted, given, strict=True):
        if want.startswith("{"):
            if not part:
                return None
            params[want[1:-1]] = unquote(part)
        elif want != part:
            return None
    return params


def _json(answer: Any) -> bytes:
    return json.dumps(answer, separators=(",", ":")).encode() + b"\n"


def _head(status: int, *lines: str) -> bytes:
    if status == HTTPStatus.UNAUTHORIZED:
        lines = (*lines, "WWW-Authenticate: Bearer")
    return "\r\n".join([f"HTTP/1.1 {int(status)} {HTTPStatus(status).phrase}", *lines, "", ""]).encode()


async def _send(
    writer: asyncio.StreamWriter,
    status: int,
    body: bytes,
    content_type: str = "application/json",
    *,
    keep_alive: bool,
) -> None:
    lines = [] if keep_alive else ["Connection: close"]
    if status != HTTPStatus.NO_CONTENT:
        lines += [f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
    writer.write(_head(status, *lines) + body)
    await writer.drain()


async def _stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, parts: AsyncIterator[bytes]) -> None:
    """Send parts as they come, until there are no more or the client is gone."""
    writer.write(
        _head(HTTPStatus.OK, "Content-Type: application/jsonl", "Transfer-Encoding: chunked", "Connection: close")
    )
    await writer.drain()
    gone = asyncio.ensure_future(reader.read(1))  # a streaming client sends nothing more
    try:
        while True:
            part = asyncio.ensure_future(anext(parts))
            try:
                await asyncio.wait({part, gone}, return_when=asyncio.FIRST_COMPLETED)
                if not part.done():
                    return
                data = part.result()
            except StopAsyncIteration:
                break
            finally:
                part.cancel()
                with suppress(asyncio.CancelledError, StopAsyncIteration):
                    await part
            if data:
                writer.write(b"%x\r\n%b\r\n" % (len(data), data))
                await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()
    finally:
        gone.cancel()
        close = getattr(parts, "aclose", None)
        if close is not None:
            await close()
