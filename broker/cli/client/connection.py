"""One connection to one broker: requests go out, their answers come back in the same order."""

from __future__ import annotations

import socket
import struct
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from broker.cli.client.errors import ConnectionLost, NotSupported, TimedOut, Unreachable, check
from protocol.api import ApiKey, request_header_version, request_type, response_header_version
from protocol.decoder import decoder
from protocol.encoder import encode
from protocol.errors import ErrorCode, ProtocolError
from protocol.headers import RequestHeader, ResponseHeader
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.schema import Message, Versions

if TYPE_CHECKING:
    from collections.abc import Iterator

R = TypeVar("R", bound=Message)

# Larger than any broker's largest batch in practice, and small enough for any machine.
LARGEST_ANSWER: Final = 1 << 29

# Brokers count their clients by these. The distribution's own version would cost more to find than a request.
_SOFTWARE_NAME: Final = "barnabas-command"
_SOFTWARE_VERSION: Final = "1"

_SIZE: Final = struct.Struct(">i")
_KEYS: Final = {key.api_name: key for key in ApiKey}

# Where this client does not go as high or as low as the codec: topics by name, and one shape of each request.
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


class Connection:
    """Broken by whatever interrupts it, Ctrl-C included: half a frame may be on the way then. It closes itself."""

    def __init__(self, address: Address, client_id: str, timeout: float) -> None:
        self.address = address
        self.timeout = timeout
        self.closed = False
        self._client_id = client_id
        self._correlation_id = 0
        self._expected: deque[_Expected] = deque()
        try:
            self._socket = socket.create_connection(address, timeout)
        except TimeoutError:
            raise Unreachable(f"cannot connect to {address}: no answer within {timeout:g} s") from None
        except OSError as error:
            raise Unreachable(f"cannot connect to {address}: {error.strerror or error}") from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._versions = self._negotiate()

    def ask(self, request: Message, answer: type[R], timeout: float | None = None) -> R:
        self.send(request)
        return self.receive(answer, timeout)

    def send(self, request: Message, *, answered: bool = True) -> None:
        """Send without waiting; `receive` gives the answers in order. Produce with acks=0 is not answered."""
        key = _key_of(type(request))
        self._send(key, request, self.version(key), answered)

    def receive(self, answer: type[R], timeout: float | None = None) -> R:
        """The next answer. Records in it are views into its own buffer, and stay valid."""
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
                f"the broker at {self.address} speaks {key.api_name} {theirs.lowest} to {theirs.highest}, "
                f"and this command {ours.lowest} to {ours.highest}"
            )
        return highest

    def serves(self, key: ApiKey) -> bool:
        return key in self._versions

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self.closed = True
        self._socket.close()

    def _negotiate(self) -> dict[int, Versions]:
        """Ask which versions the broker speaks: first in our newest way, then in the newest that it names."""
        key = ApiKey.API_VERSIONS
        request = ApiVersionsRequest(client_software_name=_SOFTWARE_NAME, client_software_version=_SOFTWARE_VERSION)
        version = ApiVersionsRequest.versions.highest
        while True:
            self._send(key, request, version, answered=True)
            frame, expected = self._receive(self.timeout)
            # A broker that does not know the version says so in version 0, whose error code comes first in all.
            refused = frame[_SIZE.size : _SIZE.size + 2] == struct.pack(">h", ErrorCode.UNSUPPORTED_VERSION)
            found = self._decode(frame, expected, 0 if refused else version, ApiVersionsResponse)
            versions = {each.api_key: Versions(each.min_version, each.max_version) for each in found.api_keys}
            if not refused or version == 0:
                check(found.error_code, f"broker {self.address}")
                return versions
            version = min(version - 1, versions[key].highest if key in versions else 0)

    def _send(self, key: ApiKey, request: Message, version: int, answered: bool) -> None:
        self._correlation_id += 1
        header = RequestHeader(
            request_api_key=key,
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id=self._client_id,
        )
        body = encode(header, request_header_version(key, version)) + encode(request, version)
        with self._closed_by_failure(self.timeout):
            self._socket.settimeout(self.timeout)
            self._socket.sendall(_SIZE.pack(len(body)) + body)
        if answered:
            self._expected.append(_Expected(self._correlation_id, key, version))

    def _receive(self, timeout: float | None) -> tuple[memoryview, _Expected]:
        timeout = self.timeout if timeout is None else timeout
        with self._closed_by_failure(timeout):
            self._socket.settimeout(timeout)
            (size,) = _SIZE.unpack(self._read(_SIZE.size))
            if not _SIZE.size <= size <= LARGEST_ANSWER:
                raise ConnectionLost(f"the broker at {self.address} does not speak Kafka's protocol")
            return self._read(size), self._expected.popleft()

    def _read(self, size: int) -> memoryview:
        data = memoryview(bytearray(size))
        position = 0
        while position < size:
            count = self._socket.recv_into(data[position:])
            if not count:
                raise ConnectionLost(f"the broker at {self.address} closed the connection")
            position += count
        return data

    def _decode(self, frame: memoryview, expected: _Expected, version: int, answer: type[R]) -> R:
        try:
            header, position = decoder(ResponseHeader, response_header_version(expected.key, version))(frame, 0)
            if header.correlation_id != expected.correlation_id:
                raise ProtocolError(f"answer {header.correlation_id} where {expected.correlation_id} is due")
            return decoder(answer, version)(frame, position)[0]
        except ProtocolError as error:
            self.close()
            raise ConnectionLost(f"the broker at {self.address} sent an answer that makes no sense: {error}") from None

    @contextmanager
    def _closed_by_failure(self, timeout: float) -> Iterator[None]:
        try:
            yield
        except TimeoutError:
            self.close()
            raise TimedOut(f"the broker at {self.address} did not answer within {timeout:g} s") from None
        except OSError as error:
            self.close()
            raise ConnectionLost(f"lost the broker at {self.address}: {error.strerror or error}") from None
        except BaseException:
            self.close()
            raise


def parse_address(text: str) -> Address:
    """HOST:PORT, an IPv6 address in brackets; ValueError if it is something else."""
    host, colon, port = text.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"{text!r} is not of the form HOST:PORT")
    return Address(host, int(port))


def _key_of(request: type[Message]) -> ApiKey:
    return _KEYS[request.__name__.removesuffix("Request")]
