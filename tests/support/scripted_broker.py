"""A broker that answers as a test tells it to, on its own thread: for behaviour that real brokers rarely show."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from barnabas.protocol.api import ApiKey, request_header_version, request_type, response_header_version
from barnabas.protocol.decoder import decoder
from barnabas.protocol.encoder import encode
from barnabas.protocol.frames import framed
from barnabas.protocol.headers import RequestHeader, ResponseHeader
from barnabas.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.protocol.schema import Message

Answer = Callable[[Any], "Message | None"]


class ScriptedBroker:
    """Answers each API with the function given for it; one that returns None closes the connection instead.

    It speaks the versions given in `versions`, and all versions of the other APIs that it answers. `asked` has
    every request that came, as (key, version, message).
    """

    def __init__(
        self, answers: dict[ApiKey, Answer] | None = None, versions: dict[ApiKey, tuple[int, int]] | None = None
    ) -> None:
        self.answers = {ApiKey.METADATA: self.metadata, **(answers or {})}
        self.versions = versions or {}
        self.partitions = {"t": 1}
        self.leaders: dict[int, int] = {}  # of partitions that another broker leads, or none: -1
        self.asked: list[tuple[ApiKey, int, Any]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def requests(self, key: ApiKey) -> list[Any]:
        return [message for asked, _, message in self.asked if asked == key]

    def metadata(self, request: Any) -> MetadataResponse:
        names = list(self.partitions) if request.topics is None else [topic.name for topic in request.topics]
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=0, host="127.0.0.1", port=self.port)],
            controller_id=0,
            topics=[self._topic(name) for name in names],
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        count = self.partitions.get(name)
        return MetadataResponseTopic(
            error_code=3 if count is None else 0,
            name=name,
            partitions=[
                MetadataResponsePartition(
                    partition_index=index,
                    leader_id=self.leaders.get(index, 0),
                    error_code=5 if self.leaders.get(index) == -1 else 0,
                    replica_nodes=[0],
                    isr_nodes=[0],
                )
                for index in range(count or 0)
            ],
        )

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        # A client may go away without reading its answer.
        with suppress(ConnectionError), connection, connection.makefile("rb") as reader:
            while len(size := reader.read(4)) == 4:
                answer = self._answer(reader.read(struct.unpack(">i", size)[0]))
                if answer is None:
                    return
                connection.sendall(framed(answer))

    def _answer(self, frame: bytes) -> bytes | None:
        key, version = ApiKey(struct.unpack_from(">h", frame)[0]), struct.unpack_from(">h", frame, 2)[0]
        header, position = decoder(RequestHeader, request_header_version(key, version))(frame, 0)
        if key == ApiKey.API_VERSIONS:
            message, answered_in = self._api_versions(version)
            self.asked.append((key, version, None))
        else:
            request, _ = decoder(request_type(key), version)(frame, position)
            self.asked.append((key, version, request))
            answer = self.answers[key](request)
            if answer is None:
                return None
            message, answered_in = answer, version
        head = ResponseHeader(correlation_id=header.correlation_id)
        return encode(head, response_header_version(key, answered_in)) + encode(message, answered_in)

    def _api_versions(self, version: int) -> tuple[Message, int]:
        lowest, highest = self.versions.get(ApiKey.API_VERSIONS, (0, 4))
        known = lowest <= version <= highest
        spoken = {key: (request_type(key).versions.lowest, request_type(key).versions.highest) for key in self.answers}
        keys = [
            ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in {**spoken, **self.versions, ApiKey.API_VERSIONS: (lowest, highest)}.items()
        ]
        return ApiVersionsResponse(error_code=0 if known else 35, api_keys=keys), version if known else 0

    def close(self) -> None:
        # Closing alone does not wake a thread that waits in accept.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            connection.close()

    def __enter__(self) -> ScriptedBroker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
