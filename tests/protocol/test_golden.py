"""The codec against bytes that Kafka's Java classes made: every message, in every version."""

import base64
import gzip
from itertools import groupby
from typing import Any

import pytest

from barnabas.protocol import group_records, headers, transaction_records
from barnabas.protocol.api import ApiKey, request_type, response_type
from barnabas.protocol.decoder import decode
from barnabas.protocol.encoder import encode
from barnabas.protocol.schema import Message, StructType, WireType, wire_types
from tests.golden import FILE, PROGRAM, samples
from tests.support.apache_kafka import run_java

SAMPLES = {name: list(group) for name, group in groupby(samples(), lambda sample: sample.name)}

APIS = {key.api_name: key for key in ApiKey}
# Apache Kafka 4.3 has no samples of these: clients do not send them.
BETWEEN_BROKERS = {
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
    ApiKey.ALTER_PARTITION,
    ApiKey.ALLOCATE_PRODUCER_IDS,
}


def message_type(name: str) -> type[Message]:
    for module in (headers, group_records, transaction_records):
        if hasattr(module, name):
            found: type[Message] = getattr(module, name)
            return found
    if name.endswith("Request"):
        return request_type(APIS[name.removesuffix("Request")])
    return response_type(APIS[name.removesuffix("Response")])


@pytest.mark.parametrize("name", SAMPLES)
def test_reads_and_writes_what_java_does(name: str) -> None:
    message = message_type(name)
    for sample in SAMPLES[name]:
        which = f"version {sample.version}, {sample.kind}"
        expected = struct(message, sample.values)
        assert decode(message, sample.version, sample.bytes) == expected, which
        assert encode(expected, sample.version) == sample.bytes, which


@pytest.mark.parametrize("name", SAMPLES)
def test_has_the_versions_that_java_has(name: str) -> None:
    assert list(message_type(name).versions) == list(dict.fromkeys(sample.version for sample in SAMPLES[name]))


def test_has_every_api_that_java_has_for_brokers() -> None:
    for_clients = (name for name, key in APIS.items() if key not in BETWEEN_BROKERS)
    messages = {f"{name}{kind}" for name in for_clients for kind in ("Request", "Response")}
    assert messages == {name for name in SAMPLES if name.endswith(("Request", "Response"))}


@pytest.mark.java
def test_the_samples_are_what_the_program_prints() -> None:
    assert gzip.decompress(FILE.read_bytes()).decode() == run_java(PROGRAM).stdout


def struct(struct_type: StructType, values: dict[str, Any]) -> Any:
    """The struct with these values, as Java names and writes them in JSON; what is not there has its default."""
    types = {camel_case(name): (name, wire_type) for name, wire_type in wire_types(struct_type).items()}
    given = {types[key][0]: value(types[key][1], each) for key, each in values.items()}
    return struct_type(**given)


def value(wire_type: Any, given: Any) -> Any:
    if given is None:
        return None
    if isinstance(wire_type, list):
        return [value(wire_type[0], each) for each in given]
    if isinstance(wire_type, StructType):
        return struct(wire_type, given)
    assert isinstance(wire_type, WireType)
    match wire_type.name:
        case "uuid":
            return base64.urlsafe_b64decode(given + "==")
        case "bytes" | "records":
            return base64.b64decode(given)
        case _:
            return given


def camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)
