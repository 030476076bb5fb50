"""Requests about topics and partitions, bad ones included, get the same answers from Apache Kafka and from Barnabas."""

import pytest

from barnabas.client.requests.admin import (
    alter_partition_reassignments,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    elect_leaders,
    list_partition_reassignments,
    new_topic,
)
from barnabas.client.requests.data import produce
from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import ZERO_UUID
from tests.support.admin_side_by_side import play
from tests.support.batches import batch

pytestmark = pytest.mark.java

UNKNOWN_ID = bytes(range(16))


@pytest.fixture
def brokers(administered_brokers):
    return administered_brokers


# --- CreateTopics ---

ASSIGNED = -1, -1  # the numbers of partitions and replicas of a topic that says where they are

NOT_CREATED = {
    "no topics": [],
    "an existing topic": [new_topic("one")],
    "an existing topic with settings that cannot be": [new_topic("one", configs=[("bogus", "1")])],
    "a topic twice": [new_topic("twice"), new_topic("twice")],
    "a topic three times": [new_topic("twice"), new_topic("twice", 2), new_topic("twice", 0)],
    "an existing topic twice": [new_topic("one"), new_topic("one")],
    "an empty name": [new_topic("")],
    "dots": [new_topic("."), new_topic("..")],
    "strange names": [new_topic("a b"), new_topic("a/b"), new_topic("ä"), new_topic("a\0b"), new_topic("a:b")],
    "a name that is too long": [new_topic("x" * 250)],
    "a name that is much too long": [new_topic("x" * 30_000)],
    "the name of Kafka's metadata": [new_topic("__cluster_metadata")],
    "no partitions": [new_topic("bad", 0)],
    "fewer than no partitions": [new_topic("bad", -2), new_topic("worse", -(2**31))],
    "too many partitions": [new_topic("bad", 10_001)],
    "far too many partitions": [new_topic("bad", 2**31 - 1)],
    "too many partitions together": [new_topic("bad", 6_000), new_topic("worse", 6_000)],
    "no replicas": [new_topic("bad", 1, 0)],
    "fewer than no replicas": [new_topic("bad", 1, -2)],
    "too many replicas": [new_topic("bad", 1, 2), new_topic("worse", 1, 2**15 - 1)],
    "neither partitions nor replicas": [new_topic("bad", 0, 0)],
    "an assignment and a number of partitions": [new_topic("bad", 1, -1, assignments=[(0, [1])])],
    "an assignment and a number of replicas": [new_topic("bad", -1, 1, assignments=[(0, [1])])],
    "an assignment and both": [new_topic("bad", 1, 1, assignments=[(0, [1])])],
    "a partition assigned twice": [new_topic("bad", *ASSIGNED, assignments=[(0, [1]), (0, [1])])],
    "partitions from 1": [new_topic("bad", *ASSIGNED, assignments=[(1, [1])])],
    "partitions with a gap": [new_topic("bad", *ASSIGNED, assignments=[(0, [1]), (2, [1])])],
    "a negative partition": [new_topic("bad", *ASSIGNED, assignments=[(-1, [1])])],
    "a partition without replicas": [new_topic("bad", *ASSIGNED, assignments=[(0, [])])],
    "an unknown broker": [new_topic("bad", *ASSIGNED, assignments=[(0, [9])])],
    "a broker twice": [new_topic("bad", *ASSIGNED, assignments=[(0, [1, 1])])],
    "partitions with different numbers of replicas": [new_topic("bad", *ASSIGNED, assignments=[(0, [1]), (1, [1, 2])])],
    "an unknown setting": [new_topic("bad", configs=[("bogus", "1")])],
    "a setting of a broker": [new_topic("bad", configs=[("log.retention.ms", "1")])],
    "a setting without a name": [new_topic("bad", configs=[("", "1")])],
    "a setting without a value": [new_topic("bad", configs=[("retention.ms", None)])],
    "a setting that is not a number": [new_topic("bad", configs=[("retention.ms", "soon")])],
    "a setting that is empty": [new_topic("bad", configs=[("retention.ms", "")])],
    "a setting that is too small": [new_topic("bad", configs=[("segment.bytes", "10")])],
    "a setting that is too large": [new_topic("bad", configs=[("retention.ms", "9223372036854775808")])],
    "a setting that is none of its words": [new_topic("bad", configs=[("compression.type", "brotli")])],
    "settings that contradict one another": [
        new_topic("bad", configs=[("min.compaction.lag.ms", "2"), ("max.compaction.lag.ms", "1")])
    ],
    "tiered storage": [new_topic("bad", configs=[("remote.storage.enable", "true")])],
    "one of several that cannot be": [new_topic("a b"), new_topic("one"), new_topic("bad", 0)],
}


@pytest.mark.parametrize("case", NOT_CREATED)
def test_topics_that_are_not_created(brokers, case):
    for version in range(2, 8):
        play(brokers, ApiKey.CREATE_TOPICS, version, create_topics(*NOT_CREATED[case]))
        play(brokers, ApiKey.CREATE_TOPICS, version, create_topics(*NOT_CREATED[case], validate_only=True))


@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**31)])
def test_no_time_is_left_for_a_topic(brokers, timeout_ms):
    for version in range(2, 8):
        play(
            brokers,
            ApiKey.CREATE_TOPICS,
            version,
            create_topics(new_topic("late"), new_topic("a b"), timeout_ms=timeout_ms),
        )


CREATED = {
    "numbers": (3, 1, (), []),
    "default numbers": (-1, -1, (), []),
    "an assignment": (*ASSIGNED, [(0, [1]), (1, [1])], []),
    "an assignment in another order": (*ASSIGNED, [(1, [1]), (0, [1])], []),
    "settings": (1, 1, (), [("retention.ms", "1000"), ("cleanup.policy", "compact,delete")]),
    "a setting twice": (1, 1, (), [("retention.ms", "1000"), ("retention.ms", "2000")]),
    "a value with blanks around it": (1, 1, (), [("retention.ms", " 1000 ")]),
    "an empty list": (1, 1, (), [("cleanup.policy", "")]),
    "more in-sync replicas than replicas": (1, 1, (), [("min.insync.replicas", "2")]),
}


@pytest.mark.parametrize("case", CREATED)
def test_topics_that_are_created(brokers, case):
    partitions, replicas, assignments, configs = CREATED[case]
    for version in range(2, 8):
        name = f"created-{case}-{version}".replace(" ", "-")
        topic = new_topic(name, partitions, replicas, assignments=assignments, configs=configs)
        play(
            brokers,
            ApiKey.CREATE_TOPICS,
            version,
            create_topics(topic, validate_only=True),
            create_topics(topic),
            create_topics(topic),
        )


def test_topics_that_differ_only_in_a_dot(brokers):
    play(
        brokers,
        ApiKey.CREATE_TOPICS,
        7,
        create_topics(new_topic("a.b")),
        create_topics(new_topic("a_b")),
        create_topics(new_topic("a.b")),
    )
    play(brokers, ApiKey.CREATE_TOPICS, 7, create_topics(new_topic("c.d"), new_topic("c_d")))


def test_some_of_several_topics_are_created(brokers):
    wanted = [new_topic("good"), new_topic("a b"), new_topic("better"), new_topic("worse", 0)]
    play(brokers, ApiKey.CREATE_TOPICS, 7, create_topics(*wanted), create_topics(*wanted))


def test_an_internal_topic_may_be_created(brokers):
    play(brokers, ApiKey.CREATE_TOPICS, 7, create_topics(new_topic("__transaction_state", 2)))


# --- DeleteTopics ---


def test_topics_are_deleted_by_name(brokers):
    for version in range(1, 7):
        for side in (brokers.kafka, brokers.barnabas):
            side.create_topic(f"doomed-{version}")
        request = delete_topics(f"doomed-{version}", "unknown", "a b", "")
        play(brokers, ApiKey.DELETE_TOPICS, version, request, request)


def test_topics_are_deleted_by_id(brokers):
    for side in (brokers.kafka, brokers.barnabas):
        side.create_topic("doomed-1-by-id")
        side.create_topic("doomed-2-by-id")

    def request(side):
        return delete_topics(side.name("doomed-1-by-id", by_id=True), UNKNOWN_ID, "doomed-2-by-id", ZERO_UUID)

    play(brokers, ApiKey.DELETE_TOPICS, 6, request, request)


NOT_DELETED = {
    "no topics": lambda side: delete_topics(),
    "a topic twice": lambda side: delete_topics("one", "one"),
    "an unknown topic twice": lambda side: delete_topics("unknown", "unknown"),
    "Kafka's metadata": lambda side: delete_topics("__cluster_metadata"),
}
NOT_DELETED_BY_ID = {
    "an id twice": lambda side: delete_topics(side.name("one", by_id=True), side.name("one", by_id=True)),
    "an unknown id twice": lambda side: delete_topics(UNKNOWN_ID, UNKNOWN_ID),
    "a name and its id": lambda side: delete_topics("one", side.name("one", by_id=True)),
    "a name with its id": lambda side: delete_topics(("one", side.name("one", by_id=True))),
    "neither a name nor an id": lambda side: delete_topics(None),
    "neither a name nor an id, twice": lambda side: delete_topics(None, None),
    "the id of Kafka's metadata": lambda side: delete_topics(bytes(15) + b"\1"),
}


@pytest.mark.parametrize("case", NOT_DELETED)
def test_topics_that_are_not_deleted(brokers, case):
    for version in range(1, 7):
        play(brokers, ApiKey.DELETE_TOPICS, version, NOT_DELETED[case])


@pytest.mark.parametrize("case", NOT_DELETED_BY_ID)
def test_topics_that_are_not_deleted_by_id(brokers, case):
    play(brokers, ApiKey.DELETE_TOPICS, 6, NOT_DELETED_BY_ID[case])


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_no_time_is_left_to_delete_a_topic(brokers, timeout_ms):
    for version in range(1, 7):
        play(brokers, ApiKey.DELETE_TOPICS, version, delete_topics("one", "unknown", timeout_ms=timeout_ms))


# --- CreatePartitions ---

NOT_GROWN = {
    "no topics": [],
    "as many as there are": [("three", 3, None)],
    "fewer": [("three", 2, None)],
    "none": [("three", 0, None)],
    "a negative number": [("three", -1, None), ("one", -(2**31), None)],
    "a topic twice": [("three", 4, None), ("three", 5, None)],
    "unknown topics": [("unknown", 4, None), ("a b", 4, None), ("", 4, None)],
    "no assignments": [("three", 4, [])],
    "too few assignments": [("three", 5, [[1]])],
    "too many assignments": [("three", 4, [[1], [1]])],
    "an assignment without replicas": [("three", 4, [[]])],
    "an unknown broker": [("three", 4, [[9]])],
    "a broker twice": [("three", 4, [[1, 1]])],
    "another number of replicas": [("three", 4, [[1, 2]])],
    "assignments for as many as there are": [("three", 3, [])],
}


@pytest.mark.parametrize("case", NOT_GROWN)
def test_partitions_that_are_not_created(brokers, case):
    for version in range(4):
        play(brokers, ApiKey.CREATE_PARTITIONS, version, create_partitions(*NOT_GROWN[case]))


@pytest.mark.parametrize("assignments", [None, [[1], [1]]])
def test_partitions_that_are_created(brokers, assignments):
    for version in range(4):
        name = f"grown-{version}-{assignments is None}"
        for side in (brokers.kafka, brokers.barnabas):
            side.create_topic(name)
        request = create_partitions((name, 3, assignments))
        play(
            brokers,
            ApiKey.CREATE_PARTITIONS,
            version,
            create_partitions((name, 3, assignments), validate_only=True),
            request,
        )
        play(brokers, ApiKey.CREATE_PARTITIONS, version, request)


def test_no_time_is_left_for_partitions(brokers):
    for version in range(4):
        play(brokers, ApiKey.CREATE_PARTITIONS, version, create_partitions(("one", 2, None), timeout_ms=0))


# --- DeleteRecords ---


def test_records_are_deleted(brokers):
    def scenario(side):
        for version in range(3):
            name = f"records-{version}"
            side.create_topic(name, 2)
            side.ask(ApiKey.PRODUCE, produce((name, 0, batch(b"1", b"2", b"3", b"4", b"5"))), 9)
            for offset in (0, 2, 1, 6, -2, -(2**63), 2**63 - 1, -1, 5, 3):
                yield side.ask(ApiKey.DELETE_RECORDS, delete_records((name, 0, offset)), version)
            yield side.ask(ApiKey.DELETE_RECORDS, delete_records((name, 0, 5), (name, 1, 0), (name, 1, 1)), version)
            yield side.ask(ApiKey.DELETE_RECORDS, delete_records((name, 0, -1), timeout_ms=0), version)

    brokers.play(scenario)


def test_records_that_are_not_deleted(brokers):
    for version in range(3):
        play(
            brokers,
            ApiKey.DELETE_RECORDS,
            version,
            delete_records(),
            delete_records(("one", 1, 0), ("one", -1, 0), ("unknown", 0, 0), ("a b", 0, 0), ("", 0, 0)),
            delete_records(("compacted", 0, 0), ("compacted", 0, 1), ("compacted", 1, 0)),
        )


# --- the rest ---

ONE_DIRECTORY = {
    "no partitions": describe_log_dirs(),
    "some partitions": describe_log_dirs(("three", [0, 2]), ("one", [0])),
    "unknown partitions": describe_log_dirs(("one", [0, 1, -1]), ("unknown", [0])),
    "partitions twice": describe_log_dirs(("three", [0, 0, 1]), ("three", [1, 2])),
    "a topic without partitions": describe_log_dirs(("three", [])),
}


@pytest.mark.parametrize("case", ONE_DIRECTORY)
def test_the_data_directory_is_described(brokers, case):
    for version in range(1, 6):
        play(brokers, ApiKey.DESCRIBE_LOG_DIRS, version, ONE_DIRECTORY[case])


def test_sizes_are_described(brokers):
    def scenario(side):
        side.create_topic("sized", 2)
        side.ask(ApiKey.PRODUCE, produce(("sized", 1, batch(b"x" * 1000))), 9)
        for version in range(1, 6):
            yield side.ask(ApiKey.DESCRIBE_LOG_DIRS, describe_log_dirs(("sized", [0, 1])), version)

    brokers.play(scenario)


ELECTIONS = {
    "partitions that are led already": elect_leaders(("one", [0]), ("three", [0, 1, 2])),
    "unknown partitions": elect_leaders(("one", [1, -1]), ("unknown", [0]), ("a b", [0])),
    "a partition twice": elect_leaders(("one", [0, 0]), ("one", [0])),
    "a topic without partitions": elect_leaders(("one", [])),
    "no topics": elect_leaders(),
    "no time": elect_leaders(("one", [0]), timeout_ms=0),
    "no time for any": elect_leaders(every=True, timeout_ms=-1),
}
ELECTIONS_BY_TYPE = {
    "any leader": elect_leaders(("one", [0]), ("unknown", [0]), election_type=1),
    "no such type": elect_leaders(("one", [0]), ("unknown", [0]), election_type=2),
    "no such type for all": elect_leaders(every=True, election_type=-1),
    "no such type for none": elect_leaders(election_type=2),
}


@pytest.mark.parametrize("case", ELECTIONS)
def test_elections(brokers, case):
    for version in range(3):
        play(brokers, ApiKey.ELECT_LEADERS, version, ELECTIONS[case])


@pytest.mark.parametrize("case", ELECTIONS_BY_TYPE)
def test_elections_by_type(brokers, case):
    for version in range(1, 3):
        play(brokers, ApiKey.ELECT_LEADERS, version, ELECTIONS_BY_TYPE[case])


def test_elections_everywhere(brokers):
    def scenario(side):
        for version in range(3):
            answer = side.ask(ApiKey.ELECT_LEADERS, elect_leaders(every=True), version)
            results = answer.replica_election_results
            answer.replica_election_results = [result for result in results if result.topic in ("one", "three")]
            yield answer

    brokers.play(scenario)


REASSIGNMENTS = {
    "to where they are": alter_partition_reassignments(("one", 0, [1]), ("three", 2, [1])),
    "unknown partitions": alter_partition_reassignments(
        ("one", 1, [1]), ("one", -1, [1]), ("unknown", 0, [1]), ("a b", 0, [1])
    ),
    "nothing to call off": alter_partition_reassignments(("one", 0, None), ("one", 5, None), ("unknown", 0, None)),
    "to nowhere": alter_partition_reassignments(("one", 0, [])),
    "to unknown brokers": alter_partition_reassignments(("one", 0, [9]), ("three", 0, [1, 2]), ("three", 1, [-1])),
    "to one broker twice": alter_partition_reassignments(("one", 0, [1, 1])),
    "a partition twice": alter_partition_reassignments(("one", 0, [1]), ("one", 0, None), ("one", 0, [9])),
    "nothing": alter_partition_reassignments(),
    "no time": alter_partition_reassignments(("one", 0, [1]), timeout_ms=0),
}


@pytest.mark.parametrize("case", REASSIGNMENTS)
def test_reassignments(brokers, case):
    for version in range(2):
        play(brokers, ApiKey.ALTER_PARTITION_REASSIGNMENTS, version, REASSIGNMENTS[case])


def test_reassignments_that_keep_the_number_of_replicas(brokers):
    request = alter_partition_reassignments(("one", 0, [1]), ("three", 0, [1, 2]), allow_change=False)
    play(brokers, ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, request)


def test_no_partition_is_on_the_move(brokers):
    requests = (
        list_partition_reassignments(every=True),
        list_partition_reassignments(),
        list_partition_reassignments(("one", [0, 7, -1]), ("unknown", [0])),
    )
    play(brokers, ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, *requests)


def test_producers_are_described(brokers):
    play(brokers, ApiKey.DESCRIBE_PRODUCERS, 0, describe_producers())
    play(
        brokers,
        ApiKey.DESCRIBE_PRODUCERS,
        0,
        describe_producers(("one", [0, 1, -1, 0]), ("unknown", [0]), ("three", [])),
    )
    play(brokers, ApiKey.DESCRIBE_PRODUCERS, 0, describe_producers(("a b", [0]), ("", [0]), ("one", [0]), ("one", [0])))

    def scenario(side):
        side.create_topic("produced")
        for sequence, producer in ((0, 7), (0, 8), (1, 7)):
            records = batch(b"value", producer_id=producer, producer_epoch=3, base_sequence=sequence)
            side.ask(ApiKey.PRODUCE, produce(("produced", 0, records)), 9)
        answer = side.ask(ApiKey.DESCRIBE_PRODUCERS, describe_producers(("produced", [0])), 0)
        # When each producer was last active is measured by the broker's clock.
        for producer in answer.topics[0].partitions[0].active_producers:
            producer.last_timestamp = producer.last_timestamp > 0
        yield answer

    brokers.play(scenario)


PAGES = {
    "topics in order": describe_topic_partitions("three", "one"),
    "unknown topics": describe_topic_partitions("three", "unknown", "a b"),
    "an internal topic": describe_topic_partitions("__consumer_offsets"),
    "a topic twice": describe_topic_partitions("one", "one"),
    "room for one partition": describe_topic_partitions("three", "one", limit=1),
    "room for all": describe_topic_partitions("three", "one", limit=4),
    "room for all of the first topic": describe_topic_partitions("three", "one", "two", limit=1),
    "no room": describe_topic_partitions("three", "one", limit=0),
    "less than no room": describe_topic_partitions("three", "one", limit=-5),
    "all the room there is": describe_topic_partitions("three", "one", limit=2**31 - 1),
    "from a partition on": describe_topic_partitions("three", "one", cursor=("three", 1)),
    "from a partition on, with too little room": describe_topic_partitions(
        "three", "one", limit=1, cursor=("three", 1)
    ),
    "from the last partition on": describe_topic_partitions("three", "one", limit=1, cursor=("three", 2)),
    "from after the last partition on": describe_topic_partitions("three", "one", cursor=("three", 3)),
    "from far after the last partition on": describe_topic_partitions("three", "one", cursor=("three", 1_000_000)),
    "from a negative partition on": describe_topic_partitions("three", "one", cursor=("three", -1)),
    "from an unknown topic on": describe_topic_partitions("nobody", "one", limit=1, cursor=("nobody", 3)),
    "from a topic on that is not asked for": describe_topic_partitions("three", "one", cursor=("two", 0)),
    "unknown topics after the end": describe_topic_partitions("one", "unknown-1", "unknown-2", limit=1),
    "an unknown topic before the end": describe_topic_partitions("one", "nobody", limit=1),
}


@pytest.mark.parametrize("case", PAGES)
def test_pages_of_topics(brokers, case):
    play(brokers, ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, PAGES[case])


def test_pages_of_all_topics(brokers):
    def scenario(side):
        cursor = None
        seen = []
        while True:
            answer = side.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, describe_topic_partitions(limit=3, cursor=cursor), 0)
            assert 0 < sum(len(topic.partitions) for topic in answer.topics) <= 3
            seen += [(topic.name, p.partition_index) for topic in answer.topics for p in topic.partitions]
            if answer.next_cursor is None:
                break
            cursor = answer.next_cursor.topic_name, answer.next_cursor.partition_index
        assert seen == sorted(seen)
        yield [partition for partition in seen if partition[0] in ("one", "three", "compacted")]
        yield side.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, describe_topic_partitions(cursor=("zzz", 0)), 0)
        yield side.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, describe_topic_partitions(cursor=("one", -1)), 0)

    brokers.play(scenario)
