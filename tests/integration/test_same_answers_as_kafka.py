"""The same request bytes, sent to Apache Kafka and to Barnabas, get the same answers.

What has to differ (ports, the cluster's id, the ids of topics) is replaced by its meaning before answers are compared.
"""

import struct
from dataclasses import dataclass
from typing import Any

import pytest

from barnabas.client.requests.admin import create_topics, new_topic
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.frames import decode_answer, framed, request_frame
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.schema import ZERO_UUID, Struct
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.polling import pause

pytestmark = pytest.mark.java

UNKNOWN_ID = bytes(range(16))
SETTINGS = {"node.id": "1", "broker.rack": "r1", "auto.create.topics.enable": "false"}


@dataclass
class Peer:
    """A broker of either make that has one topic, `existing`."""

    port: int
    topic_id: bytes
    cluster_id: str

    def exchange(self, data: bytes) -> bytes | None:
        with Wire("127.0.0.1", self.port) as wire:
            wire.send(data)
            return wire.receive()

    def answer(self, key: ApiKey, data: bytes, version: int) -> Any:
        body = self.exchange(data)
        return "closed" if body is None else self.comparable(decode_answer(body, key, version))

    def comparable(self, value: Any) -> Any:
        if isinstance(value, Struct):
            values = {name: self.comparable(getattr(value, name)) for name in value.__slots__}
            if "error_message" in values:
                values["error_message"] = values["error_message"] is not None
            if "port" in values:
                values["port"] = "its own" if value.port == self.port else value.port
            return values
        if isinstance(value, list):
            return sorted((self.comparable(item) for item in value), key=repr)
        if value in (self.topic_id, self.cluster_id):
            return "its own"
        return value


def with_a_topic(port: int) -> Peer:
    with Wire("127.0.0.1", port) as wire:
        (created,) = wire.ask(ApiKey.CREATE_TOPICS, create_topics(new_topic("existing", 3)), 7).topics
        assert created.error_code == 0
        # Apache Kafka answers before the new topic is visible everywhere, and only asking again shows that it is.
        while (found := wire.ask(ApiKey.METADATA, topics("existing"), 12)).topics[0].error_code != 0:
            pause()
    return Peer(port, created.topic_id, found.cluster_id)


@pytest.fixture(scope="module")
def kafka():
    with ApacheKafka(SETTINGS) as process:
        yield with_a_topic(process.port)


@pytest.fixture(scope="module")
def barnabas(tmp_path_factory):
    with BrokerProcess(tmp_path_factory.mktemp("barnabas"), settings=SETTINGS) as process:
        yield with_a_topic(process.port)


def compare(kafka: Peer, barnabas: Peer, key: ApiKey, message, version: int):
    """`message` may be a function of the broker that it is sent to."""
    theirs, ours = (
        peer.answer(key, request_frame(key, message(peer) if callable(message) else message, version), version)
        for peer in (kafka, barnabas)
    )
    assert ours == theirs


def topics(*names: str | None, **fields) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **fields)


def ids(*topic_ids: bytes) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in topic_ids])


METADATA_IN_ALL_VERSIONS = {
    "no topics": MetadataRequest(topics=[]),
    "an existing topic": topics("existing"),
    "an unknown topic": topics("unknown"),
    "an internal topic that is not there yet": topics("__consumer_offsets"),
    "known and unknown topics": topics("existing", "unknown", "another"),
    "a topic twice": topics("existing", "existing", "unknown", "unknown"),
    "an empty name": topics(""),
    "a dot": topics("."),
    "two dots": topics(".."),
    "a slash": topics("a/b"),
    "a space and an umlaut": topics("ä b"),
    "a name that is just short enough": topics("x" * 249),
    "a name that is too long": topics("x" * 250),
}


@pytest.mark.parametrize("version", range(14))
@pytest.mark.parametrize("case", METADATA_IN_ALL_VERSIONS)
def test_metadata(kafka, barnabas, case, version):
    compare(kafka, barnabas, ApiKey.METADATA, METADATA_IN_ALL_VERSIONS[case], version)


@pytest.mark.parametrize("version", range(1, 14))
def test_metadata_of_all_topics(kafka, barnabas, version):
    compare(kafka, barnabas, ApiKey.METADATA, MetadataRequest(topics=None), version)


@pytest.mark.parametrize("version", range(4, 14))
def test_metadata_when_the_client_wants_no_topic_created(kafka, barnabas, version):
    request = topics("unknown", "a/b", allow_auto_topic_creation=False)
    compare(kafka, barnabas, ApiKey.METADATA, request, version)


@pytest.mark.parametrize("version", range(8, 14))
def test_metadata_with_authorized_operations(kafka, barnabas, version):
    request = topics(
        "existing",
        "unknown",
        "a/b",
        include_cluster_authorized_operations=version <= 10,
        include_topic_authorized_operations=True,
    )
    compare(kafka, barnabas, ApiKey.METADATA, request, version)


METADATA_BY_ID = {
    "an unknown id": ids(UNKNOWN_ID),
    "a known id": lambda peer: ids(peer.topic_id),
    "known and unknown ids": lambda peer: ids(peer.topic_id, UNKNOWN_ID, peer.topic_id, UNKNOWN_ID),
    "an id and nothing": lambda peer: ids(peer.topic_id, ZERO_UUID),
    "a name beside an id": lambda peer: MetadataRequest(
        topics=[MetadataRequestTopic(name="unknown"), MetadataRequestTopic(topic_id=peer.topic_id, name=None)]
    ),
    "a name and an id in one": lambda peer: MetadataRequest(
        topics=[MetadataRequestTopic(topic_id=peer.topic_id, name="existing")]
    ),
    "a name and an id that contradict": lambda peer: MetadataRequest(
        topics=[MetadataRequestTopic(topic_id=UNKNOWN_ID, name="existing")]
    ),
}


@pytest.mark.parametrize("version", range(10, 14))
@pytest.mark.parametrize("case", METADATA_BY_ID)
def test_metadata_by_id(kafka, barnabas, case, version):
    compare(kafka, barnabas, ApiKey.METADATA, METADATA_BY_ID[case], version)


@pytest.mark.parametrize("version", range(10, 14))
@pytest.mark.parametrize("names", [(None,), ("existing", None)])
def test_metadata_of_neither_a_name_nor_an_id(kafka, barnabas, names, version):
    data = request_frame(ApiKey.METADATA, topics(*names), version)
    theirs, ours = (peer.answer(ApiKey.METADATA, data, version) for peer in (kafka, barnabas))
    for part in (theirs, *theirs["topics"]):
        if part["error_code"] == ErrorCode.UNKNOWN_SERVER_ERROR:  # Kafka fails where it no longer checks for it
            part["error_code"] = ErrorCode.INVALID_REQUEST
    assert ours == theirs


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("operations", [False, True])
def test_describe_cluster(kafka, barnabas, operations, version):
    request = DescribeClusterRequest(include_cluster_authorized_operations=operations)
    compare(kafka, barnabas, ApiKey.DESCRIBE_CLUSTER, request, version)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("endpoint_type", [-1, 0, 1, 2, 3])
def test_describe_cluster_by_endpoint_type(kafka, barnabas, endpoint_type, version):
    request = DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=endpoint_type)
    compare(kafka, barnabas, ApiKey.DESCRIBE_CLUSTER, request, version)


def test_describe_cluster_with_fenced_brokers(kafka, barnabas):
    request = DescribeClusterRequest(include_cluster_authorized_operations=False, include_fenced_brokers=True)
    compare(kafka, barnabas, ApiKey.DESCRIBE_CLUSTER, request, 2)


@pytest.mark.parametrize("version", range(5))
def test_api_versions_of_what_both_serve(kafka, barnabas, version):
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    data = request_frame(ApiKey.API_VERSIONS, request, version)
    theirs, ours = (peer.answer(ApiKey.API_VERSIONS, data, version) for peer in (kafka, barnabas))
    assert ours["error_code"] == theirs["error_code"] == ErrorCode.NONE
    assert ours["throttle_time_ms"] == theirs["throttle_time_ms"]
    assert ours["api_keys"]
    assert [row for row in ours["api_keys"] if row not in theirs["api_keys"]] == []


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(
    ("name", "software_version"),
    [("", "1"), ("a", ""), ("a b", "1"), ("-a", "1"), ("a", "1."), ("ä", "1"), ("a.b-c", "1"), ("a", "1\n")],
)
def test_api_versions_with_odd_names_of_software(kafka, barnabas, name, software_version, version):
    request = ApiVersionsRequest(client_software_name=name, client_software_version=software_version)
    data = request_frame(ApiKey.API_VERSIONS, request, version)
    theirs, ours = (peer.answer(ApiKey.API_VERSIONS, data, version) for peer in (kafka, barnabas))
    assert ours["error_code"] == theirs["error_code"]
    assert bool(ours["api_keys"]) == bool(theirs["api_keys"])


@pytest.mark.parametrize("version", [-1, 5, 6, 32767])
def test_a_version_of_api_versions_that_is_not_served_is_answered_in_version_0s_form(kafka, barnabas, version):
    header = struct.pack(">hhih", ApiKey.API_VERSIONS, version, 7, -1)
    data = framed(header + b"\0" + b"what only a newer broker understands")
    theirs, ours = (peer.exchange(data) for peer in (kafka, barnabas))
    assert ours == theirs


def header(key: int, version: int, client_id_length: int = -1) -> bytes:
    return struct.pack(">hhih", key, version, 1, client_id_length)


NO_TOPICS = struct.pack(">i", 0)

ODD_FRAMES = {
    "bytes after the message": framed(header(3, 1) + NO_TOPICS + b"xyz"),
    "bytes after a flexible message": framed(request_frame(ApiKey.METADATA, MetadataRequest(topics=[]), 12)[4:] + b"x"),
    "an empty frame": framed(b""),
    "an empty frame before a request": framed(b"") + framed(header(3, 1) + NO_TOPICS),
    "a frame shorter than a header": framed(b"abc"),
    "a negative size": struct.pack(">i", -1),
    "a size that is too large": struct.pack(">i", 104_857_601),
    "an unknown key": framed(header(999, 0)),
    "a negative key": framed(header(-1, 0)),
    "a request among brokers that is no longer served": framed(header(4, 0)),
    "a version that is too high": framed(header(3, 99) + NO_TOPICS),
    "a version that is too low": framed(header(ApiKey.FETCH, 3) + NO_TOPICS),
    "a client id that is cut short": framed(header(3, 1, 500) + NO_TOPICS),
    "a message that is cut short": framed(header(3, 1) + struct.pack(">i", 5)),
    "a count without its items": framed(header(3, 1) + struct.pack(">i", 2**31 - 1)),
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


@pytest.mark.parametrize("case", ODD_FRAMES)
def test_odd_frames_are_answered_or_end_their_connection(kafka, barnabas, case):
    theirs, ours = (peer.exchange(ODD_FRAMES[case]) for peer in (kafka, barnabas))
    assert (ours is None) == (theirs is None)


STRICTER = {
    "a count below that of null": framed(header(3, 1) + struct.pack(">i", -2)),
    "a length below that of null": framed(header(3, 1, -2) + NO_TOPICS),
    "a client id that is not UTF-8": framed(header(3, 1, 2) + b"\xff\xff" + NO_TOPICS),
    "a name that is not UTF-8": framed(header(3, 1) + struct.pack(">ih", 1, 2) + b"\xff\xff"),
}


@pytest.mark.parametrize("case", STRICTER)
def test_malformed_requests_that_kafka_takes_for_something_else_end_their_connection_here(kafka, barnabas, case):
    assert kafka.exchange(STRICTER[case]) is not None
    assert barnabas.exchange(STRICTER[case]) is None
