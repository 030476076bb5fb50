"""Every fault with stock clients: what affects them, and how they handle it."""

import time

import pytest

from barnabas.errors import ControlFailed
from tests.integration.clients.interface import ProducerRecord, wait_until

ONE = ProducerRecord(b"one")


@pytest.fixture(autouse=True)
def no_faults(broker):
    yield
    broker.faults.clear()


def end_offset(broker, topic):
    return broker.state["topics"][topic]["partitions"][0]["high_watermark"]


def read_one(client, topic):
    with client.consumer(topic) as consumer:
        return consumer.read(1)[0].value


def test_an_error_that_is_worth_a_retry(broker, client, topic):
    with broker.faults.add(api="Produce", topic=topic, error="NOT_LEADER_OR_FOLLOWER", times=2) as fault:
        client.write(topic, ONE)
    assert fault.hits == 2
    assert end_offset(broker, topic) == 1
    assert broker.journal.count("Produce", topic=topic, error="NOT_LEADER_OR_FOLLOWER") == 2
    # A client that gets this error looks for the leader before it tries again.
    failed = broker.journal.entries("Produce", topic=topic, error="NOT_LEADER_OR_FOLLOWER")[0]["number"]
    broker.journal.expect("Metadata", topic=topic, since=failed)


def test_an_error_that_is_not(broker, client, topic):
    with broker.faults.add(api="Produce", topic=topic, error="TOPIC_AUTHORIZATION_FAILED"):
        with pytest.raises(Exception, match=r"(?i)authoriz|29"):
            client.write(topic, ONE)
    assert end_offset(broker, topic) == 0


def test_an_error_in_fetch(broker, client, topic):
    client.write(topic, ONE)
    with broker.faults.add(api="Fetch", topic=topic, error="NOT_LEADER_OR_FOLLOWER", times=2) as fault:
        assert read_one(client, topic) == b"one"
    assert fault.hits == 2


def test_metadata_without_a_leader(broker, client, topic):
    with broker.faults.add(api="Metadata", topic=topic, error="LEADER_NOT_AVAILABLE", times=2) as fault:
        client.write(topic, ONE)
    assert fault.hits == 2


def test_a_connection_that_closes_before_the_request_is_handled(broker, client, topic):
    with broker.faults.add(api="Produce", topic=topic, close="before", times=1) as fault:
        client.write(topic, ONE)
    assert fault.hits == 1
    assert end_offset(broker, topic) == 1


def test_with_idempotence_a_lost_answer_does_not_duplicate_a_record(broker, client, topic):
    with broker.faults.add(api="Produce", topic=topic, close="after", times=1) as fault:
        with client.producer(enable_idempotence=True) as producer:
            producer.send(topic, [ONE])
    assert fault.hits == 1
    assert broker.journal.count("Produce", topic=topic) == 2
    assert end_offset(broker, topic) == 1


def test_an_answer_that_is_lost_is_a_record_twice_without_idempotence(broker, client, topic):
    with broker.faults.add(api="Produce", topic=topic, close="after", times=1):
        with client.producer(enable_idempotence=False) as producer:
            producer.send(topic, [ONE])
    assert end_offset(broker, topic) == 2


def test_a_delay(broker, client, topic):
    with broker.faults.add(api="Produce", topic=topic, delay_ms=300, times=1) as fault:
        client.write(topic, ONE)
    assert fault.hits == 1
    entry = broker.journal.expect("Produce", topic=topic)
    assert entry["took_ms"] >= 300
    assert end_offset(broker, topic) == 1


def test_a_late_answer(broker, client, topic):
    with broker.faults.add(api="Produce", topic=topic, delay_answer_ms=300, times=1):
        client.write(topic, ONE)
    assert broker.journal.expect("Produce", topic=topic)["took_ms"] >= 300


def test_a_throttled_client_waits(broker, client, topic):
    with client.producer() as producer:
        producer.send(topic, [ONE])
        with broker.faults.add(api="Produce", topic=topic, throttle_ms=400, times=1):
            producer.send(topic, [ONE])
        producer.send(topic, [ONE])
    _, throttled, after = broker.journal.entries("Produce", topic=topic)
    assert throttled["answer"]["throttle_time_ms"] == 400
    # The next request was held back either by the client, or by the broker before it was started.
    assert after["at_ms"] - throttled["at_ms"] >= 400


@pytest.mark.parametrize("client", ["kafka-python", "aiokafka"], indirect=True)
def test_a_corrupt_batch_is_seen_as_such(broker, client, topic):
    client.write(topic, ProducerRecord(b"x" * 100))
    complaints = []

    def has_complained():
        try:
            assert consumer.poll() == []
        except AssertionError:
            raise
        except Exception as error:
            complaints.append(str(error).lower())
        return bool(complaints)

    with broker.faults.add(api="Fetch", topic=topic, corrupt=True, times=1) as fault:
        with client.consumer(topic) as consumer:
            wait_until(has_complained, "a complaint about the batch")
    assert fault.hits == 1
    assert "crc" in complaints[0] or "corrupt" in complaints[0]
    # On the broker's disk it is right.
    assert read_one(client, topic) == b"x" * 100


def test_connections_that_are_refused(broker, client, topic):
    def written():
        try:
            client.write(topic, ONE)
        except Exception:  # aiokafka gives up where others retry
            return False
        return True

    with broker.faults.add(refuse_connections=True, times=2) as fault:
        wait_until(written, "a record to be written")
    assert fault.hits == 2
    assert end_offset(broker, topic) == 1


def test_a_broker_that_stands_still(broker, client, topic):
    with client.producer() as producer:
        producer.send(topic, [ONE])
        begun = time.monotonic()
        broker.faults.stop(700)
        producer.send(topic, [ONE])
        assert time.monotonic() - begun >= 0.7
    assert end_offset(broker, topic) == 2


def test_a_request_at_which_the_broker_stands_still(broker, client, topic):
    with client.producer() as producer:
        producer.send(topic, [ONE])
        begun = time.monotonic()
        with broker.faults.add(api="Produce", topic=topic, stop_ms=700, times=1) as fault:
            producer.send(topic, [ONE])
        assert time.monotonic() - begun >= 0.7
    assert fault.hits == 1
    assert end_offset(broker, topic) == 2


def test_a_fault_is_about_the_requests_that_were_chosen_and_no_others(broker, client, topic):
    with client.producer() as producer:
        producer.send(topic, [ONE])
        first = broker.journal.expect("Produce", topic=topic)
        chosen = {
            **{"topic": f"{topic[:-1]}?", "partition": 0, "versions": first["version"]},
            **{"client_id": first["client_id"], "principal": "User:ANONYMOUS"},
        }
        others = {
            **{"topic": "other", "partition": 1, "versions": f"0-{first['version'] - 1}"},
            **{"client_id": "somebody", "principal": "User:somebody"},
        }
        elsewhere = [
            broker.faults.add(api="Produce", error="UNKNOWN_SERVER_ERROR", **{**chosen, name: value})
            for name, value in others.items()
        ]
        here = broker.faults.add(api="Produce", error="NOT_LEADER_OR_FOLLOWER", nth=2, **chosen)
        producer.send(topic, [ONE])
        assert (here.seen, here.hits) == (1, 0)
        producer.send(topic, [ONE])
        assert (here.seen, here.hits, here.over) == (2, 1, True)
    assert [fault.seen for fault in elsewhere] == [0] * len(others)
    assert end_offset(broker, topic) == 3


def test_by_chance(broker, client, topic):
    """The chance of this seed lets three pass, then one fail, then three pass."""
    chance = {"probability": 0.4, "seed": 0}
    with broker.faults.add(api="Produce", topic=topic, error="NOT_LEADER_OR_FOLLOWER", **chance) as fault:
        with client.producer() as producer:
            for _ in range(6):
                producer.send(topic, [ONE])
    assert (fault.seen, fault.hits) == (7, 1)
    assert end_offset(broker, topic) == 6


def test_a_fault_that_is_over_with_its_time(broker, client, topic):
    with broker.faults.add(api="Produce", topic=topic, error="NOT_LEADER_OR_FOLLOWER", for_ms=500) as fault:
        client.write(topic, ONE)
        assert fault.over
    assert fault.hits >= 1
    assert end_offset(broker, topic) == 1


def test_a_coordinator_that_is_not_found_at_first(broker, client, topic, group):
    client.write(topic, ONE)
    with broker.faults.add(
        api="FindCoordinator", group=group.name, error="COORDINATOR_NOT_AVAILABLE", times=2
    ) as fault:
        group.join(client, topic)
        group.poll_until_shared({(topic, 0)})
    assert fault.hits == 2


def test_a_member_that_is_told_of_a_rebalance_joins_again(broker, client, topic, group):
    member = group.join(client, topic)
    group.poll_until_shared({(topic, 0)})
    mark = broker.journal.mark()
    with broker.faults.add(api="Heartbeat", group=group.name, error="REBALANCE_IN_PROGRESS", times=1):
        group.poll_until(
            lambda: broker.journal.count("SyncGroup", group=group.name, error="none", since=mark) > 0, "another join"
        )
    joined = broker.journal.expect("JoinGroup", group=group.name, error="none", since=mark)
    before, after = joined["changes"][-1]["generation"]
    assert after == before + 1
    group.poll_until_shared({(topic, 0)})
    assert member.assignment() == {(topic, 0)}


def test_an_error_in_a_fault_is_reported_with_the_field(broker):
    with pytest.raises(ControlFailed, match="error: 'NOT_LEDER' is not one of Kafka's error codes") as caught:
        broker.faults.add(api="Produce", error="NOT_LEDER")
    assert caught.value.field == "error"
    assert list(broker.faults) == []
