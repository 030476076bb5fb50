"""Which topics can be created, and what the tree contains then. Each error is the one that Apache Kafka 4.3 gives."""

from collections.abc import Mapping, Sequence

import pytest

from barnabas.broker.config.errors import InvalidConfigError
from barnabas.broker.controller.create_topics import STATES_AT_ONCE, NewTopic, TopicSettings, create_topics
from barnabas.broker.controller.failover import first_states
from barnabas.broker.controller.images import PartitionImage
from barnabas.broker.controller.results import Decision, TopicResult
from barnabas.protocol.errors import ErrorCode
from tests.broker.controller.cluster import Cluster, codes

TOPIC_ID = b"0123456789abcdef"


def validate(configs: Mapping[str, str | None]) -> dict[str, str]:
    if "nope" in configs:
        raise InvalidConfigError("no setting is called nope")
    return {name: value or "" for name, value in configs.items()}


SETTINGS = TopicSettings(
    num_partitions=4,
    replication_factor=1,
    validate_configs=validate,
    new_topic_id=lambda: TOPIC_ID,
    pick=lambda below: 0,
)


def decide(cluster: Cluster, *topics: NewTopic) -> Decision[TopicResult]:
    return create_topics(cluster.view, topics, SETTINGS)


def assigned(*assignments: tuple[int, Sequence[int]]) -> NewTopic:
    return NewTopic("t", assignments=assignments)


def test_a_topic_is_created() -> None:
    cluster = Cluster(brokers=(1, 2, 3))
    decision = decide(cluster, NewTopic("t", 3, 2, configs={"retention.ms": "5"}))
    (result,) = decision.results
    assert result == TopicResult(
        "t", TOPIC_ID, ErrorCode.NONE, None, num_partitions=3, replication_factor=2, configs={"retention.ms": "5"}
    )
    assert not cluster.view.topics
    cluster.carry_out(decision)
    topic = cluster.view.topics["t"]
    assert topic.topic_id == TOPIC_ID
    assert topic.configs == {"retention.ms": "5"}
    assert topic.partitions == (
        PartitionImage(0, (1, 2), 1, 0, (1, 2), partition_epoch=0),
        PartitionImage(1, (2, 3), 2, 0, (2, 3), partition_epoch=0),
        PartitionImage(2, (3, 1), 3, 0, (3, 1), partition_epoch=0),
    )


def test_a_topic_with_too_many_partitions_for_one_transaction_gets_its_leaders_afterwards() -> None:
    cluster = Cluster(brokers=(1, 2))
    cluster.carry_out(decide(cluster, NewTopic("t", STATES_AT_ONCE + 2, 2), NewTopic("u", 1, 1)))
    leaderless = [partition for partition in cluster.view.topics["t"].partitions if partition.partition_epoch < 0]
    assert [partition.partition_index for partition in leaderless] == [STATES_AT_ONCE, STATES_AT_ONCE + 1]
    assert cluster.view.topics["u"].partitions[0].partition_epoch < 0
    for topic in list(cluster.view.topics.values()):
        cluster.registry.apply(list(first_states(cluster.view, topic, {1, 2})))
    *_, last = cluster.view.topics["t"].partitions
    assert (last.leader_id, set(last.isr_nodes), last.partition_epoch) == (last.replica_nodes[0], {1, 2}, 0)
    assert cluster.view.topics["u"].partitions[0].partition_epoch == 0


def test_minus_one_stands_for_the_defaults() -> None:
    (result,) = decide(Cluster(), NewTopic("t", -1, -1)).results
    assert (result.num_partitions, result.replication_factor) == (4, 1)


def test_a_manual_assignment() -> None:
    cluster = Cluster(brokers=(1, 2, 3))
    decision = decide(cluster, assigned((1, [3, 1]), (0, [2, 3])))
    (result,) = decision.results
    assert (result.num_partitions, result.replication_factor) == (2, 2)
    cluster.carry_out(decision)
    assert [partition.replica_nodes for partition in cluster.view.topics["t"].partitions] == [(2, 3), (3, 1)]
    assert [partition.leader_id for partition in cluster.view.topics["t"].partitions] == [2, 3]


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (NewTopic("", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("a b", 0, 0), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("x" * 250, 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("a_b", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),  # a.b exists
        (NewTopic("__cluster_metadata", 1, 1), ErrorCode.INVALID_REQUEST),
        (NewTopic("old", 1, 1), ErrorCode.TOPIC_ALREADY_EXISTS),
        (NewTopic("old", 0, 7, configs={"nope": "1"}), ErrorCode.TOPIC_ALREADY_EXISTS),
        (NewTopic("a.b", 1, 1), ErrorCode.TOPIC_ALREADY_EXISTS),
        (NewTopic("t", 0, 0, configs={"nope": "1"}), ErrorCode.INVALID_CONFIG),
        (NewTopic("t", 0, 1), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("t", -2, 9), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("t", 0, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", 1, 4), ErrorCode.INVALID_REPLICATION_FACTOR),  # there are 3 brokers
        (NewTopic("t", 10_001, 1), ErrorCode.POLICY_VIOLATION),
        (NewTopic("t", 1, -1, [(0, [1])]), ErrorCode.INVALID_REQUEST),
        (NewTopic("t", -1, 1, [(0, [1])]), ErrorCode.INVALID_REQUEST),
        (assigned((1, [1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [1]), (2, [1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned((-1, [1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [1]), (0, [1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [7])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [1, 1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [1]), (1, [1, 2])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_what_cannot_be_created(topic: NewTopic, code: ErrorCode) -> None:
    decision = decide(Cluster(brokers=(1, 2, 3), topics={"old": [(1,)], "a.b": [(1,)]}), topic)
    (result,) = decision.results
    assert (result.name, result.error_code) == (topic.name, code)
    assert result.error_message
    assert (result.topic_id, result.num_partitions, result.replication_factor) == (bytes(16), -1, -1)
    assert not decision.operations


def test_the_reason_that_the_settings_give_is_passed_on() -> None:
    (result,) = decide(Cluster(), NewTopic("t", configs={"nope": "1"})).results
    assert result.error_message == "no setting is called nope"


def test_a_bad_topic_does_not_keep_the_others_from_being_created() -> None:
    cluster = Cluster()
    decision = decide(cluster, NewTopic("a"), NewTopic("b", 0), NewTopic("c"))
    assert codes(decision) == [ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS, ErrorCode.NONE]


def test_a_name_that_occurs_twice() -> None:
    decision = decide(Cluster(), NewTopic("a"), NewTopic("b"), NewTopic("a", 9))
    assert [(result.name, result.error_code) for result in decision.results] == [
        ("b", ErrorCode.NONE),
        ("a", ErrorCode.INVALID_REQUEST),
    ]


def test_too_many_partitions_in_one_request() -> None:
    cluster = Cluster()
    assert codes(decide(cluster, NewTopic("a", 6000), NewTopic("b", 4000))) == [ErrorCode.NONE] * 2
    assert codes(decide(cluster, NewTopic("a", 9997), NewTopic("b"))) == [ErrorCode.POLICY_VIOLATION] * 2
    assert codes(decide(cluster, NewTopic("a", 10_000), assigned((0, [1])))) == [ErrorCode.POLICY_VIOLATION] * 2
    assert codes(decide(cluster, NewTopic("a", 10_001), NewTopic("b", -5))) == [ErrorCode.POLICY_VIOLATION] * 2
    assert codes(decide(cluster, NewTopic("a", 10_001), NewTopic("a", 1))) == [ErrorCode.INVALID_REQUEST]


def test_no_broker_at_all() -> None:
    assert codes(decide(Cluster(brokers=()), NewTopic("t"))) == [ErrorCode.INVALID_REPLICATION_FACTOR]


def test_an_empty_request() -> None:
    assert decide(Cluster()) == Decision([], [])
