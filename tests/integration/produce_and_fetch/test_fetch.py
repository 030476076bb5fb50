"""What Fetch answers, in every version, with and without a session."""

import pytest

from barnabas.client.requests.data import fetch, list_offsets, produce
from barnabas.client.requests.topics import topic_field
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.fetch import ForgottenTopic, ReplicaState
from tests.integration.produce_and_fetch.records import BATCH_SIZE, FETCH_VERSIONS, ONE, idempotent, read, unknown
from tests.support.batches import batch
from tests.support.side_by_side import Side

pytestmark = pytest.mark.java

# What is fetched, given the name (or id) of the topic above.
FETCH = {
    "all that there is": lambda t: fetch((t, 0, 10)),
    "from within a batch": lambda t: fetch((t, 0, 17)),
    "two partitions": lambda t: fetch((t, 0, 10), (t, 1, 0)),
    "an empty partition": lambda t: fetch((t, 2, 0)),
    "at the end": lambda t: fetch((t, 0, 30)),
    "past the end": lambda t: fetch((t, 0, 31)),
    "what was deleted": lambda t: fetch((t, 0, 9)),
    "offset 0, deleted": lambda t: fetch((t, 0, 0)),
    "a negative offset": lambda t: fetch((t, 0, -1)),
    "the largest offset": lambda t: fetch((t, 0, 2**63 - 1)),
    "a partition that is not there": lambda t: fetch((t, 3, 0), (t, 1, 0)),
    "a negative partition": lambda t: fetch((t, -1, 0)),
    "a topic that is not there": lambda t: fetch((unknown(t), 0, 0), (t, 1, 0)),
    "neither a name nor an id": lambda t: fetch((t[:0], 0, 0)),
    "a partition twice": lambda t: fetch((t, 1, 0), (t, 1, 25)),
    "nothing": lambda t: fetch(),
    "max bytes 0": lambda t: fetch((t, 0, 10), (t, 1, 0), max_bytes=0),
    "max bytes 1": lambda t: fetch((t, 0, 10), (t, 1, 0), max_bytes=1),
    "negative max bytes": lambda t: fetch((t, 0, 10), max_bytes=-1),
    "max bytes for a batch and a half": lambda t: fetch((t, 0, 10), (t, 1, 0), max_bytes=BATCH_SIZE * 3 // 2),
    "max bytes for five batches": lambda t: fetch((t, 0, 10), (t, 1, 0), max_bytes=BATCH_SIZE * 5),
    "partition max bytes 0": lambda t: fetch((t, 0, 10), (t, 1, 0), partition_max_bytes=0),
    "partition max bytes 1": lambda t: fetch((t, 0, 10), (t, 1, 0), partition_max_bytes=1),
    "negative partition max bytes": lambda t: fetch((t, 0, 10), partition_max_bytes=-1),
    "partition max bytes for a batch": lambda t: fetch((t, 0, 10), (t, 1, 0), partition_max_bytes=BATCH_SIZE),
    "no minimum": lambda t: fetch((t, 0, 30), min_bytes=0, max_wait_ms=60_000),
    "no time to wait": lambda t: fetch((t, 0, 30), max_wait_ms=0),
    "a time below 0": lambda t: fetch((t, 0, 30), max_wait_ms=-1),
    "a short wait": lambda t: fetch((t, 0, 30), max_wait_ms=1),
    "more than may be sent": lambda t: fetch((t, 0, 10), min_bytes=10_000, max_bytes=BATCH_SIZE, max_wait_ms=60_000),
    "an error ends a wait": lambda t: fetch((t, 0, 30), (t, 1, 99), max_wait_ms=60_000),
    "read committed": lambda t: fetch((t, 0, 10), isolation_level=1),
    "read committed at the end": lambda t: fetch((t, 0, 30), isolation_level=1),
    "read committed past the end": lambda t: fetch((t, 0, 31), isolation_level=1),
    "read committed from nowhere": lambda t: fetch((unknown(t), 0, 0), isolation_level=1),
    "an isolation level that nobody knows": lambda t: fetch((t, 0, 10), (unknown(t), 0, 0), isolation_level=2),
    "a negative isolation level": lambda t: fetch((t, 0, 10), isolation_level=-1),
    "the leader's epoch": lambda t: fetch((t, 0, 10), partition_fields={"current_leader_epoch": 0}),
    "an epoch to come": lambda t: fetch((t, 0, 10), partition_fields={"current_leader_epoch": 1}),
    "an epoch below all": lambda t: fetch((t, 0, 10), partition_fields={"current_leader_epoch": -2}),
    "the last fetched epoch": lambda t: fetch((t, 0, 10), partition_fields={"last_fetched_epoch": 0}),
    "a last fetched epoch to come": lambda t: fetch((t, 0, 10), partition_fields={"last_fetched_epoch": 1}),
    "a last fetched epoch past the end": lambda t: fetch((t, 0, 31), partition_fields={"last_fetched_epoch": 0}),
    "a last fetched epoch on nothing": lambda t: fetch((t, 2, 0), partition_fields={"last_fetched_epoch": 0}),
}


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@pytest.mark.parametrize("case", FETCH)
def test_fetch(brokers, case, version):
    def scenario(side: Side):
        read(side)
        yield side.ask(ApiKey.FETCH, FETCH[case](side.name("read", version >= 13)), version)

    brokers.play(scenario)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@pytest.mark.parametrize("replica_id", [-2, 0, 1, 2])
def test_fetch_as_a_replica(brokers, replica_id, version):
    def scenario(side: Side):
        read(side)
        fields = {"replica_id": replica_id}
        if version >= 15:
            fields = {"replica_state": ReplicaState(**fields)}
        name = side.name("read", version >= 13)
        yield side.ask(ApiKey.FETCH, fetch((name, 0, 10), (name, 0, 99), (name, 9, 0), **fields), version)
        epoch = {"current_leader_epoch": 1}
        yield side.ask(ApiKey.FETCH, fetch((name, 0, 10), partition_fields=epoch, **fields), version)

    brokers.play(scenario)


@pytest.mark.parametrize("version", [FETCH_VERSIONS[0], FETCH_VERSIONS[-1]])
def test_a_fetch_that_ends_with_its_segment_does_not_wait(brokers, version):
    def scenario(side: Side):
        if not side.has_topic("segments"):
            side.create_topic("segments", configs={"segment.bytes": "1048576"})
            for _ in range(2):
                side.ask(ApiKey.PRODUCE, produce(("segments", 0, batch(bytes(600_000)))), 9)
        request = fetch((side.name("segments", version >= 13), 0, 0), min_bytes=1_000_000, max_wait_ms=60_000)
        yield side.ask(ApiKey.FETCH, request, version)

    brokers.play(scenario)


@pytest.mark.parametrize("version", range(7, 19))
def test_a_fetch_session(brokers, version):
    topic = f"session-{version}"

    def scenario(side: Side):
        def ask(*parts, epoch, session_id, **fields):
            request = fetch(*parts, session_id=session_id, session_epoch=epoch, **fields)
            answer = side.ask(ApiKey.FETCH, request, version)
            answers.append(answer)
            return answer.session_id

        def append(partition):
            side.ask(ApiKey.PRODUCE, produce((topic, partition, ONE)), 9)

        answers = []
        side.create_topic(topic, 3)
        name = side.name(topic, version >= 13)
        known = {"session_id": ask((name, 0, 0), (name, 1, 0), epoch=0, session_id=0)}
        ask(epoch=1, **known)
        append(1)
        ask(epoch=2, **known)
        ask((name, 1, 1), epoch=3, **known)
        ask((name, 2, 0), epoch=4, **known)
        append(2)
        ask(epoch=5, forgotten_topics_data=[ForgottenTopic(**topic_field("topic", name), partitions=[2])], **known)
        ask((name, 0, 99), epoch=6, **known)
        ask(epoch=7, **known)
        ask((name, 0, 0), epoch=8, **known)
        ask((name, 77, 0), epoch=9, **known)
        ask((unknown(name), 0, 0), epoch=10, **known)
        ask(epoch=11, **known)
        ask(epoch=11, **known)
        ask(epoch=13, **known)
        ask(epoch=1, session_id=0)
        ask(epoch=1, session_id=12345)
        ask(epoch=-2, **known)
        ask((name, 1, 0), epoch=-1, **known)
        ask(epoch=12, **known)
        ask((name, 0, 0), epoch=0, session_id=12345)
        ask(epoch=0, session_id=0)
        ask(epoch=-1, session_id=0)
        ask((name, 77, 0), epoch=0, session_id=0)
        ask((unknown(name), 0, 0), epoch=0, session_id=0)
        yield from answers

    brokers.play(scenario)


@pytest.mark.parametrize(("first", "then"), [(12, 13), (13, 12)])
def test_a_fetch_session_by_name_cannot_be_used_by_id(brokers, first, then):
    def scenario(side: Side):
        read(side)
        answer = side.ask(
            ApiKey.FETCH, fetch((side.name("read", first >= 13), 1, 0), session_id=0, session_epoch=0), first
        )
        yield answer
        yield side.ask(ApiKey.FETCH, fetch(session_id=answer.session_id, session_epoch=1), then)

    brokers.play(scenario)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_reading_while_a_transaction_is_open(brokers, version):
    def scenario(side: Side):
        if not side.has_topic("transaction"):
            side.create_topic("transaction")
            inside = idempotent(b"in it", sequence=0, timestamp=2_000_000, transactional=True)
            for records in (ONE, inside, batch(b"after", timestamp=3_000_000)):
                request = produce(("transaction", 0, records), transactional_id="x")
                yield side.ask(ApiKey.PRODUCE, request, 9)
        for isolation_level in (0, 1):
            for offset in range(5):
                name = side.name("transaction", version >= 13)
                yield side.ask(ApiKey.FETCH, fetch((name, 0, offset), isolation_level=isolation_level), version)
            for timestamp in (-1, -2, -3, 1_500_000, 2_500_000):
                request = list_offsets(("transaction", 0, timestamp), isolation_level=isolation_level)
                yield side.ask(ApiKey.LIST_OFFSETS, request, min(version, 11))

    brokers.play(scenario)
