"""What brokers send each other, against Apache Kafka 3.9.1's own classes: random messages, both ways, in every version.

The golden samples have none of these: they come from Apache Kafka 4.3.1, whose brokers no longer send most of them.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random, getrandbits
from typing import Any

import pytest

from barnabas.protocol.api import ApiKey, request_type, response_type
from barnabas.protocol.decoder import decode
from barnabas.protocol.encoder import encode
from barnabas.protocol.schema import Struct, StructType, wire_types
from tests.protocol.values import random_value
from tests.support.apache_kafka import java_command
from tests.support.effort import examples
from tests.support.zookeeper import KAFKA

pytestmark = pytest.mark.java

PROGRAM = Path(__file__).parents[1] / "java" / "MessageCodec.java"
APIS = [
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
    ApiKey.ALTER_PARTITION,
    ApiKey.ALLOCATE_PRODUCER_IDS,
    # Requests between brokers that have the same form as clients' requests have, or had:
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.WRITE_TXN_MARKERS,
    ApiKey.ADD_PARTITIONS_TO_TXN,
]
# The first version that is declared here; brokers that send older ones are older than any that may be in a cluster with
# ours.
OLDEST = {
    ApiKey.LEADER_AND_ISR: 2,
    ApiKey.STOP_REPLICA: 3,
    ApiKey.UPDATE_METADATA: 5,
    ApiKey.CONTROLLED_SHUTDOWN: 1,
    ApiKey.ALTER_PARTITION: 2,
}
# Apache Kafka 4 has dropped these versions, and so have we; 3.9.1 asks for the newest.
DROPPED = {ApiKey.OFFSET_FOR_LEADER_EPOCH: 2, ApiKey.WRITE_TXN_MARKERS: 1}
MESSAGES = {
    name: type
    for key in APIS
    for name, type in ((f"{key.api_name}Request", request_type(key)), (f"{key.api_name}Response", response_type(key)))
}
FORMS = [(name, version) for name, type in MESSAGES.items() for version in type.versions]


class Kafka:
    """The Java program, asked and answered line by line."""

    def __init__(self) -> None:
        command = java_command(PROGRAM, dependencies=KAFKA)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, do: str, name: str, **arguments: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, "name": name, **arguments}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        self._process.communicate(timeout=120)


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    program = Kafka()
    yield program
    program.close()


@pytest.mark.parametrize("key", APIS, ids=lambda key: key.api_name)
def test_the_versions_are_those_of_kafka(kafka: Kafka, key: ApiKey) -> None:
    for kind, ours in (("Request", request_type(key)), ("Response", response_type(key))):
        theirs = kafka.ask("versions", f"{key.api_name}{kind}")
        lowest = OLDEST.get(key, DROPPED.get(key, theirs["lowest"]))
        assert min(ours.versions) == lowest >= theirs["lowest"]
        assert max(ours.versions) >= theirs["highest"]


@pytest.mark.parametrize(("name", "version"), FORMS, ids=str)
def test_kafka_reads_and_writes_what_we_do(kafka: Kafka, name: str, version: int) -> None:
    if version > kafka.ask("versions", name)["highest"]:
        pytest.skip("newer than Apache Kafka 3.9.1")

    random = Random()
    for _ in range(examples(100)):
        message = random_value(random, MESSAGES[name], version)
        ours = encode(message, version)
        written = in_json(message, version)
        assert kafka.ask("encode", name, version=version, values=written).get("bytes") == ours.hex(), written
        read = kafka.ask("decode", name, version=version, bytes=ours.hex())
        assert read.get("left") == 0, read
        assert from_json(MESSAGES[name], read["values"]) == message, written


@pytest.mark.parametrize(("name", "version"), FORMS, ids=str)
def test_we_read_and_write_what_kafka_does(kafka: Kafka, name: str, version: int) -> None:
    """The messages are generated from Kafka's schema here, so that they contain any field that we have forgotten."""
    if version > kafka.ask("versions", name)["highest"]:
        pytest.skip("newer than Apache Kafka 3.9.1")

    for seed in [*range(10), *(getrandbits(63) for _ in range(examples(90)))]:
        made = kafka.ask("random", name, version=version, seed=seed)
        assert "error" not in made, made
        theirs = bytes.fromhex(made["bytes"])
        message = decode(MESSAGES[name], version, theirs)
        assert message == from_json(MESSAGES[name], made["values"]), made
        assert encode(message, version) == theirs, made


def in_json(struct: Struct, version: int) -> dict[str, Any]:
    """A struct as Kafka's converters read it; only what this version has."""
    written = {}
    for name, wire_type in wire_types(type(struct)).items():
        spec = struct.fields[name]
        given = getattr(struct, name)
        if version in spec.versions and not (spec.tag is not None and given is None):
            written[camel_case(name)] = _in_json(wire_type, given, version)
    return written


def _in_json(wire_type: Any, given: Any, version: int) -> Any:
    if given is None:
        return None
    if isinstance(wire_type, list):
        return [_in_json(wire_type[0], each, version) for each in given]
    if isinstance(wire_type, StructType):
        return in_json(given, version)
    if wire_type.name == "uuid":
        return base64.urlsafe_b64encode(given).decode().rstrip("=")
    return given


def from_json(struct_type: StructType, written: dict[str, Any]) -> Any:
    types = {camel_case(name): (name, wire_type) for name, wire_type in wire_types(struct_type).items()}
    return struct_type(**{types[key][0]: _from_json(types[key][1], given) for key, given in written.items()})


def _from_json(wire_type: Any, given: Any) -> Any:
    if given is None:
        return None
    if isinstance(wire_type, list):
        return [_from_json(wire_type[0], each) for each in given]
    if isinstance(wire_type, StructType):
        return from_json(wire_type, given)
    return base64.urlsafe_b64decode(given + "==") if wire_type.name == "uuid" else given


def camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return (first + "".join(word.title() for word in rest)).replace("isKraft", "isKRaft")
