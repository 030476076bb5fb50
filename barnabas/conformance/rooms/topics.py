"""Topics: created, grown and deleted, and the error codes for invalid requests."""

from __future__ import annotations

from typing import Any, Final

from barnabas.client.requests import admin
from barnabas.client.requests.admin import new_topic
from barnabas.client.requests.data import EARLIEST
from barnabas.client.requests.topics import TIMEOUT_MS
from barnabas.conformance.catalogue import Room
from barnabas.conformance.probe import UNKNOWN_ID, Probe
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from barnabas.protocol.schema import ZERO_UUID

room = Room("topics", "Topics created, grown and deleted")

CREATE: Final = "KIP-4; Protocol guide: CreateTopics API"


def _refused(probe: Probe, topic: Any, code: ErrorCode, what: str) -> None:
    (answer,) = probe.create(topic).topics
    probe.expect_error(what, answer.error_code, code)


@room.check("created", CREATE, "CreateTopics", "Metadata")
def created(probe: Probe) -> None:
    """A created topic is in Metadata with the requested number of partitions."""
    topic = probe.topic(partitions=4)
    (found,) = probe.metadata(topic).topics
    probe.expect("its partitions", len(found.partitions), 4)
    probe.expect("whether it is internal", found.is_internal, False)


@room.check("created-is-described", "KIP-525", "CreateTopics 5+")
def created_is_described(probe: Probe) -> None:
    """The CreateTopics response has the new topic's partitions, replicas and settings."""
    (answer,) = probe.create(new_topic(probe.name(), 2, configs=[("retention.ms", "12345678")])).topics
    probe.expect_error("CreateTopics", answer.error_code)
    probe.expect("the number of partitions", answer.num_partitions, 2)
    probe.require(answer.replication_factor >= 1, "a replication factor", f"{answer.replication_factor}")
    settings = {each.name: each.value for each in answer.configs or ()}
    probe.expect("retention.ms", settings.get("retention.ms"), "12345678")


@room.check("created-has-id", "KIP-516", "CreateTopics 7+", "Metadata 10+")
def created_has_id(probe: Probe) -> None:
    """The CreateTopics response has the same topic id as Metadata."""
    name = probe.name()
    (answer,) = probe.create(new_topic(name)).topics
    probe.expect_error("CreateTopics", answer.error_code)
    probe.require(answer.topic_id != ZERO_UUID, "an id", answer.topic_id.hex())
    created_id = answer.topic_id
    probe.await_topic(name, 1)
    probe.expect("the id in Metadata", probe.topics[name].topic_id.hex(), created_id.hex())


@room.check("default-numbers", "KIP-464", "CreateTopics 4+")
def default_numbers(probe: Probe) -> None:
    """-1 partitions and -1 replicas stand for the broker's defaults."""
    (answer,) = probe.create(new_topic(probe.name(), -1, -1)).topics
    probe.expect_error("CreateTopics with -1 and -1", answer.error_code)


@room.check("exists", CREATE, "CreateTopics")
def exists(probe: Probe) -> None:
    """Creating a topic that exists gets TOPIC_ALREADY_EXISTS."""
    topic = probe.topic()
    (answer,) = probe.ask_controller(ApiKey.CREATE_TOPICS, admin.create_topics(new_topic(topic))).topics
    probe.expect_error("CreateTopics", answer.error_code, ErrorCode.TOPIC_ALREADY_EXISTS)


@room.check("invalid-name", CREATE, "CreateTopics")
def invalid_name(probe: Probe) -> None:
    """A name that is empty, ".", "..", too long or has invalid characters gets INVALID_TOPIC_EXCEPTION."""
    for name in ("", ".", "..", "a b", "a/b", "ä", "x" * 250):
        _refused(probe, new_topic(name), ErrorCode.INVALID_TOPIC_EXCEPTION, f"the name {name[:10]!r}")


@room.check("colliding-name", "KIP-4", "CreateTopics")
def colliding_name(probe: Probe) -> None:
    """Names that differ only in dots and underscores collide in metrics: INVALID_TOPIC_EXCEPTION."""
    (answer,) = probe.create(new_topic(probe.prefix + "-a.b")).topics
    probe.expect_error("the first", answer.error_code)
    _refused(probe, new_topic(probe.prefix + "-a_b"), ErrorCode.INVALID_TOPIC_EXCEPTION, "the second")


@room.check("no-partitions", CREATE, "CreateTopics")
def no_partitions(probe: Probe) -> None:
    """0 or fewer partitions (except -1) get INVALID_PARTITIONS."""
    for count in (0, -2):
        _refused(probe, new_topic(probe.name(), count, 1), ErrorCode.INVALID_PARTITIONS, f"{count} partitions")


@room.check("replication-factor", CREATE, "CreateTopics")
def replication_factor(probe: Probe) -> None:
    """0 replicas, or more replicas than brokers, get INVALID_REPLICATION_FACTOR."""
    for factor in (0, -2, len(probe.target.nodes) + 1):
        code = ErrorCode.INVALID_REPLICATION_FACTOR
        _refused(probe, new_topic(probe.name(), 1, factor), code, f"{factor} replicas")


@room.check("assignment", CREATE, "CreateTopics")
def assignment(probe: Probe) -> None:
    """A manual assignment must cover partitions from 0 without gaps, on existing brokers, each named once."""
    node = min(probe.target.nodes)
    good = new_topic(probe.name(), -1, -1, assignments=[(0, [node]), (1, [node])])
    (answer,) = probe.create(good).topics
    probe.expect_error("an assignment that can be", answer.error_code)
    bad_ones: dict[str, list[tuple[int, list[int]]]] = {
        "a gap": [(0, [node]), (2, [node])],
        "an unknown broker": [(0, [2**30])],
        "a broker twice": [(0, [node, node])],
        "no replicas": [(0, [])],
    }
    for what, bad in bad_ones.items():
        topic = new_topic(probe.name(), -1, -1, assignments=bad)
        _refused(probe, topic, ErrorCode.INVALID_REPLICA_ASSIGNMENT, what)


@room.check("assignment-and-numbers", CREATE, "CreateTopics")
def assignment_and_numbers(probe: Probe) -> None:
    """A partition count or replication factor together with an assignment gets INVALID_REQUEST."""
    node = min(probe.target.nodes)
    for partitions, factor in ((1, -1), (-1, 1)):
        topic = new_topic(probe.name(), partitions, factor, assignments=[(0, [node])])
        _refused(probe, topic, ErrorCode.INVALID_REQUEST, f"{partitions} partitions, {factor} replicas")


@room.check("bad-setting", CREATE, "CreateTopics")
def bad_setting(probe: Probe) -> None:
    """An unknown setting or an invalid value gets INVALID_CONFIG, and the topic is not created."""
    for key, value in (("bogus", "1"), ("retention.ms", "soon"), ("cleanup.policy", "burn"), ("retention.ms", None)):
        name = probe.name()
        _refused(probe, new_topic(name, configs=[(key, value)]), ErrorCode.INVALID_CONFIG, f"{key}={value}")
        (found,) = probe.metadata(name).topics
        probe.expect_error("Metadata", found.error_code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@room.check("twice-in-a-request", CREATE, "CreateTopics")
def twice_in_a_request(probe: Probe) -> None:
    """A topic listed twice in one request gets INVALID_REQUEST."""
    name = probe.name()
    codes = {each.error_code for each in probe.create(new_topic(name), new_topic(name)).topics}
    probe.expect("the error codes", codes, {ErrorCode.INVALID_REQUEST.value})


@room.check("validate-only", CREATE, "CreateTopics")
def validate_only(probe: Probe) -> None:
    """validate_only returns what would happen and changes nothing."""
    name = probe.name()
    (answer,) = probe.create(new_topic(name), validate_only=True).topics
    probe.expect_error("a topic that could be", answer.error_code)
    (found,) = probe.metadata(name).topics
    probe.expect_error("Metadata", found.error_code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    (answer,) = probe.create(new_topic(name, 0), validate_only=True).topics
    probe.expect_error("one that could not", answer.error_code, ErrorCode.INVALID_PARTITIONS)


@room.check("each-for-itself", CREATE, "CreateTopics")
def each_for_itself(probe: Probe) -> None:
    """One invalid topic does not keep the others from being created."""
    good, bad = probe.name(), probe.name()
    codes = {each.name: each.error_code for each in probe.create(new_topic(bad, 0), new_topic(good)).topics}
    probe.expect_error("the bad one", codes[bad], ErrorCode.INVALID_PARTITIONS)
    probe.expect_error("the good one", codes[good])


def _delete(probe: Probe, *topics: str | bytes) -> Any:
    return probe.ask_controller(ApiKey.DELETE_TOPICS, admin.delete_topics(*topics)).responses


@room.check("deleted", "KIP-4; Protocol guide: DeleteTopics API", "DeleteTopics", "Metadata 4+")
def deleted(probe: Probe) -> None:
    """A deleted topic is unknown."""
    topic = probe.topic()
    (answer,) = _delete(probe, topic)
    probe.expect_error("DeleteTopics", answer.error_code)
    probe.until(
        "the topic to be unknown",
        lambda: probe.metadata(topic).topics[0].error_code,
        lambda code: code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )
    probe.require(True, "the topic to be unknown", "it is")


@room.check("deleted-unknown", "Protocol guide: DeleteTopics API", "DeleteTopics")
def deleted_unknown(probe: Probe) -> None:
    """Deleting an unknown topic gets UNKNOWN_TOPIC_OR_PARTITION, and the others in the request are deleted."""
    topic, missing = probe.topic(), probe.name()
    codes = {each.name: each.error_code for each in _delete(probe, missing, topic)}
    probe.expect_error("the one that does not exist", codes[missing], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    probe.expect_error("the other", codes[topic])


@room.check("deleted-by-id", "KIP-516", "DeleteTopics 6+", "Metadata 12+")
def deleted_by_id(probe: Probe) -> None:
    """A topic can be deleted by its id; an unknown id gets UNKNOWN_TOPIC_ID."""
    topic = probe.topic()
    topic_id = probe.topics[topic].topic_id
    codes = {each.topic_id: each.error_code for each in _delete(probe, topic_id, UNKNOWN_ID)}
    probe.expect_error("the topic's id", codes[topic_id])
    probe.expect_error("another id", codes[UNKNOWN_ID], ErrorCode.UNKNOWN_TOPIC_ID)


@room.check("new-id-for-old-name", "KIP-516", "CreateTopics 7+", "DeleteTopics", "Metadata 12+", "ListOffsets")
def new_id_for_old_name(probe: Probe) -> None:
    """A topic that is deleted and created again has a new id and none of its old records."""
    topic = probe.topic()
    first = probe.topics[topic].topic_id
    _delete(probe, topic)
    answer = probe.until(
        "the topic to be created again",
        lambda: probe.create(new_topic(topic)).topics[0],
        lambda answer: answer.error_code != ErrorCode.TOPIC_ALREADY_EXISTS,
    )
    probe.expect_error("CreateTopics", answer.error_code)
    again = answer.topic_id
    probe.require(again != first, "another id", "the same" if again == first else "another")
    probe.until(
        "Metadata to show the new id", lambda: probe.metadata(topic).topics[0].topic_id, lambda seen: seen == again
    )
    probe.await_topic(topic, 1)
    probe.expect("its end", probe.end_offset(topic), 0)


def _grow(probe: Probe, topic: str, count: int, **fields: Any) -> int:
    (answer,) = probe.ask_controller(
        ApiKey.CREATE_PARTITIONS, admin.create_partitions((topic, count), **fields)
    ).results
    return int(answer.error_code)


@room.check("grown", "KIP-195", "CreatePartitions", "Metadata 4+")
def grown(probe: Probe) -> None:
    """CreatePartitions adds partitions to a topic, and Metadata shows them."""
    topic = probe.topic()
    probe.expect_error("CreatePartitions, only validated", _grow(probe, topic, 3, validate_only=True))
    probe.expect("the partitions still", len(probe.metadata(topic).topics[0].partitions), 1)
    probe.expect_error("CreatePartitions", _grow(probe, topic, 3))
    probe.until("three partitions", lambda: len(probe.metadata(topic).topics[0].partitions), lambda count: count == 3)
    probe.require(True, "three partitions", "there are")


@room.check("not-shrunk", "KIP-195", "CreatePartitions")
def not_shrunk(probe: Probe) -> None:
    """Asking for the current number of partitions, or fewer, gets INVALID_PARTITIONS."""
    topic = probe.topic(partitions=2)
    for count in (2, 1, 0, -1):
        probe.expect_error(f"{count} partitions", _grow(probe, topic, count), ErrorCode.INVALID_PARTITIONS)
    code = _grow(probe, probe.name(), 3)
    probe.expect_error("a topic that does not exist", code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _delete_records(probe: Probe, topic: str, offset: int) -> Any:
    request = admin.delete_records((topic, 0, offset))
    answer = probe.ask(ApiKey.DELETE_RECORDS, request, node=probe.leader(topic))
    return probe.only(answer.topics, "partitions")


@room.check("records-deleted", "KIP-107", "DeleteRecords", "Produce", "Fetch", "ListOffsets")
def records_deleted(probe: Probe) -> None:
    """DeleteRecords moves the log start offset, which ListOffsets shows too; earlier records cannot be read."""
    topic = probe.topic()
    probe.append(topic, b"0", b"1", b"2", b"3")
    answer = _delete_records(probe, topic, 2)
    probe.expect_error("DeleteRecords", answer.error_code)
    probe.expect("the low watermark", answer.low_watermark, 2)
    probe.expect("the earliest offset", probe.list_offset(topic, 0, EARLIEST).offset, 2)
    probe.expect_error("Fetch at 0", probe.fetch(topic, 0).error_code, ErrorCode.OFFSET_OUT_OF_RANGE)
    probe.expect("the low watermark for offset -1, the end", _delete_records(probe, topic, -1).low_watermark, 4)


@room.check("records-beyond-end", "KIP-107", "DeleteRecords", "Produce")
def records_beyond_end(probe: Probe) -> None:
    """An offset beyond the high watermark, or below -1, gets OFFSET_OUT_OF_RANGE."""
    topic = probe.topic()
    probe.append(topic, b"0")
    for offset in (2, -2):
        code = _delete_records(probe, topic, offset).error_code
        probe.expect_error(f"offset {offset}", code, ErrorCode.OFFSET_OUT_OF_RANGE)


@room.check("election-not-needed", "KIP-460", "ElectLeaders 1+")
def election_not_needed(probe: Probe) -> None:
    """Electing a preferred leader that already leads gets ELECTION_NOT_NEEDED."""
    topic = probe.topic()
    request = ElectLeadersRequest(
        topic_partitions=[TopicPartitions(topic=topic, partitions=[0])], timeout_ms=TIMEOUT_MS
    )
    answer = probe.ask_controller(ApiKey.ELECT_LEADERS, request)
    found = probe.only(answer.replica_election_results, "partition_result")
    probe.expect_error("ElectLeaders", found.error_code, ErrorCode.ELECTION_NOT_NEEDED)


@room.check("no-reassignments", "KIP-455", "ListPartitionReassignments")
def no_reassignments(probe: Probe) -> None:
    """A topic that is not being reassigned is not listed among the reassignments."""
    topic = probe.topic()
    request = ListPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=None)
    answer = probe.ask_controller(ApiKey.LIST_PARTITION_REASSIGNMENTS, request)
    probe.expect_error("ListPartitionReassignments", answer.error_code)
    moving = [each.name for each in answer.topics]
    probe.require(topic not in moving, "the topic not to be among them", f"{len(moving)} topics are")
