"""Emptying a broker, and bringing a prepared state back, while clients are connected."""

import time
from contextlib import suppress

from barnabas import ControlFailed
from tests.integration.clients.groups import partitions_of
from tests.integration.clients.interface import ProducerRecord, wait_until


def values(records):
    return [record.value for record in records]


def write_until_taken(producer, topic, value):
    """A client may have to learn first that the topic of this name is another one now."""

    def taken():
        try:
            return bool(producer.send(topic, [ProducerRecord(value)]))
        except Exception:
            return False

    wait_until(taken, f"a record to be written to {topic}")


def create_again(broker, topic):
    """A client that still wants the topic may have had it created meanwhile."""
    with suppress(ControlFailed):
        broker.create_topic(topic)
    assert topic in broker.state["topics"]


def test_after_a_reset_nothing_is_left(broker, client, group):
    broker.create_topic("t", partitions=2)
    client.write("t", ProducerRecord(b"a"))
    client.alter_configs("t", {"retention.ms": "1000"})
    consumer = group.join(client, "t")
    group.read(1)
    group.leave(consumer)  # it would have the broker create the topic again
    broker.clock.advance(5)

    broker.reset()
    state = broker.state
    assert (state["topics"], state["groups"], state["producers"]) == ({}, {}, [])
    assert state["clock"]["ahead_ms"] == 0


def test_a_reset_is_quick(broker):
    for _ in range(3):
        broker.create_topic(partitions=3)
    started = time.perf_counter()
    broker.reset()
    assert time.perf_counter() - started < 5  # milliseconds where nothing else runs
    assert broker.state["topics"] == {}


def test_clients_stay_connected_over_a_reset_and_go_on(broker, client):
    broker.create_topic("t")
    with client.producer() as producer:
        producer.send("t", [ProducerRecord(b"before")])
        peers = {each["peer"] for each in broker.state["connections"]}
        broker.reset()
        assert peers <= {each["peer"] for each in broker.state["connections"]}
        create_again(broker, "t")
        write_until_taken(producer, "t", b"after")
    with client.consumer("t") as consumer:
        assert set(values(consumer.read(1))) == {b"after"}


def test_a_member_finds_its_group_again_after_a_reset(broker, client, group):
    broker.create_topic("t")
    group.join(client, "t")
    group.poll_until_shared(partitions_of("t", count=1))
    broker.reset()
    create_again(broker, "t")

    def is_back():
        members = broker.state["groups"].get("group", {"members": []})["members"]
        return [each["assignment"] for each in members] == [{"t": [0]}]

    group.poll_until(is_back, "the member to be back")


def test_a_restored_broker_has_what_it_had(broker, client, group):
    broker.create_topic("t", partitions=1, retention_ms=-1)
    client.write("t", ProducerRecord(b"a", key=b"k"), ProducerRecord(b"b"))
    consumer = group.join(client, "t", settings={"auto.commit.interval.ms": 100})
    group.read(2)
    group.leave(consumer)
    before = broker.state
    snapshot = broker.snapshot()
    client.write("t", ProducerRecord(b"c"))
    broker.create_topic("other")

    for _ in range(2):  # as often as wanted
        broker.restore(snapshot)
        state = broker.state
        assert state["topics"] == before["topics"]
        assert state["groups"]["group"]["offsets"] == before["groups"]["group"]["offsets"]
        assert state["producers"] == before["producers"]
        with client.consumer("t") as reader:
            assert values(reader.read(2)) == [b"a", b"b"]
        client.write("t", ProducerRecord(b"d"))
        group.join(client, "t")
        assert values(group.read(1)[0]) == [b"d"]  # it continues where it had committed
        group.leave(group.members[0])
    broker.control.call("DELETE", f"/snapshots/{snapshot.name}")


def test_members_are_not_part_of_a_snapshot(broker, client, group):
    """A member that joins after a restore must not wait for those that were there before."""
    broker.create_topic("t")
    group.join(client, "t")
    group.poll_until_shared(partitions_of("t", count=1))
    with broker.restoring():
        broker.create_topic("other")
    assert "other" not in broker.state["topics"]
    group.poll_until_shared(partitions_of("t", count=1))


def test_a_reset_empties_what_a_snapshot_brings_back(broker, client):
    broker.create_topic("t")
    client.write("t", ProducerRecord(b"a"))
    broker.clock.advance(60)
    snapshot = broker.snapshot("prepared")
    broker.reset()
    assert broker.state["topics"] == {}
    broker.restore("prepared")
    assert broker.state["topics"]["t"]["partitions"][0]["log_end_offset"] == 1
    assert broker.state["clock"]["ahead_ms"] == 60_000
    broker.control.call("DELETE", f"/snapshots/{snapshot.name}")


def test_segments_that_are_complete_survive_in_a_snapshot(broker, client):
    """Their files are linked, not copied: what happens to the log later must not reach them."""
    broker.create_topic("t", segment_bytes=1024 * 1024, retention_ms=-1)
    with client.producer() as producer:
        for number in range(5):
            producer.send("t", [ProducerRecord(b"%d" % number + bytes(400_000))])
    (partition,) = broker.state["topics"]["t"]["partitions"]
    assert partition["segments"] > 1
    with broker.restoring():
        client.delete_records("t", 4)
        client.alter_configs("t", {"retention.ms": "1000", "segment.bytes": "1048576"})
        broker.clock.advance(600)
        assert broker.state["topics"]["t"]["partitions"][0]["log_start_offset"] >= 4
    with client.consumer("t") as consumer:
        assert [value[:1] for value in values(consumer.read(5))] == [b"0", b"1", b"2", b"3", b"4"]
