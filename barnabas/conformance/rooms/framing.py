"""Frames: sizes, headers, order. A broken frame closes its own connection and no other."""

from __future__ import annotations

import struct
from typing import Final

from barnabas.client.requests import data
from barnabas.conformance.catalogue import Room
from barnabas.conformance.probe import Probe
from barnabas.conformance.rooms.api_versions import SOFTWARE
from barnabas.conformance.strict_wire import CLIENT_ID
from barnabas.protocol.api import ApiKey, request_header_version
from barnabas.protocol.encoder import encode
from barnabas.protocol.frames import framed
from barnabas.protocol.headers import RequestHeader
from barnabas.protocol.messages.metadata import MetadataRequest

room = Room("framing", "Frames, headers and the order of responses")

SIZE: Final = "Protocol guide: Protocol Primitive Types, Request Header"
NETWORK: Final = "Protocol guide: Network"
NO_TOPICS: Final = MetadataRequest(topics=[], allow_auto_topic_creation=False)


def _header(key: int, version: int) -> bytes:
    header = RequestHeader(request_api_key=key, request_api_version=version, correlation_id=1, client_id="frames")
    return encode(header, 1)


def _is_alive(probe: Probe) -> None:
    """Expect another connection to be served, whatever happened to this one."""
    answer = probe.connect().ask(ApiKey.METADATA, NO_TOPICS, probe.version(ApiKey.METADATA))
    probe.require(bool(answer.brokers), "another connection to be served", "it is")


def _broken(probe: Probe, data: bytes, what: str) -> None:
    wire = probe.connect()
    wire.send_bytes(data)
    probe.expect_closed(wire, what)
    _is_alive(probe)


@room.check("negative-size", SIZE, "Metadata")
def negative_size(probe: Probe) -> None:
    """A frame with a negative size closes its connection."""
    _broken(probe, struct.pack(">i", -1) + b"x" * 16, "a size of -1")
    _broken(probe, struct.pack(">i", -(2**31)) + b"x" * 16, "the least size")


@room.check("oversized", SIZE, "Metadata")
def oversized(probe: Probe) -> None:
    """A size above socket.request.max.bytes closes the connection at once, before that many bytes are sent."""
    _broken(probe, struct.pack(">i", 2**31 - 1) + b"x" * 16, "a size of 2 GiB")


@room.check("empty-frame", SIZE, "Metadata")
def empty_frame(probe: Probe) -> None:
    """An empty frame has no header and closes its connection."""
    _broken(probe, struct.pack(">i", 0), "an empty frame")


@room.check("cut-header", SIZE, "Metadata")
def cut_header(probe: Probe) -> None:
    """A frame that ends inside its request header closes its connection."""
    whole = _header(ApiKey.METADATA, 1)
    for size in (1, 3, 7, 9):
        _broken(probe, framed(whole[:size]), f"{size} bytes of a header")


@room.check("cut-body", SIZE, "Metadata")
def cut_body(probe: Probe) -> None:
    """A frame that ends inside its message closes its connection."""
    version = probe.version(ApiKey.METADATA)
    header = _header(ApiKey.METADATA, version)
    if request_header_version(ApiKey.METADATA, version) == 2:
        header += b"\0"
    body = encode(NO_TOPICS, version)
    _broken(probe, framed(header + body[:-2]), "a message without its last bytes")


@room.check("lying-count", SIZE, "Metadata 0-8")
def lying_count(probe: Probe) -> None:
    """An array that claims more elements than its frame has bytes closes the connection, and nothing is allocated."""
    version = min(probe.version(ApiKey.METADATA), 1)
    version = max(version, probe.versions(ApiKey.METADATA).lowest)
    for count in (2**31 - 1, 1000):
        _broken(probe, framed(_header(ApiKey.METADATA, version) + struct.pack(">i", count)), f"a count of {count}")


@room.check("unknown-key", SIZE, "Metadata")
def unknown_key(probe: Probe) -> None:
    """A request with an unknown API key closes its connection."""
    for key in (9999, -1):
        _broken(probe, framed(_header(key, 0) + b"\0" * 8), f"key {key}")


@room.check("unknown-version", "Protocol guide: Protocol compatibility", "Metadata")
def unknown_version(probe: Probe) -> None:
    """A version outside the advertised range closes the connection, except for ApiVersions."""
    version = probe.target.versions[ApiKey.METADATA].highest + 1
    _broken(probe, framed(_header(ApiKey.METADATA, version) + b"\0" * 8), f"Metadata v{version}")
    _broken(probe, framed(_header(ApiKey.METADATA, -1) + b"\0" * 8), "Metadata v-1")


@room.check("another-protocol", SIZE, "Metadata")
def another_protocol(probe: Probe) -> None:
    """A client that speaks HTTP or TLS is disconnected at once."""
    _broken(probe, b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n", "an HTTP request")
    _broken(probe, bytes.fromhex("16030100c8010000c40303") + bytes(200), "the beginning of TLS")


@room.check("byte-by-byte", NETWORK, "Metadata")
def byte_by_byte(probe: Probe) -> None:
    """A request whose bytes arrive one at a time is answered like any other."""
    wire = probe.connect()
    for byte in wire.frame(ApiKey.METADATA, NO_TOPICS, probe.version(ApiKey.METADATA)):
        wire.send_bytes(bytes([byte]))
    probe.require(bool(wire.answer().brokers), "a response", "one came")


@room.check("together", NETWORK, "Metadata", "ApiVersions")
def together(probe: Probe) -> None:
    """Requests that arrive together, the last one split in two, are all answered."""
    wire = probe.connect()
    version = probe.version(ApiKey.METADATA)
    data = b"".join(wire.frame(ApiKey.METADATA, NO_TOPICS, version) for _ in range(4))
    wire.send_bytes(data[:-5])
    for _ in range(3):
        wire.answer()
    wire.send_bytes(data[-5:])
    wire.answer()
    probe.require(True, "four responses", "four came")


@room.check("in-order", NETWORK, "Metadata", "ApiVersions", "ListOffsets")
def in_order(probe: Probe) -> None:
    """Pipelined requests are answered in order, each with its own correlation id."""
    topic = probe.topic()
    wire = probe.connect(probe.target.nodes.get(probe.leader(topic)))
    kinds = (
        (ApiKey.METADATA, NO_TOPICS, probe.version(ApiKey.METADATA)),
        (ApiKey.API_VERSIONS, SOFTWARE, probe.version(ApiKey.API_VERSIONS)),
        (ApiKey.LIST_OFFSETS, data.list_offsets((topic, 0, -1)), probe.version(ApiKey.LIST_OFFSETS)),
    )
    wire.send_bytes(b"".join(wire.frame(*kinds[number % 3]) for number in range(60)))
    for _ in range(60):
        wire.answer()
    probe.require(True, "60 responses in order", "60 came in order")


@room.check("long-poll-first", NETWORK, "Fetch", "ApiVersions", "ListOffsets")
def long_poll_first(probe: Probe) -> None:
    """A request sent after a waiting Fetch is answered after it, not before."""
    topic = probe.topic()
    version = probe.version(ApiKey.FETCH)
    wire = probe.connect(probe.target.nodes.get(probe.leader(topic)))
    waiting = data.fetch((probe.reference(topic, version >= 13), 0, 0), max_wait_ms=300)
    first = wire.frame(ApiKey.FETCH, waiting, version)
    wire.send_bytes(first + wire.frame(ApiKey.API_VERSIONS, SOFTWARE, probe.version(ApiKey.API_VERSIONS)))
    wire.answer()
    wire.answer()
    probe.require(True, "the response to Fetch, then the other", "they came in this order")


@room.check("any-correlation-id", SIZE, "Metadata")
def any_correlation_id(probe: Probe) -> None:
    """Any correlation id is accepted and returned unchanged."""
    wire = probe.connect()
    for number in (0, -1, 2**31 - 1, -(2**31), 7, 7):
        wire.send_bytes(wire.frame(ApiKey.METADATA, NO_TOPICS, probe.version(ApiKey.METADATA), correlation_id=number))
        wire.answer()
        probe.require(True, f"correlation id {number} to come back", "it did")


@room.check("any-client-id", SIZE, "Metadata")
def any_client_id(probe: Probe) -> None:
    """A client id may be null, empty or any UTF-8 text."""
    wire = probe.connect()
    for client_id in (None, "", "Brunswick 42", "Барнабас", "x" * 1000):
        wire.send_bytes(wire.frame(ApiKey.METADATA, NO_TOPICS, probe.version(ApiKey.METADATA), client_id=client_id))
        wire.answer()
        probe.require(True, "a response", "one came")


@room.check("unknown-tags", "KIP-482", "Metadata 9+")
def unknown_tags(probe: Probe) -> None:
    """Unknown tagged fields, in a header or a message, are ignored."""
    wire = probe.connect()
    version = probe.version(ApiKey.METADATA)
    plain = wire.frame(ApiKey.METADATA, NO_TOPICS, version)[4:]
    header_size = len(_header(ApiKey.METADATA, version)) - len("frames") + len(CLIENT_ID)
    tags = b"\x02" + b"\xe8\x07\x03abc" + b"\xe9\x07\x00"  # two fields: tag 1000 with 3 bytes, tag 1001 with none
    header, body = plain[:header_size], plain[header_size + 1 : -1]
    wire.send_bytes(framed(header + tags + body + tags))
    probe.require(bool(wire.answer().brokers), "a response", "one came")


@room.check("gone-halfway", NETWORK, "Metadata")
def gone_halfway(probe: Probe) -> None:
    """A client that disconnects in the middle of a frame, or before its response, disturbs nobody."""
    frame = probe.connect().frame(ApiKey.METADATA, NO_TOPICS, probe.version(ApiKey.METADATA))
    for part in (frame[:2], frame[:9], frame):
        wire = probe.connect()
        wire.send_bytes(part)
        wire.close()
    _is_alive(probe)
