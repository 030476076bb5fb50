"""The codec against one that we did not write: kafka-python's protocol classes, made from Apache Kafka's own schemas.

For each message and version that both have: the same value gives the same bytes, and each side reads the other's.
"""

from __future__ import annotations

from random import Random
from types import ModuleType
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol import admin, consumer, metadata, producer, sasl
from kafka.protocol.api_header import RequestHeader as KafkaPythonRequestHeader
from kafka.protocol.api_header import ResponseHeader as KafkaPythonResponseHeader
from kafka.protocol.api_message import ApiMessage

from barnabas.protocol.api import ApiKey, request_header_version, response_header_version
from barnabas.protocol.decoder import decode
from barnabas.protocol.encoder import encode
from barnabas.protocol.headers import RequestHeader, ResponseHeader
from barnabas.protocol.schema import ZERO_UUID, Message, Struct, StructType, WireType, wire_types
from tests.protocol.values import messages, random_value
from tests.support.effort import examples

# Each is absent from kafka-python as a whole; it has every version of all the others.
LACKING = {
    "LeaderAndIsr",
    "StopReplica",
    "UpdateMetadata",
    "ControlledShutdown",
    "AlterPartition",
    "AllocateProducerIds",
    "CreateDelegationToken",
    "RenewDelegationToken",
    "ExpireDelegationToken",
    "DescribeDelegationToken",
    "UnregisterBroker",
    "ConsumerGroupHeartbeat",
    "ConsumerGroupDescribe",
    "GetTelemetrySubscriptions",
    "PushTelemetry",
    "ShareGroupHeartbeat",
    "ShareGroupDescribe",
    "ShareFetch",
    "ShareAcknowledge",
    "AddRaftVoter",
    "RemoveRaftVoter",
    "InitializeShareGroupState",
    "ReadShareGroupState",
    "WriteShareGroupState",
    "DeleteShareGroupState",
    "ReadShareGroupStateSummary",
    "StreamsGroupHeartbeat",
    "StreamsGroupDescribe",
    "DescribeShareGroupOffsets",
    "AlterShareGroupOffsets",
    "DeleteShareGroupOffsets",
}

# Fields that kafka-python renames.
THEIR_NAMES = {
    ("MetadataResponse", "cluster_authorized_operations"): "authorized_operations",
    ("MetadataResponseTopic", "topic_authorized_operations"): "authorized_operations",
    ("DescribeClusterResponse", "cluster_authorized_operations"): "authorized_operations",
}

MODULES: tuple[ModuleType, ...] = (admin, consumer, metadata, producer, sasl)

parity = settings(
    max_examples=examples(12),
    derandomize=True,
    database=None,
    deadline=None,
)


def kafka_python_class(message: type[Message]) -> Any:
    return next((getattr(m, message.__name__) for m in MODULES if hasattr(m, message.__name__)), None)


SHARED = [message for message in messages() if kafka_python_class(message)]


@pytest.mark.parametrize("message", SHARED, ids=lambda message: message.__name__)
def test_same_value_same_bytes(message: type[Message]) -> None:
    their_class = kafka_python_class(message)
    for version in message.versions:
        random = Random(f"{message.__name__} {version}")
        for _ in range(examples(12)):
            value = random_value(random, message, version)
            which = f"version {version}: {value}"
            ours = encode(value, version)
            theirs = bytes(to_theirs(their_class, value, version).encode(version=version))
            assert ours == theirs, which
            assert decode(message, version, theirs) == value, which
            assert from_theirs(message, read_as_kafka_python(their_class, ours, version), version) == value, which


@parity
@given(
    key=st.sampled_from(ApiKey),
    data=st.data(),
    correlation_id=st.integers(-(2**31), 2**31 - 1),
    client_id=st.none() | st.text(max_size=300),
)
def test_same_request_header(key: ApiKey, data: st.DataObject, correlation_id: int, client_id: str | None) -> None:
    fields = {"request_api_key": int(key), "correlation_id": correlation_id, "client_id": client_id}
    for version in (1, 2):
        ours = RequestHeader(request_api_version=data.draw(st.integers(0, 20)), **fields)
        theirs = KafkaPythonRequestHeader(request_api_version=ours.request_api_version, **fields)
        assert encode(ours, version) == theirs.encode(flexible=version == 2)


@parity
@given(st.integers(-(2**31), 2**31 - 1))
def test_same_response_header(correlation_id: int) -> None:
    theirs = KafkaPythonResponseHeader(correlation_id=correlation_id)
    assert encode(ResponseHeader(correlation_id=correlation_id), 0) == theirs.encode(flexible=False)
    assert encode(ResponseHeader(correlation_id=correlation_id), 1) == theirs.encode(flexible=True)


def test_same_choice_of_header() -> None:
    forms = [(message, version) for message in SHARED for version in message.versions]
    for message, version in forms:
        their_class = kafka_python_class(message)
        key = ApiKey(their_class.API_KEY)
        blank = their_class(version=version)
        blank.with_header(correlation_id=7, client_id="c")
        theirs = bytes(blank.encode_header(flexible=their_class.flexible_version_q(version)))
        if their_class.is_request():
            ours = RequestHeader(request_api_key=key, request_api_version=version, correlation_id=7, client_id="c")
            assert encode(ours, request_header_version(key, version)) == theirs, (message, version)
        else:
            answer = ResponseHeader(correlation_id=7)
            assert encode(answer, response_header_version(key, version)) == theirs, (message, version)


def test_what_kafka_python_lacks() -> None:
    """Fails when kafka-python learns one of these or falls behind on another, so that the list above stays true."""
    lacking, behind = set(), set()
    for message in messages():
        their_class = kafka_python_class(message)
        if their_class is None:
            lacking.add(message.__name__.removesuffix("Request").removesuffix("Response"))
        elif message.versions.highest > their_class.max_version:
            behind.add((message.__name__, message.versions.highest))
    assert lacking == LACKING
    assert not behind


def read_as_kafka_python(their_class: Any, data: bytes, version: int) -> Any:
    """ApiVersionsResponse reads any answer with an error as version 0, which is a client's rule and not the format's.

    So the method that all the other classes have is used for it as well.
    """
    return ApiMessage.decode.__func__(their_class, data, version=version)


def to_theirs(their_class: Any, value: Struct, version: int) -> Any:
    """The same value as an instance of kafka-python's class."""
    names = {THEIR_NAMES.get((type(value).__name__, name), name): name for name in type(value).fields}
    fields = {
        name: _field_to_theirs(field, getattr(value, names[name]), version)
        for name, field in their_class.fields.items()
        if field.for_version_q(version)
    }
    return their_class(version=version, **fields)


def _field_to_theirs(field: Any, value: Any, version: int) -> Any:
    if value is None:
        return None
    if field.is_struct_array():
        return [to_theirs(field.data_class, element, version) for element in value]
    if field.is_struct():
        return to_theirs(field.data_class, value, version)
    if field.type_str == "[]uuid":
        return [UUID(bytes=element) for element in value]
    if field.type_str == "uuid":
        return None if value == ZERO_UUID else UUID(bytes=value)
    if field.type_str == "bitfield":
        return {bit for bit in range(32) if value >> bit & 1}
    return value


def from_theirs(struct: StructType, value: Any, version: int) -> Any:
    """What kafka-python decoded, as our struct. What this version lacks keeps our default, not theirs."""
    types = wire_types(struct)
    fields = {}
    for name, spec in struct.fields.items():
        if version in spec.versions:
            theirs = getattr(value, THEIR_NAMES.get((struct.__name__, name), name))
            fields[name] = _field_from_theirs(types[name], theirs, version)
        elif spec.required:
            fields[name] = [] if isinstance(types[name], list) else types[name].zero
    return struct(**fields)


def _field_from_theirs(wire_type: Any, value: Any, version: int) -> Any:
    if isinstance(wire_type, list):
        return None if value is None else [_field_from_theirs(wire_type[0], v, version) for v in value]
    if isinstance(wire_type, WireType):
        if wire_type.name == "uuid":
            return ZERO_UUID if value is None else value.bytes
        if isinstance(value, set) or (value is None and wire_type.name == "int32"):
            bits = sum(1 << bit for bit in ({31} if value is None else value))
            return bits - 2**32 if bits >= 2**31 else bits
        return value
    return None if value is None else from_theirs(wire_type, value, version)
