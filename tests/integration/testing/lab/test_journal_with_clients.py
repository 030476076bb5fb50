"""The journal, queried by a test about stock clients."""

import json

import pytest

from barnabas import ControlFailed
from tests.integration.clients.interface import ProducerRecord


def test_a_commit_is_expected_and_comes(broker, client, topic, group):
    client.write(topic, ProducerRecord(b"one"))
    mark = broker.journal.mark()
    member = group.join(client, topic)
    group.poll_until_shared({(topic, 0)})
    joined = broker.journal.expect("JoinGroup", group=group.name, error="none", since=mark)
    assert [change["state"][1] for change in joined["changes"] if "group" in change][-1] == "CompletingRebalance"
    group.leave(member)
    left = broker.journal.expect("LeaveGroup", group=group.name, since=mark, within=30)
    assert left["changes"][0]["members"] == [1, 0]


def test_what_was_seen_instead_is_reported(broker, client_named, topic):
    mark = broker.journal.mark()
    client_named("kafka-python").write(topic, ProducerRecord(b"one"))
    with pytest.raises(AssertionError) as caught:
        broker.journal.expect("OffsetCommit", group="nobody", since=mark, within=0.05)
    expected = f"expected OffsetCommit with group='nobody', since={mark} within 0.05 s; there was none."
    assert str(caught.value).startswith(expected)
    assert f"; {topic}-0; answered;" in str(caught.value)
    with pytest.raises(AssertionError, match="Seen instead \\(the last 1 of that kind"):
        broker.journal.expect("Produce", topic=topic, count=2, since=mark, within=0.05)


def test_none_and_count(broker, client_named, topic):
    broker.journal.none("Produce", topic=topic)
    client_named("confluent-kafka").write(topic, ProducerRecord(b"one"))
    assert broker.journal.count("Produce", topic=topic) == 1
    with pytest.raises(AssertionError, match="expected no Produce with topic="):
        broker.journal.none("Produce", topic=topic)


def test_a_journal_that_would_not_know_asserts_nothing(broker, client_named, topic):
    """An assertion that passes because nothing was recorded is worse than none."""
    broker.journal.stop()
    try:
        client_named("kafka-python").write(topic, ProducerRecord(b"one"))
        for ask in (broker.journal.none, broker.journal.count, broker.journal.expect):
            with pytest.raises(ControlFailed, match="the journal is off"):
                ask("Produce", topic=topic)
    finally:
        broker.journal.start()


def test_it_can_be_followed_and_exported(broker, client_named, topic, tmp_path):
    with client_named("kafka-python").producer() as producer:
        producer.send(topic, [ProducerRecord(b"one")])
        following = broker.journal.follow("Produce", topic=topic, timeout=30)
        assert next(following)["partitions"] == [f"{topic}-0"]
        producer.send(topic, [ProducerRecord(b"two")])
        assert next(following)["changes"][0]["high_watermark"] == [1, 2]
        following.close()
    broker.journal.export(str(tmp_path / "journal.jsonl"))
    lines = (tmp_path / "journal.jsonl").read_text().splitlines()
    assert sum(json.loads(line)["partitions"] == [f"{topic}-0"] for line in lines) >= 2
