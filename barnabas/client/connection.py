"""One connection to one broker: requests go out, and their answers come back in the same order."""

from __future__ import annotations

import re
import select
import struct
from collections import deque
from collections.abc import Collection
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from barnabas.client.errors import ConnectionLost, NotSupported, TimedOut, Unreachable, check
from barnabas.client.security import PLAINTEXT, Security, authenticate
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey, request_type
from barnabas.protocol.errors import ErrorCode, ProtocolError
from barnabas.protocol.frames import read_answer, request_frame
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.schema import Message, Versions

if TYPE_CHECKING:
    from collections.abc import Iterator

R = TypeVar("R", bound=Message)

# Brokers count their clients by these. Looking up our own version would take longer than a request.
_SOFTWARE_NAME: Final = "barnabas-command"
_SOFTWARE_VERSION: Final = "1"

DEFAULT_PORT: Final = 9092
_ADDRESS: Final = re.compile(r"(?:\[(?P<ipv6>[^\[\]]+)\]|(?P<host>[^\s:\[\]/]+))(?::(?P<port>[0-9]{1,5}))?")

# The header of an answer begins with its correlation id.
_CORRELATION_ID_SIZE: Final = 4
_KEYS: Final = {key.api_name: key for key in ApiKey}

# Versions where this client stays below what the codec supports: it names topics, and has one shape per request.
_SPOKEN: Final = {
    ApiKey.PRODUCE: Versions(3, 12),
    ApiKey.FETCH: Versions(4, 12),
    ApiKey.OFFSET_COMMIT: Versions(2, 9),
    ApiKey.OFFSET_FETCH: Versions(8, 9),
    ApiKey.FIND_COORDINATOR: Versions(4, 6),
    ApiKey.LEAVE_GROUP: Versions(3, 5),
    ApiKey.DELETE_TOPICS: Versions(6, 6),
}


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class _Expected(NamedTuple):
    correlation_id: int
    key: ApiKey
    version: int


def _reason(error: OSError) -> str:
    """TLS errors describe what is wrong with a certificate in a field of their own."""
    return str(getattr(error, "verify_message", "") or error.strerror or error)


class Connection:
    """Whatever interrupts it, Ctrl-C included, closes it: half a frame may have been sent by then."""

    def __init__(self, address: Address, client_id: str, timeout: float, security: Security = PLAINTEXT) -> None:
        self.address = address
        self.timeout = timeout
        self.closed = False
        self._client_id = client_id
        self._correlation_id = 0
        self._expected: deque[_Expected] = deque()
        try:
            self._wire = Wire(*address, timeout, security.tls)
        except TimeoutError:
            raise Unreachable(f"cannot connect to {address}: no answer within {timeout:g} s") from None
        except OSError as error:
            raise Unreachable(f"cannot connect to {address}: {_reason(error)}") from None
        with self._closed_by_failure(timeout):
            authenticate(self._wire, security)
        self.api_versions = self._negotiate()
        self._versions = _spoken(self.api_versions)

    def ask(self, request: Message, answer: type[R], timeout: float | None = None) -> R:
        self.send(request)
        return self.receive(answer, timeout)

    def send(self, request: Message, *, answered: bool = True) -> None:
        """Send without waiting; `receive` returns the answers in order. Produce with acks=0 has none."""
        key = _key_of(type(request))
        self._send(key, request, self.version(key), answered)

    def receive(self, answer: type[R], timeout: float | None = None) -> R:
        """The next answer. Its records are views into a buffer that belongs to it, so they stay valid."""
        frame, expected = self._receive(timeout)
        return self._decode(frame, expected, expected.version, answer)

    def version(self, key: ApiKey) -> int:
        """The highest version that both sides speak."""
        ours = _SPOKEN.get(key) or request_type(key).versions
        theirs = self._versions.get(key)
        if theirs is None:
            raise NotSupported(f"the broker at {self.address} does not serve {key.api_name}")
        highest = min(ours.highest, theirs.highest)
        if highest < max(ours.lowest, theirs.lowest):
            raise NotSupported(
                f"the broker at {self.address} speaks versions {theirs.lowest} to {theirs.highest} of {key.api_name}, "
                f"this command speaks {ours.lowest} to {ours.highest}"
            )
        return highest

    def serves(self, key: ApiKey) -> bool:
        return key in self._versions

    def fileno(self) -> int:
        return self._wire.fileno()

    @property
    def has_buffered(self) -> bool:
        return self._wire.has_buffered

    def close(self) -> None:
        self.closed = True
        self._wire.close()

    def _negotiate(self) -> ApiVersionsResponse:
        """Ask which versions the broker speaks, first in our newest version, then in the newest that it names."""
        key = ApiKey.API_VERSIONS
        request = ApiVersionsRequest(client_software_name=_SOFTWARE_NAME, client_software_version=_SOFTWARE_VERSION)
        version = ApiVersionsRequest.versions.highest
        while True:
            self._send(key, request, version, answered=True)
            frame, expected = self._receive(self.timeout)
            # A broker that does not know the version says so in version 0. The error code comes first in all versions.
            refused = frame[_CORRELATION_ID_SIZE:][:2] == struct.pack(">h", ErrorCode.UNSUPPORTED_VERSION)
            found = self._decode(frame, expected, 0 if refused else version, ApiVersionsResponse)
            if not refused or version == 0:
                check(found.error_code, f"broker {self.address}")
                return found
            versions = _spoken(found)
            version = min(version - 1, versions[key].highest if key in versions else 0)

    def _send(self, key: ApiKey, request: Message, version: int, answered: bool) -> None:
        self._correlation_id += 1
        frame = request_frame(key, request, version, self._correlation_id, self._client_id)
        with self._closed_by_failure(self.timeout):
            self._wire.send(frame, self.timeout)
        if answered:
            self._expected.append(_Expected(self._correlation_id, key, version))

    def _receive(self, timeout: float | None) -> tuple[memoryview, _Expected]:
        timeout = self.timeout if timeout is None else timeout
        with self._closed_by_failure(timeout):
            frame = self._wire.receive(timeout)
            if frame is None:
                raise ConnectionLost(f"the broker at {self.address} closed the connection")
            if len(frame) < _CORRELATION_ID_SIZE:
                raise ProtocolError(f"a frame of {len(frame)} bytes")
            return frame, self._expected.popleft()

    def _decode(self, frame: memoryview, expected: _Expected, version: int, answer: type[R]) -> R:
        try:
            found = read_answer(frame, expected.key, version)
            if found.correlation_id != expected.correlation_id:
                raise ProtocolError(f"answer {found.correlation_id} instead of {expected.correlation_id}")
        except ProtocolError as error:
            self.close()
            raise ConnectionLost(f"the broker at {self.address} sent an answer that makes no sense: {error}") from None
        message = found.message
        assert isinstance(message, answer)
        return message

    @contextmanager
    def _closed_by_failure(self, timeout: float) -> Iterator[None]:
        try:
            yield
        except TimeoutError:
            self.close()
            raise TimedOut(f"the broker at {self.address} did not answer within {timeout:g} s") from None
        except ProtocolError:
            self.close()
            raise ConnectionLost(f"the broker at {self.address} does not speak Kafka's protocol") from None
        except OSError as error:
            self.close()
            raise ConnectionLost(f"lost the connection to {self.address}: {error.strerror or error}") from None
        except BaseException:
            self.close()
            raise


def readable(connections: Collection[Connection], seconds: float) -> list[Connection]:
    """Those on which something arrives within that time."""
    buffered = [connection for connection in connections if connection.has_buffered]
    return buffered or select.select(list(connections), [], [], seconds)[0]


def parse_address(text: str) -> Address:
    """HOST or HOST:PORT, with an IPv6 address in brackets. ValueError if it is something else."""
    found = _ADDRESS.fullmatch(text.strip())
    port = int(found["port"] or DEFAULT_PORT) if found else 0
    if found is None or not 0 < port < 65536:
        hint = ", with an IPv6 address in brackets" if text.count(":") > 1 else ""
        raise ValueError(f"{text!r} is not of the form HOST or HOST:PORT{hint}")
    return Address(found["ipv6"] or found["host"], port)


def _spoken(answer: ApiVersionsResponse) -> dict[int, Versions]:
    return {each.api_key: Versions(each.min_version, each.max_version) for each in answer.api_keys}


def _key_of(request: type[Message]) -> ApiKey:
    return _KEYS[request.__name__.removesuffix("Request")]
