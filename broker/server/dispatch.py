"""From a frame to its handler and back: the one table of what this broker serves."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final

from broker.server.request import Request
from protocol.api import ApiKey, request_header_version, request_type, response_header_version, response_type
from protocol.decoder import decoder, skip_tagged_fields
from protocol.encoder import Splices, encoder
from protocol.errors import ErrorCode, ProtocolError
from protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from protocol.schema import Message, Versions
from protocol.varint import read_uvarint

if TYPE_CHECKING:
    from broker.server.connection import Connection, Output

_PREFIX: Final = struct.Struct(">hhih")  # api key, version, correlation id, length of the client id
_PREFIX_SIZE: Final = _PREFIX.size
_unpack_prefix: Final = _PREFIX.unpack_from
_SIZE_AND_CORRELATION_ID: Final = struct.Struct(">ii")

# A handler returns its answer; or None if it answers later through the request; or a coroutine that does either, and
# runs as a task of its own.
Handler = Callable[[Request, Any], Message | Coroutine[Any, Any, Message | None] | None]


class ShortWay:
    """Handles the most common form of a request straight from its frame, without decoding it into a message."""

    versions: Versions

    def begin(
        self,
        connection: Connection,
        route: Route,
        correlation_id: int,
        client_id: str | None,
        frame: memoryview,
        pos: int,
    ) -> bool:
        """Begin the request whose body is at `pos`, or return False and leave it to its handler."""
        raise NotImplementedError


@dataclass(frozen=True)
class Api:
    """A row of the table.

    `versions` are those that are served, by default all that are declared. `advertised_from` is the lowest version that
    ApiVersions names where that is not the lowest served.
    """

    key: ApiKey
    handle: Handler
    versions: Versions | None = None
    advertised_from: int | None = None
    short_way: ShortWay | None = None

    @property
    def served(self) -> Versions:
        return self.versions or request_type(self.key).versions

    @property
    def advertised(self) -> ApiVersion:
        lowest = self.served.lowest if self.advertised_from is None else self.advertised_from
        return ApiVersion(api_key=self.key, min_version=lowest, max_version=self.served.highest)


class UnknownRequest(ProtocolError):
    """A key or a version that this broker does not serve."""


class Route:
    """How one version of one API is decoded, handled and answered. Made when it is first asked for."""

    __slots__ = ("_encode", "_flexible_answer", "decode", "flexible", "handle", "key", "short_way", "version")

    def __init__(self, api: Api, version: int) -> None:
        self.key = api.key
        self.version = version
        self.handle = api.handle
        short_way = api.short_way
        self.short_way = short_way if short_way is not None and version in short_way.versions else None
        self.flexible = request_header_version(api.key, version) == 2
        self.decode = decoder(request_type(api.key), version)
        self._encode = encoder(response_type(api.key), version)
        self._flexible_answer = response_header_version(api.key, version) == 1

    def encode(self, correlation_id: int, message: Message) -> Output:
        """A whole frame, in the parts in which it is sent."""
        out = bytearray(9) if self._flexible_answer else bytearray(8)
        splices: Splices = []
        self._encode(message, out, splices)
        if not splices:
            _SIZE_AND_CORRELATION_ID.pack_into(out, 0, len(out) - 4, correlation_id)
            return (out,)
        size = len(out) - 4 + sum(splice.size for _, splice in splices)
        _SIZE_AND_CORRELATION_ID.pack_into(out, 0, size, correlation_id)
        parts: list[Any] = []
        view = memoryview(out)
        start = 0
        for position, splice in splices:
            parts += (view[start:position], splice)
            start = position
        if start < len(out):
            parts.append(view[start:])
        return parts


class Dispatcher:
    def __init__(self, apis: Sequence[Api]) -> None:
        self.apis = {api.key: api for api in apis}
        self._routes: dict[tuple[int, int], Route] = {}
        self._make_route: Callable[[Api, int], Route] = Route
        self.on_refusal: Callable[[Connection, ProtocolError], None] | None = None
        self._tasks: set[asyncio.Task[Message | None]] = set()

    def dispatch(self, connection: Connection, frame: memoryview) -> None:
        """Begin a request. Raises ProtocolError if the frame cannot be understood, which ends its connection."""
        try:
            key, version, correlation_id, length = _unpack_prefix(frame)
        except struct.error:
            raise ProtocolError(f"a frame of {len(frame)} bytes holds no request header") from None
        route = self._routes.get((key, version))
        if route is None:
            if key == ApiKey.API_VERSIONS and version not in self.apis[ApiKey.API_VERSIONS].served:
                self._refuse_api_versions(connection, correlation_id)
                return
            route = self._new_route(key, version)
        pos = _PREFIX_SIZE
        client_id = None
        if length >= 0:
            client_id = connection.client_id_of(frame[pos : pos + length], length)
            pos += length
        elif length != -1:
            raise ProtocolError(f"a client id of length {length}")
        if route.flexible:
            pos = _skip_header_tags(frame, pos)
        short_way = route.short_way
        if short_way is not None:
            try:
                if short_way.begin(connection, route, correlation_id, client_id, frame, pos):
                    return
            except Exception:
                Request(connection, route, correlation_id, client_id).failed()
                return
        request = Request(connection, route, correlation_id, client_id)
        connection.requests.append(request)
        # Bytes after the message are let pass, as Kafka does: librdkafka sends some with Metadata.
        message, _ = route.decode(frame, pos)
        try:
            answer = route.handle(request, message)
        except Exception:
            request.failed()
            return
        if answer is None:
            return
        if isinstance(answer, CoroutineType):
            self.run(request, answer)
        else:
            request.answer(answer)  # type: ignore[arg-type]

    def run(self, request: Request, handling: Coroutine[Any, Any, Message | None]) -> None:
        """Let a handler that is a coroutine run, and give the request what it returns."""
        task = asyncio.get_running_loop().create_task(handling)
        self._tasks.add(task)
        task.add_done_callback(partial(self._handled, request))

    def _handled(self, request: Request, task: asyncio.Task[Message | None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        try:
            answer = task.result()
        except Exception:
            request.failed()
            return
        if answer is not None:
            request.answer(answer)

    def make_routes(self, make_route: Callable[[Api, int], Route]) -> None:
        """Make routes anew, by this from now on: how observers get to see requests (broker.server.observe)."""
        self._make_route = make_route
        self._routes = {}

    def refuse(self, connection: Connection, error: ProtocolError) -> None:
        """End a connection whose frame cannot be understood."""
        if self.on_refusal is not None:
            self.on_refusal(connection, error)
        connection.close(str(error))

    def _new_route(self, key: int, version: int) -> Route:
        try:
            api = self.apis[ApiKey(key)]
        except (KeyError, ValueError):
            raise UnknownRequest(f"no API has key {key} here") from None
        if version not in api.served:
            raise UnknownRequest(f"{api.key.api_name} has no version {version} here")
        route = self._routes.get((key, version))
        if route is None:
            route = self._routes[key, version] = self._make_route(api, version)
        return route

    def _refuse_api_versions(self, connection: Connection, correlation_id: int) -> None:
        """Answer in version 0's form, which every client reads, so that a newer client can ask again."""
        request = Request(connection, self._new_route(ApiKey.API_VERSIONS, 0), correlation_id, None)
        connection.requests.append(request)
        row = self.apis[ApiKey.API_VERSIONS].advertised
        request.answer(ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[row]))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _skip_header_tags(frame: memoryview, pos: int) -> int:
    try:
        if frame[pos] == 0:
            return pos + 1
        count, pos = read_uvarint(frame, pos)
        return skip_tagged_fields(frame, pos, count)
    except IndexError:
        raise ProtocolError("a request header is cut short") from None
