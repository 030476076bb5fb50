"""Each error is the one that Apache Kafka 4.3 gives."""

from barnabas.broker.controller.delete_topics import TopicReference, delete_topics
from barnabas.broker.controller.results import Decision, TopicResult
from barnabas.protocol.errors import ErrorCode
from tests.broker.controller.cluster import Cluster, topic_id_of

ID = topic_id_of("t")
UNKNOWN = b"\x07" * 16


def decide(cluster: Cluster, *references: TopicReference) -> Decision[TopicResult]:
    return delete_topics(cluster.view, references, delete_topic_enable=True)


def outcome(*references: TopicReference) -> list[tuple[str | None, bytes, ErrorCode]]:
    decision = decide(Cluster(topics={"t": [(1,)], "u": [(1,)]}), *references)
    assert bool(decision.operations) == any(result.error_code is ErrorCode.NONE for result in decision.results)
    return [(result.name, result.topic_id, result.error_code) for result in decision.results]


def by_name(name: str) -> TopicReference:
    return TopicReference(name)


def by_id(topic_id: bytes) -> TopicReference:
    return TopicReference(None, topic_id)


def test_by_name_and_by_id() -> None:
    cluster = Cluster(topics={"t": [(1,), (1,)], "u": [(1,)], "v": [(1,)]})
    decision = decide(cluster, by_name("u"), by_id(ID))
    assert [(result.name, result.topic_id) for result in decision.results] == [("u", topic_id_of("u")), ("t", ID)]
    cluster.carry_out(decision)
    assert list(cluster.view.topics) == ["v"]
    assert cluster.registry.children("/brokers/topics") == ["v"]
    assert cluster.registry.children("/config/topics") == ["v"]


def test_topics_that_do_not_exist() -> None:
    assert outcome(by_name("nosuch")) == [("nosuch", bytes(16), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert outcome(by_name("")) == [("", bytes(16), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert outcome(by_id(UNKNOWN)) == [(None, UNKNOWN, ErrorCode.UNKNOWN_TOPIC_ID)]


def test_neither_or_both() -> None:
    assert outcome(TopicReference()) == [(None, bytes(16), ErrorCode.INVALID_REQUEST)]
    assert outcome(TopicReference(), TopicReference()) == [(None, bytes(16), ErrorCode.INVALID_REQUEST)] * 2
    assert outcome(TopicReference("t", ID)) == [("t", ID, ErrorCode.INVALID_REQUEST)]


def test_a_topic_that_is_named_twice() -> None:
    assert outcome(by_name("t"), by_name("t")) == [("t", bytes(16), ErrorCode.INVALID_REQUEST)]
    assert outcome(by_id(ID), by_id(ID)) == [(None, ID, ErrorCode.INVALID_REQUEST)]
    assert outcome(by_name("t"), by_id(ID)) == [("t", ID, ErrorCode.INVALID_REQUEST)]
    assert outcome(by_id(UNKNOWN), by_id(UNKNOWN)) == [(None, UNKNOWN, ErrorCode.INVALID_REQUEST)]


def test_a_missing_topic_does_not_affect_the_others() -> None:
    assert outcome(by_name("nosuch"), by_name("t")) == [
        ("nosuch", bytes(16), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", ID, ErrorCode.NONE),
    ]


def test_when_deleting_is_switched_off() -> None:
    cluster = Cluster(topics={"t": [(1,)]})
    references = [by_name("t"), by_name("nosuch"), TopicReference()]
    decision = delete_topics(cluster.view, references, delete_topic_enable=False)
    assert [result.error_code for result in decision.results] == [ErrorCode.TOPIC_DELETION_DISABLED] * 3
    assert not decision.operations
