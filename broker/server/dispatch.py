"""From a frame to its handler and back: the one table of what this broker serves."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Coroutine, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from barnabas.broker.server.freeing import BYTES_PER_STEP, LongList
from barnabas.broker.server.pieces import Pieces, Steps
from barnabas.broker.server.request import Pause, Request
from barnabas.protocol.api import ApiKey, request_header_version, request_type, response_header_version, response_type
from barnabas.protocol.decoder import (
    MOST_ELEMENTS,
    MOST_ELEMENTS_BETWEEN_BROKERS,
    DecoderInPieces,
    decoder,
    decoder_in_pieces,
    skip_tagged_fields,
)
from barnabas.protocol.encoder import Encoder, EncoderInPieces, Splices, encoder, encoder_in_pieces
from barnabas.protocol.error_counts import ErrorCounts, error_counter, error_counter_in_pieces
from barnabas.protocol.errors import ErrorCode, ProtocolError
from barnabas.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas.protocol.schema import Message, Versions
from barnabas.protocol.varint import read_uvarint

if TYPE_CHECKING:
    from barnabas.broker.server.connection import Connection, Output
    from barnabas.broker.server.metering import Meters

T = TypeVar("T")

_PREFIX: Final = struct.Struct(">hhih")  # api key, version, correlation id, length of the client id
_PREFIX_SIZE: Final = _PREFIX.size
_unpack_prefix: Final = _PREFIX.unpack_from
_SIZE_AND_CORRELATION_ID: Final = struct.Struct(">ii")

# A frame up to this size has few enough elements to be decoded at once. In a larger one they are counted.
SMALL_FRAME: Final = 4096
# An answer without the records in it, which stay in their files. Clients also refuse longer ones.
_LONGEST_ANSWER: Final = 100 * 1024 * 1024

# A handler returns its answer, or None if it answers later through the request, or a coroutine that does either and
# runs as its own task, or a generator that does either and yields after each step (broker.server.pieces).
Handled = Message | Coroutine[Any, Any, Message | None] | Steps[Message | None] | None
Handler = Callable[[Request, Any], Handled]


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
        """Start the request whose body is at `pos`, or return False and leave it to its handler."""
        raise NotImplementedError


@dataclass(frozen=True)
class Api:
    """A row of the table.

    `versions` are those that are served, by default all that are declared. `advertised_from` is the lowest version that
    ApiVersions names where that is not the lowest served. What brokers ask only each other is not advertised to
    clients.
    """

    key: ApiKey
    handle: Handler
    versions: Versions | None = None
    advertised_from: int | None = None
    short_way: ShortWay | None = None
    between_brokers: bool = False
    errors: ErrorCounts | None = None  # counts those in its answers, where somebody wants to know

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
    """How one version of one API is decoded, handled and answered. Created on first use."""

    __slots__ = (
        "_decode_in_pieces",
        "_encode",
        "_encode_in_pieces",
        "_errors",
        "_flexible_answer",
        "_request_type",
        "_response_type",
        "decode",
        "flexible",
        "handle",
        "key",
        "short_way",
        "version",
    )

    def __init__(self, api: Api, version: int) -> None:
        self.key = api.key
        self.version = version
        self.handle = api.handle
        short_way = api.short_way
        self.short_way = short_way if short_way is not None and version in short_way.versions else None
        self.flexible = request_header_version(api.key, version) == 2
        self._request_type, self._response_type = request_type(api.key), response_type(api.key)
        self.decode = decoder(self._request_type, version)
        self._errors = api.errors
        encode = encoder(self._response_type, version)
        self._encode = encode if api.errors is None else _counting_errors(encode, self._response_type, api.errors)
        self._flexible_answer = response_header_version(api.key, version) == 1
        # Made on their first use: most versions never see a long request or a long answer.
        self._decode_in_pieces: DecoderInPieces[Any] | None = None
        self._encode_in_pieces: EncoderInPieces | None = None

    def decode_in_pieces(self, frame: memoryview, pos: int, *, from_broker: bool) -> Steps[tuple[Message, int]]:
        if self._decode_in_pieces is None:
            self._decode_in_pieces = decoder_in_pieces(self._request_type, self.version)
            yield
        most = MOST_ELEMENTS_BETWEEN_BROKERS if from_broker else MOST_ELEMENTS
        return (yield from self._decode_in_pieces(frame, pos, LongList, most))

    def encode(self, correlation_id: int, message: Message) -> Output:
        """A complete frame, in the parts in which it is sent."""
        out = bytearray(9) if self._flexible_answer else bytearray(8)
        splices: Splices = []
        self._encode(message, out, splices)
        return _framed(correlation_id, out, splices)

    def size_of_answer(self, message: Message) -> int:
        """How long an answer is, without the header but, as in Kafka, with the length field in front of it."""
        out = bytearray(4)
        splices: Splices = []
        encoder(self._response_type, self.version)(message, out, splices)
        return len(out) + sum(splice.size for _, splice in splices)

    def encode_in_pieces(self, correlation_id: int, message: Message, long: list[list[Any]]) -> Steps[Output]:
        """The same in pieces. The long arrays of the message are added to `long`."""
        if self._errors is not None:
            yield from error_counter_in_pieces(self._response_type)(message, self._errors)
        out = bytearray(9) if self._flexible_answer else bytearray(8)
        splices: Splices = []
        if self._encode_in_pieces is None:
            self._encode_in_pieces = encoder_in_pieces(self._response_type, self.version)
            yield
        parts: list[Any] = []
        before = 0  # how many bytes the parts have
        for _ in self._encode_in_pieces(message, out, splices, long):
            if before + len(out) > _LONGEST_ANSWER:
                raise AnswerTooLong
            if len(out) >= BYTES_PER_STEP:  # so that its memory is freed a part at a time, as it is sent
                before += len(out)
                parts += _spliced(memoryview(bytearray(out)), splices)
                out.clear()
                splices.clear()
            yield
        return _framed(correlation_id, out, splices, parts)


def _counting_errors(encode: Encoder, answer: type[Message], errors: ErrorCounts) -> Encoder:
    count = error_counter(answer)

    def count_and_encode(message: Any, out: bytearray, splices: Splices) -> None:
        count(message, errors)
        encode(message, out, splices)

    return count_and_encode


def _framed(correlation_id: int, out: bytearray, splices: Splices, before: Sequence[Any] = ()) -> Output:
    if not splices and not before:
        _SIZE_AND_CORRELATION_ID.pack_into(out, 0, len(out) - 4, correlation_id)
        return (out,)
    parts = [*before, *_spliced(memoryview(out), splices)]
    size = sum(len(part) if isinstance(part, memoryview) else part.size for part in parts)
    _SIZE_AND_CORRELATION_ID.pack_into(parts[0], 0, size - 4, correlation_id)
    return parts


def _spliced(view: memoryview, splices: Splices) -> list[Any]:
    parts: list[Any] = []
    start = 0
    for position, splice in splices:
        parts += (view[start:position], splice)
        start = position
    if start < len(view):
        parts.append(view[start:])
    return parts


class Dispatcher:
    def __init__(self, apis: Sequence[Api]) -> None:
        self.apis = {api.key: api for api in apis}
        self._routes: dict[tuple[int, int], Route] = {}
        self._make_route: Callable[[Api, int], Route] = Route
        self.on_refusal: Callable[[Connection, ProtocolError], None] | None = None
        self.meters: Meters | None = None  # while there are quotas of clients
        self._tasks: dict[asyncio.Task[Message | None], None] = {}
        self.pieces = Pieces()

    def dispatch(self, connection: Connection, frame: memoryview) -> None:
        """Start a request. Raises ProtocolError if the frame cannot be understood, which ends its connection."""
        try:
            key, version, correlation_id, length = _unpack_prefix(frame)
        except struct.error:
            raise ProtocolError(f"a frame of {len(frame)} bytes holds no request header") from None
        route = self._routes.get((key, version))
        if route is None:
            if key == ApiKey.API_VERSIONS and version not in self.apis[ApiKey.API_VERSIONS].served:
                self._refuse_api_versions(connection, correlation_id)
                return
            self._prepare(connection, frame, self._served(key, version), version)
            return
        pos = _PREFIX_SIZE
        client_id = None
        if length >= 0:
            client_id = connection.client_id_of(frame[pos : pos + length], length)
            pos += length
        elif length != -1:
            raise ProtocolError(f"a client id of length {length}")
        if route.flexible:
            pos = _skip_header_tags(frame, pos)
        meters = self.meters
        meter = None if meters is None else meters.begin(connection, route, client_id, len(frame))
        short_way = route.short_way
        if short_way is not None and meter is None:
            try:
                if short_way.begin(connection, route, correlation_id, client_id, frame, pos):
                    return
            except Exception:
                Request(connection, route, correlation_id, client_id).failed()
                return
        request = Request(connection, route, correlation_id, client_id, meter)
        connection.requests.append(request)
        # Bytes after the message are ignored, as in Kafka: librdkafka sends some with Metadata.
        if len(frame) <= SMALL_FRAME:
            message, _ = route.decode(frame, pos)
        else:
            decoding = route.decode_in_pieces(frame, pos, from_broker=connection.is_from_broker)
            try:
                next(decoding)
            except StopIteration as end:
                message = end.value[0]
            else:
                connection.hold_buffer()
                if meter is not None:
                    meter.pause()
                self.pieces.go_on_with(self._decode_and_handle(request, decoding))
                return
        self.handle(request, message, route.handle)
        if meter is not None:
            meter.pause()

    def _prepare(self, connection: Connection, frame: memoryview, api: Api, version: int) -> None:
        """Make a route for the first request of a version, which keeps its place in the line meanwhile."""
        place = Pause(connection)
        connection.requests.append(place)
        connection.hold_buffer()
        self.pieces.begin(self._make_route_and_dispatch(connection, place, frame, api, version))

    def _make_route_and_dispatch(
        self, connection: Connection, place: Pause, frame: memoryview, api: Api, version: int
    ) -> Steps[None]:
        """To write and compile one codec takes as long as many requests, so each is a step of its own."""
        try:
            decoder(request_type(api.key), version)
            yield
            encoder(response_type(api.key), version)
            yield
            self._new_route(api.key, version)
            if not connection.closed:
                connection.requests.remove(place)
                self.dispatch(connection, frame)
        except ProtocolError as error:
            self.refuse(connection, error)
        finally:
            connection.let_go_of_buffer()

    def _decode_and_handle(self, request: Request, decoding: Steps[tuple[Message, int]]) -> Steps[None]:
        """Continue to decode. The frame stays in the connection's buffer until it has been handled."""
        try:
            message, _ = yield from _while_open(request, decoding)
            self.handle(request, message, request.route.handle)
        except ProtocolError as error:
            self.refuse(request.connection, error)
        except Abandoned:
            return
        finally:
            request.connection.let_go_of_buffer()

    def handle(self, request: Request, message: Any, handler: Handler) -> None:
        """Call a handler, and answer its request with the result, at once or when its coroutine or generator ends."""
        try:
            answer = handler(request, message)
        except Exception:
            request.failed()
            return
        if answer is None:
            return
        if isinstance(answer, Message):
            request.answer(answer)
        elif isinstance(answer, Generator):
            self.go_on(request, answer)
        else:
            self.run(request, answer)

    def go_on(self, request: Request, handling: Steps[Message | None]) -> None:
        """Continue a request in pieces, and answer it with their result."""
        if request.meter is not None:
            handling = request.meter.timed(handling)
        self.pieces.begin(_answer(request, handling))

    def answer(self, request: Request, answer: Message) -> None:
        """Give a request an answer that may be long."""
        self.pieces.begin(_encode(request, answer))

    def run(self, request: Request, handling: Coroutine[Any, Any, Message | None]) -> None:
        """Let a coroutine handle a request, and answer it with what that returns."""
        if request.meter is not None:
            handling = request.meter.timed_coroutine(handling)
        task = asyncio.get_running_loop().create_task(handling)
        self._tasks[task] = None
        task.add_done_callback(partial(self._handled, request))

    def _handled(self, request: Request, task: asyncio.Task[Message | None]) -> None:
        self._tasks.pop(task, None)
        if task.cancelled():
            return
        try:
            answer = task.result()
        except Exception:
            request.failed()
            return
        if answer is not None:
            self.answer(request, answer)

    def make_routes(self, make_route: Callable[[Api, int], Route]) -> None:
        """Rebuild the routes with this function, so that observers see requests (broker.server.observe)."""
        self._make_route = make_route
        self._routes = {}

    def replace_apis(self, replace: Callable[[Api], Api]) -> None:
        """Serve what this function makes of each API from now on."""
        self.apis = {key: replace(api) for key, api in self.apis.items()}
        self._routes = {}

    def refuse(self, connection: Connection, error: ProtocolError) -> None:
        """End a connection whose frame cannot be understood."""
        if self.on_refusal is not None:
            self.on_refusal(connection, error)
        connection.close(str(error))

    def _served(self, key: int, version: int) -> Api:
        try:
            api = self.apis[ApiKey(key)]
        except (KeyError, ValueError):
            raise UnknownRequest(f"no API has key {key} here") from None
        if version not in api.served:
            raise UnknownRequest(f"{api.key.api_name} has no version {version} here")
        return api

    def _new_route(self, key: int, version: int) -> Route:
        route = self._routes.get((key, version))
        if route is None:
            route = self._routes[key, version] = self._make_route(self._served(key, version), version)
        return route

    def _refuse_api_versions(self, connection: Connection, correlation_id: int) -> None:
        """Answer in version 0's form, which every client reads, so that a newer client can ask again."""
        request = Request(connection, self._new_route(ApiKey.API_VERSIONS, 0), correlation_id, None)
        connection.requests.append(request)
        row = self.apis[ApiKey.API_VERSIONS].advertised
        request.answer(ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[row]))

    async def stop(self) -> None:
        self.pieces.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class AnswerTooLong(Exception):
    """A request asks for more than one answer can hold."""


class Abandoned(Exception):
    """The connection went away before its request was answered."""


def _while_open(request: Request, steps: Steps[T]) -> Steps[T]:
    """Do the steps for a request as long as its client can be answered."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        if request.connection.closed:
            steps.close()
            raise Abandoned
        yield


def _answer(request: Request, handling: Steps[Message | None]) -> Steps[None]:
    """Let a handler that is a generator run, and give the request what it returns."""
    try:
        answer = yield from _while_open(request, handling)
    except Abandoned:
        return
    except Exception:
        request.failed()
        return
    if answer is not None:
        yield from _encode(request, answer)


def _encode(request: Request, answer: Message) -> Steps[None]:
    steps = request.answer_in_pieces(answer)
    if request.meter is not None:
        steps = request.meter.timed(steps)
    try:
        yield from _while_open(request, steps)
    except Abandoned:
        return
    except AnswerTooLong:
        request.fail(f"an answer of more than {_LONGEST_ANSWER} bytes")
    except Exception:
        request.failed()


def _skip_header_tags(frame: memoryview, pos: int) -> int:
    try:
        if frame[pos] == 0:
            return pos + 1
        count, pos = read_uvarint(frame, pos)
        return skip_tagged_fields(frame, pos, count)
    except IndexError:
        raise ProtocolError("a request header is cut short") from None
