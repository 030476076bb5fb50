"""What happens at once when the clock is moved, seen by two client libraries."""

from datetime import timedelta

import confluent_kafka
import kafka
import pytest

from tests.integration.clients.groups import partitions_of
from tests.integration.clients.interface import ProducerRecord, wait_until
from tests.support.kafka_python import wait_for_topic

DAYS = 86_400
PATIENCE = 90


def members(broker):
    return broker.state["groups"]["group"]["members"]


def test_a_member_whose_session_expires_is_removed(broker, client, group):
    broker.create_topic("t")
    consumer = group.join(client, "t", settings={"session.timeout.ms": 45_000})
    group.poll_until_shared(partitions_of("t", count=1))
    (member,) = members(broker)

    broker.clock.advance(46)

    assert member["member_id"] not in [each["member_id"] for each in members(broker)]
    # It learns so from its next heartbeat, and joins again.
    group.poll_until(
        lambda: [each["assignment"] for each in members(broker)] == [{"t": [0]}], "the member to be back", [consumer]
    )


def test_a_session_that_has_not_expired_continues(broker, client, group):
    broker.create_topic("t")
    group.join(client, "t", settings={"session.timeout.ms": 45_000})
    group.poll_until_shared(partitions_of("t", count=1))
    (member,) = members(broker)
    broker.clock.advance(30)
    assert [each["member_id"] for each in members(broker)] == [member["member_id"]]


def test_a_rebalance_does_not_wait_longer_than_its_timeout_for_a_member_that_hangs(broker, client, group):
    broker.create_topic("t", partitions=2)
    settings = {"session.timeout.ms": 60_000, "max.poll.interval.ms": 60_000, "heartbeat.interval.ms": 100}
    hanging = kafka.KafkaConsumer(
        "t",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="group",
        partition_assignment_strategy=[kafka.coordinator.assignors.range.RangePartitionAssignor],
        **{name.replace(".", "_"): value for name, value in settings.items()},
    )
    try:
        wait_for_topic(hanging, "t")
        wait_until(lambda: hanging.poll(timeout_ms=100) is not None and bool(hanging.assignment()), "the first member")
        joined = group.join(client, "t", settings=settings)
        group.poll_until(lambda: broker.state["groups"]["group"]["state"] == "PreparingRebalance", "a rebalance")

        def heard():
            """Its heartbeats continue, but it does not join again."""
            state = broker.state["groups"]["group"]
            return state["members"][0]["heard_at_ms"] > state["state_since_ms"] + 200

        group.poll_until(heard, "a heartbeat of the member that hangs")
        assert len(members(broker)) == 2
        started = broker.state["groups"]["group"]["state_since_ms"]
        broker.clock.advance((started + 60_050 - broker.clock.now_ms) / 1000)

        assert len(members(broker)) == 1
        group.poll_until_shared(partitions_of("t", count=2), [joined])
    finally:
        hanging.close(autocommit=False)


def test_old_records_are_deleted(broker, client):
    broker.create_topic("t", retention_ms=3_600_000)
    client.write("t", ProducerRecord(b"old"))
    broker.clock.advance(timedelta(minutes=59))
    with client.consumer("t") as consumer:
        assert (consumer.beginning_offset(), consumer.end_offset()) == (0, 1)
        broker.clock.advance(timedelta(hours=1))
        assert (consumer.beginning_offset(), consumer.end_offset()) == (1, 1)
    (partition,) = broker.state["topics"]["t"]["partitions"]
    assert (partition["log_start_offset"], partition["log_end_offset"]) == (1, 1)


def test_committed_offsets_expire(broker, client, group):
    broker.create_topic("t", retention_ms=-1)
    client.write("t", ProducerRecord(b"a"), ProducerRecord(b"b"))
    consumer = group.join(client, "t", settings={"enable.auto.commit": "true"} if client.name != "kafka-python" else {})
    group.read(2)
    group.leave(consumer)
    (offset,) = broker.state["groups"]["group"]["offsets"]
    assert (offset["offset"], offset["lag"]) == (2, 0)

    broker.clock.advance(6 * DAYS)
    assert broker.state["groups"]["group"]["offsets"] == [offset]
    broker.clock.advance(2 * DAYS)
    assert "group" not in broker.state["groups"]
    # A new member starts where auto.offset.reset says.
    group.join(client, "t")
    assert [record.value for record in group.read(2)[0]] == [b"a", b"b"]


def test_producers_are_forgotten(broker, client):
    broker.create_topic("t")
    with client.producer(enable_idempotence=True) as producer:
        producer.send("t", [ProducerRecord(b"a")])
        assert [each["topic"] for each in broker.state["producers"]] == ["t"]
        broker.clock.advance(timedelta(hours=23))
        assert [each["topic"] for each in broker.state["producers"]] == ["t"]
        broker.clock.advance(timedelta(hours=2))
        assert broker.state["producers"] == []
        # A client that was away for a day does not have to care.
        assert producer.send("t", [ProducerRecord(b"b")])[0].offset == 1


def test_a_transaction_that_takes_too_long_is_aborted_with_kafka_python(broker):
    broker.create_topic("t")
    producer = kafka.KafkaProducer(
        bootstrap_servers=broker.bootstrap_servers, transactional_id="tx", transaction_timeout_ms=60_000
    )
    try:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"never to be seen").get(PATIENCE)
        transaction_times_out(broker)
        with pytest.raises(kafka.errors.KafkaError):
            producer.commit_transaction()
    finally:
        producer.close(timeout=1)


def test_a_transaction_that_takes_too_long_is_aborted_with_confluent_kafka(broker):
    broker.create_topic("t")
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "tx", "transaction.timeout.ms": 60_000}
    )
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    producer.produce("t", b"never to be seen")
    assert producer.flush(PATIENCE) == 0
    transaction_times_out(broker)
    with pytest.raises(confluent_kafka.KafkaException):
        producer.commit_transaction(PATIENCE)


def transaction_times_out(broker):
    assert broker.state["transactions"]["tx"]["state"] == "Ongoing"
    assert broker.state["topics"]["t"]["partitions"][0]["last_stable_offset"] == 0
    broker.clock.advance(50)
    assert broker.state["transactions"]["tx"]["state"] == "Ongoing"
    broker.clock.advance(25)  # the timeout, and the next check, at most ten seconds later
    assert broker.state["transactions"]["tx"]["state"] == "CompleteAbort"
    (partition,) = broker.state["topics"]["t"]["partitions"]
    assert (partition["last_stable_offset"], partition["log_end_offset"]) == (2, 2)  # with the marker


def test_an_unused_transactional_id_is_forgotten(broker, client):
    broker.create_topic("t", retention_ms=-1)
    with client.transactional_producer("tx") as producer:
        producer.begin()
        producer.send("t", [ProducerRecord(b"a")])
        producer.commit()
    broker.clock.advance(6 * DAYS)
    assert broker.state["transactions"]["tx"]["state"] == "CompleteCommit"
    broker.clock.advance(1 * DAYS + 3600)
    assert broker.state["transactions"] == {}
    # A producer that comes with it starts over.
    with client.transactional_producer("tx") as producer:
        producer.begin()
        producer.send("t", [ProducerRecord(b"b")])
        producer.commit()
    with client.consumer("t", isolation_level="read_committed") as consumer:
        assert [record.value for record in consumer.read(2)] == [b"a", b"b"]


def test_logs_are_compacted_and_tombstones_deleted(broker, client):
    broker.create_topic(
        "t", cleanup_policy="compact", segment_ms=1000, min_cleanable_dirty_ratio=0.01, delete_retention_ms=3_600_000
    )
    written = broker.clock.now_ms

    def write(*records):
        """Each into a segment of its own: two seconds lie between any two of them."""
        nonlocal written
        with client.producer() as producer:
            for key, value in records:
                producer.send("t", [ProducerRecord(value, key=key, timestamp=written)])
                written += 2000

    write((b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"b", None), (b"c", b"1"))
    broker.clock.advance(60)
    assert contents(client) == [(b"a", b"2"), (b"b", None), (b"c", b"1")]
    broker.clock.advance(3600)
    write((b"d", b"1"), (b"e", b"1"))  # as in Kafka, a log without news is not cleaned again
    broker.clock.advance(60)
    assert contents(client) == [(b"a", b"2"), (b"c", b"1"), (b"d", b"1"), (b"e", b"1")]


def contents(client):
    with client.consumer("t") as consumer:
        records = consumer.read(1)
        while records[-1].offset < consumer.end_offset() - 1:
            records += consumer.read(1)
    return [(record.key, record.value) for record in records]


def test_a_fetch_that_waits_is_answered(broker, client, group):
    broker.create_topic("t")
    member = group.join(client, "t", settings={"fetch.max.wait.ms": 20_000})
    group.poll_until_shared(partitions_of("t", count=1))
    group.poll_until(lambda: broker.state["topics"]["t"]["partitions"][0]["waiting_fetches"] == 1, "a Fetch", [member])
    mark = broker.journal.mark()
    broker.clock.advance(21)
    entry = broker.journal.expect("Fetch", topic="t", since=mark, within=PATIENCE)
    assert entry["took_ms"] >= 20_000


def test_nobody_is_disconnected(broker, client):
    broker.create_topic("t")
    with client.producer() as producer:
        producer.send("t", [ProducerRecord(b"a")])
        before = {each["peer"] for each in broker.state["connections"]}
        broker.clock.advance(timedelta(days=1))
        assert before <= {each["peer"] for each in broker.state["connections"]}
        assert producer.send("t", [ProducerRecord(b"b")])[0].offset == 1
