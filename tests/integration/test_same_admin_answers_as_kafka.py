"""Requests about topics and settings, sent to Apache Kafka and to Barnabas, get the same answers, bad ones included.

Both have the same topics: `one`, `three` (partitions), `compacted`, and `configured`, which has a setting of its own.
"""

import pytest

from broker.config.names import SETTINGS
from protocol.api import ApiKey
from protocol.schema import ZERO_UUID, Struct
from tests.support.admin_requests import (
    APPEND,
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    SET,
    SUBTRACT,
    TOPIC,
    alter,
    create,
    delete,
    delete_before,
    delete_both,
    describe,
    elect,
    grow,
    log_dirs,
    new_topic,
    page,
    producers,
    reassign,
    reassignments,
    replace,
    resources,
)
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.requests import batch, produce
from tests.support.side_by_side import Side, SideBySide

pytestmark = pytest.mark.java

BROKER_SETTINGS = {
    "node.id": "1",
    "auto.create.topics.enable": "false",
    "num.partitions": "3",
    "log.retention.hours": "24",
    "log.segment.bytes": "2097152",
}
UNKNOWN_ID = bytes(range(16))

# With its "eligible leader replicas", which Barnabas does not have, Kafka gives every cluster this setting.
SET_BY_KAFKA = "min.insync.replicas"


# Settings of tiered storage, which Barnabas does not have either.
TIERED = ("log.local.retention.ms", "log.local.retention.bytes")


class AdminSide(Side):
    """Answers to administrators name more that is up to each broker."""

    def comparable(self, value):
        if isinstance(value, Struct):
            fields = {name: getattr(value, name) for name in type(value).__slots__}
            compared = super().comparable(value)
            if "topic_id" in fields:
                compared["topic_id"] = "none" if value.topic_id == ZERO_UUID else "an id"
            for name in fields.keys() & {"total_bytes", "usable_bytes"}:
                compared[name] = "so many" if fields[name] > 0 else fields[name]
            if "log_dir" in fields:
                compared["log_dir"] = "a folder"
            if "documentation" in fields:
                compared["documentation"] = bool(fields["documentation"])
            if "synonyms" in fields:
                compared["synonyms"] = [synonym for synonym in compared["synonyms"] if synonym["name"] not in TIERED]
            return compared
        if isinstance(value, list):
            return super().comparable([item for item in value if getattr(item, "name", "") != SET_BY_KAFKA])
        return super().comparable(value)


@pytest.fixture(scope="module")
def brokers(tmp_path_factory):
    data = tmp_path_factory.mktemp("data")
    with ApacheKafka(BROKER_SETTINGS) as kafka, BrokerProcess(data, settings=BROKER_SETTINGS) as barnabas:
        sides = SideBySide(AdminSide(kafka.port), AdminSide(barnabas.port))
        for side in (sides.kafka, sides.barnabas):
            side.create_topic("one")
            side.create_topic("three", 3)
            side.create_topic("compacted", configs={"cleanup.policy": "compact"})
            side.create_topic("configured", configs={"retention.ms": "100000"})
        yield sides
        sides.kafka.close()
        sides.barnabas.close()


def play(brokers, key, version, *requests):
    """Send the same requests to both. A request may be a function of the side that it is sent to."""
    brokers.play(lambda side: (side.ask(key, r(side) if callable(r) else r, version) for r in requests))


def settled(side, resource_type, name, setting, value):
    """Wait until an alteration can be seen, which in Apache Kafka may be after it was answered."""
    while True:
        (result,) = side.ask(ApiKey.DESCRIBE_CONFIGS, describe((resource_type, name, [setting])), 4).results
        if [entry.value for entry in result.configs] == [value]:
            return


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
        play(brokers, ApiKey.CREATE_TOPICS, version, create(*NOT_CREATED[case]))
        play(brokers, ApiKey.CREATE_TOPICS, version, create(*NOT_CREATED[case], validate_only=True))


@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**31)])
def test_a_topic_that_there_is_no_time_for(brokers, timeout_ms):
    for version in range(2, 8):
        play(brokers, ApiKey.CREATE_TOPICS, version, create(new_topic("late"), new_topic("a b"), timeout_ms=timeout_ms))


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
        play(brokers, ApiKey.CREATE_TOPICS, version, create(topic, validate_only=True), create(topic), create(topic))


def test_topics_that_differ_only_in_a_dot(brokers):
    play(brokers, ApiKey.CREATE_TOPICS, 7, create(new_topic("a.b")), create(new_topic("a_b")), create(new_topic("a.b")))
    play(brokers, ApiKey.CREATE_TOPICS, 7, create(new_topic("c.d"), new_topic("c_d")))


def test_some_of_several_topics_are_created(brokers):
    wanted = [new_topic("good"), new_topic("a b"), new_topic("better"), new_topic("worse", 0)]
    play(brokers, ApiKey.CREATE_TOPICS, 7, create(*wanted), create(*wanted))


def test_an_internal_topic_may_be_created(brokers):
    play(brokers, ApiKey.CREATE_TOPICS, 7, create(new_topic("__transaction_state", 2)))


# --- DeleteTopics ---


def test_topics_are_deleted_by_name(brokers):
    for version in range(1, 7):
        for side in (brokers.kafka, brokers.barnabas):
            side.create_topic(f"doomed-{version}")
        request = delete(f"doomed-{version}", "unknown", "a b", "")
        play(brokers, ApiKey.DELETE_TOPICS, version, request, request)


def test_topics_are_deleted_by_id(brokers):
    for side in (brokers.kafka, brokers.barnabas):
        side.create_topic("doomed-1-by-id")
        side.create_topic("doomed-2-by-id")

    def request(side):
        return delete(side.name("doomed-1-by-id", by_id=True), UNKNOWN_ID, "doomed-2-by-id", ZERO_UUID)

    play(brokers, ApiKey.DELETE_TOPICS, 6, request, request)


NOT_DELETED = {
    "no topics": lambda side: delete(),
    "a topic twice": lambda side: delete("one", "one"),
    "an unknown topic twice": lambda side: delete("unknown", "unknown"),
    "Kafka's metadata": lambda side: delete("__cluster_metadata"),
}
NOT_DELETED_BY_ID = {
    "an id twice": lambda side: delete(side.name("one", by_id=True), side.name("one", by_id=True)),
    "an unknown id twice": lambda side: delete(UNKNOWN_ID, UNKNOWN_ID),
    "a name and its id": lambda side: delete("one", side.name("one", by_id=True)),
    "a name with its id": lambda side: delete_both(("one", side.name("one", by_id=True))),
    "neither a name nor an id": lambda side: delete(None),
    "neither a name nor an id, twice": lambda side: delete(None, None),
    "the id of Kafka's metadata": lambda side: delete(bytes(15) + b"\1"),
}


@pytest.mark.parametrize("case", NOT_DELETED)
def test_topics_that_are_not_deleted(brokers, case):
    for version in range(1, 7):
        play(brokers, ApiKey.DELETE_TOPICS, version, NOT_DELETED[case])


@pytest.mark.parametrize("case", NOT_DELETED_BY_ID)
def test_topics_that_are_not_deleted_by_id(brokers, case):
    play(brokers, ApiKey.DELETE_TOPICS, 6, NOT_DELETED_BY_ID[case])


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_a_topic_that_there_is_no_time_to_delete(brokers, timeout_ms):
    for version in range(1, 7):
        play(brokers, ApiKey.DELETE_TOPICS, version, delete("one", "unknown", timeout_ms=timeout_ms))


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
        play(brokers, ApiKey.CREATE_PARTITIONS, version, grow(*NOT_GROWN[case]))


@pytest.mark.parametrize("assignments", [None, [[1], [1]]])
def test_partitions_that_are_created(brokers, assignments):
    for version in range(4):
        name = f"grown-{version}-{assignments is None}"
        for side in (brokers.kafka, brokers.barnabas):
            side.create_topic(name)
        request = grow((name, 3, assignments))
        play(brokers, ApiKey.CREATE_PARTITIONS, version, grow((name, 3, assignments), validate_only=True), request)
        play(brokers, ApiKey.CREATE_PARTITIONS, version, request)


def test_partitions_that_there_is_no_time_for(brokers):
    for version in range(4):
        play(brokers, ApiKey.CREATE_PARTITIONS, version, grow(("one", 2, None), timeout_ms=0))


# --- DeleteRecords ---


def test_records_are_deleted(brokers):
    def scenario(side):
        for version in range(3):
            name = f"records-{version}"
            side.create_topic(name, 2)
            side.ask(ApiKey.PRODUCE, produce((name, 0, batch(b"1", b"2", b"3", b"4", b"5"))), 9)
            for offset in (0, 2, 1, 6, -2, -(2**63), 2**63 - 1, -1, 5, 3):
                yield side.ask(ApiKey.DELETE_RECORDS, delete_before((name, 0, offset)), version)
            yield side.ask(ApiKey.DELETE_RECORDS, delete_before((name, 0, 5), (name, 1, 0), (name, 1, 1)), version)
            yield side.ask(ApiKey.DELETE_RECORDS, delete_before((name, 0, -1), timeout_ms=0), version)

    brokers.play(scenario)


def test_records_that_are_not_deleted(brokers):
    for version in range(3):
        play(
            brokers,
            ApiKey.DELETE_RECORDS,
            version,
            delete_before(),
            delete_before(("one", 1, 0), ("one", -1, 0), ("unknown", 0, 0), ("a b", 0, 0), ("", 0, 0)),
            delete_before(("compacted", 0, 0), ("compacted", 0, 1), ("compacted", 1, 0)),
        )


# --- settings ---

RESOURCES = [
    *((TOPIC, name) for name in ("one", "configured", "unknown", "", "a b", "x" * 250)),
    *((BROKER, name) for name in ("1", "01", "2", "-1", "x", "1.0")),
    *((BROKER_LOGGER, name) for name in ("", "2", "x")),
    *((CLIENT_METRICS, name) for name in ("", "metrics")),
    *((GROUP, name) for name in ("",)),
    *((number, "x") for number in (0, 1, 3, 64, -1, 127)),
]
# Kafka has hundreds of settings more; these are some of all kinds.
SOME_SETTINGS = [
    *("retention.ms", "cleanup.policy", "compression.type", "min.cleanable.dirty.ratio", "preallocate", "flush.ms"),
    *("log.retention.ms", "log.retention.hours", "log.segment.bytes", "num.partitions", "ssl.keystore.password"),
    *("message.max.bytes", "log.cleaner.threads", "bogus", "interval.ms"),
]


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: f"{resource[0]} {resource[1][:10]}")
def test_settings_are_described(brokers, resource):
    for version in range(1, 5):
        play(
            brokers,
            ApiKey.DESCRIBE_CONFIGS,
            version,
            describe((*resource, SOME_SETTINGS)),
            describe((*resource, SOME_SETTINGS), synonyms=True, documentation=version >= 3),
        )


def test_all_settings_of_topics_are_described(brokers):
    for version in range(1, 5):
        for request in (
            describe((TOPIC, "configured")),
            describe((TOPIC, "one", []), (TOPIC, "one"), synonyms=True),
            describe((TOPIC, "one", ["bogus"]), (TOPIC, "compacted"), synonyms=True, documentation=version >= 3),
        ):
            play(brokers, ApiKey.DESCRIBE_CONFIGS, version, request)


def test_every_setting_of_a_broker_is_described_as_kafka_describes_it(brokers):
    """All that Barnabas knows, apart from values that are its own."""
    own = {name for name, setting in SETTINGS.items() if setting.unlike_kafka}
    own |= {"listeners", "advertised.listeners", "log.dir", "log.dirs", "node.id", "broker.id", "process.roles"}
    own |= {"controller.listener.names", "listener.security.protocol.map", SET_BY_KAFKA}
    # In Kafka, these are not the broker's but its authorizer's.
    own |= {"super.users", "allow.everyone.if.no.acl.found"}
    names = [name for name in SETTINGS if name not in own]

    def scenario(side):
        (result,) = side.ask(ApiKey.DESCRIBE_CONFIGS, describe((BROKER, "1", names), synonyms=True), 4).results
        yield from sorted(result.configs, key=lambda entry: entry.name)

    brokers.play(scenario)


ALTERATIONS = {
    "an unknown setting": [("bogus", "1")],
    "a setting without a name": [("", "1")],
    "a setting without a value": [("retention.ms", None)],
    "a setting twice": [("retention.ms", "1"), ("retention.ms", "2")],
    "a setting that is not a number": [("retention.ms", "soon")],
    "a setting that is too small": [("segment.bytes", "1")],
    "one of two that cannot be": [("retention.ms", "1"), ("segment.bytes", "1")],
    "settings that contradict one another": [("min.compaction.lag.ms", "2"), ("max.compaction.lag.ms", "1")],
    "nothing": [],
    "something that can be": [("retention.ms", "1000")],
}
ALTERED_RESOURCES = [
    *((TOPIC, name) for name in ("one", "unknown", "", "a b")),
    *((BROKER, name) for name in ("2", "x")),
    *((BROKER_LOGGER, name) for name in ("", "2")),
    *((number, "x") for number in (0, 3, 64)),
]


@pytest.mark.parametrize("case", ALTERATIONS)
def test_alterations_that_are_only_validated(brokers, case):
    configs = ALTERATIONS[case]
    operations = [(SET, name, value) for name, value in configs]
    for resource in ALTERED_RESOURCES:
        for version in range(2):
            request = alter((*resource, operations), validate_only=True)
            play(brokers, ApiKey.INCREMENTAL_ALTER_CONFIGS, version, request)
        for version in range(3):
            play(brokers, ApiKey.ALTER_CONFIGS, version, replace((*resource, configs), validate_only=True))


NOT_ALTERED = {
    "no value to set": [(TOPIC, "one", [(SET, "retention.ms", None)])],
    "no value to append": [(TOPIC, "one", [(APPEND, "cleanup.policy", None)])],
    "appending to what is no list": [(TOPIC, "one", [(APPEND, "retention.ms", "1")])],
    "subtracting from what is no list": [(TOPIC, "one", [(SUBTRACT, "retention.ms", "1")])],
    "appending what cannot be": [(TOPIC, "one", [(APPEND, "cleanup.policy", "bogus")])],
    "a setting set and deleted": [(TOPIC, "one", [(SET, "retention.ms", "1"), (DELETE, "retention.ms", None)])],
    "a resource twice": [(TOPIC, "one", [(SET, "flush.ms", "1")]), (TOPIC, "one", [(SET, "flush.ms", "2")])],
    "deleting what is not set": [(TOPIC, "one", [(DELETE, "retention.ms", None), (DELETE, "bogus", None)])],
    "subtracting what is not there": [(TOPIC, "one", [(SUBTRACT, "leader.replication.throttled.replicas", "1:1")])],
    "a setting that stays as it is": [(BROKER, "1", [(SET, "num.partitions", "5")])],
    "deleting a setting that stays as it is": [(BROKER, "1", [(DELETE, "num.partitions", None)])],
    "a setting that stays as it is everywhere": [(BROKER, "", [(SET, "num.partitions", "5")])],
    "a setting of one broker for all": [(BROKER, "", [(SET, "ssl.client.auth", "none")])],
    "a broker's setting that is no number": [(BROKER, "1", [(SET, "log.retention.ms", "soon")])],
    "a broker's setting that cannot be": [(BROKER, "1", [(SET, "log.retention.ms", "0")])],
    "a broker's setting that is too small": [(BROKER, "", [(SET, "log.segment.bytes", "1")])],
    "no resources": [],
}


@pytest.mark.parametrize("case", NOT_ALTERED)
def test_alterations_that_change_nothing(brokers, case):
    for version in range(2):
        play(brokers, ApiKey.INCREMENTAL_ALTER_CONFIGS, version, alter(*NOT_ALTERED[case]))


def test_a_topics_settings_are_altered_step_by_step(brokers):
    steps = [
        ([(SET, "cleanup.policy", "compact"), (SET, "retention.ms", "2000")], "compact"),
        ([(APPEND, "cleanup.policy", "delete")], "compact,delete"),
        ([(APPEND, "cleanup.policy", "delete,compact")], "compact,delete"),
        ([(SUBTRACT, "cleanup.policy", "compact")], "delete"),
        ([(SUBTRACT, "cleanup.policy", "delete")], ""),
        ([(DELETE, "cleanup.policy", None)], "delete"),
        ([(APPEND, "cleanup.policy", "compact")], "delete,compact"),
    ]
    names = ["cleanup.policy", "retention.ms"]

    def scenario(side):
        side.create_topic("altered")
        for operations, value in steps:
            yield side.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, alter((TOPIC, "altered", operations)), 1)
            settled(side, TOPIC, "altered", "cleanup.policy", value)
            yield side.ask(ApiKey.DESCRIBE_CONFIGS, describe((TOPIC, "altered", names), synonyms=True), 4)
        yield side.ask(ApiKey.ALTER_CONFIGS, replace((TOPIC, "altered", [("flush.ms", "5")])), 2)
        settled(side, TOPIC, "altered", "flush.ms", "5")
        yield side.ask(ApiKey.DESCRIBE_CONFIGS, describe((TOPIC, "altered", [*names, "flush.ms"]), synonyms=True), 4)

    brokers.play(scenario)


def test_one_resource_that_is_refused_does_not_keep_the_others_back(brokers):
    def scenario(side):
        yield side.ask(
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            alter((TOPIC, "one", [(SET, "flush.ms", "soon")]), (TOPIC, "three", [(SET, "flush.ms", "5000")])),
            1,
        )
        settled(side, TOPIC, "three", "flush.ms", "5000")
        yield side.ask(ApiKey.DESCRIBE_CONFIGS, describe((TOPIC, "one", ["flush.ms"])), 4)

    brokers.play(scenario)


def test_a_brokers_settings_are_altered(brokers):
    """For this broker, for all of them, and back again; its topics follow."""
    name = "log.retention.ms"
    steps = [
        ("1", [(SET, name, "1234567")], "1234567"),
        ("", [(SET, name, "7654321")], "1234567"),
        ("1", [(DELETE, name, None)], "7654321"),
        ("", [(DELETE, name, None)], None),
    ]
    asked = [(BROKER, "1", [name]), (BROKER, "", [name]), (TOPIC, "one", ["retention.ms"])]

    def scenario(side):
        for whose, operations, value in steps:
            yield side.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, alter((BROKER, whose, operations)), 1)
            settled(side, BROKER, "1", name, value)
            settled(side, TOPIC, "one", "retention.ms", value or "86400000")
            if whose == "":  # what holds here may be seen before what holds everywhere
                while bool(side.ask(ApiKey.DESCRIBE_CONFIGS, describe(asked[1]), 4).results[0].configs) != bool(value):
                    pass
            yield side.ask(ApiKey.DESCRIBE_CONFIGS, describe(*asked, synonyms=True), 4)

    brokers.play(scenario)


def test_a_brokers_settings_are_replaced(brokers):
    def scenario(side):
        yield side.ask(ApiKey.ALTER_CONFIGS, replace((BROKER, "1", [("log.flush.interval.ms", "9000")])), 2)
        settled(side, TOPIC, "one", "flush.ms", "9000")
        yield side.ask(ApiKey.ALTER_CONFIGS, replace((BROKER, "1", [])), 2)
        settled(side, BROKER, "1", "log.flush.interval.ms", None)
        yield side.ask(ApiKey.DESCRIBE_CONFIGS, describe((BROKER, "1", ["log.flush.interval.ms"]), synonyms=True), 4)

    brokers.play(scenario)


# --- ListConfigResources ---


@pytest.mark.parametrize(
    "types", [[BROKER], [BROKER_LOGGER], [BROKER, BROKER_LOGGER, BROKER], [CLIENT_METRICS], [GROUP], [99], [BROKER, 0]]
)
def test_resources_are_listed(brokers, types):
    play(brokers, ApiKey.LIST_CONFIG_RESOURCES, 1, resources(*types))


def test_topics_are_listed(brokers):
    def scenario(side):
        for types in ([TOPIC], [], [TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP]):
            listed = side.ask(ApiKey.LIST_CONFIG_RESOURCES, resources(*types), 1)
            listed.config_resources = [
                resource
                for resource in listed.config_resources
                if resource.resource_type != TOPIC or resource.resource_name in ("one", "three", "compacted")
            ]
            yield listed

    brokers.play(scenario)
    play(brokers, ApiKey.LIST_CONFIG_RESOURCES, 0, resources())


# --- the rest ---

ONE_DIRECTORY = {
    "no partitions": log_dirs(),
    "some partitions": log_dirs(("three", [0, 2]), ("one", [0])),
    "unknown partitions": log_dirs(("one", [0, 1, -1]), ("unknown", [0])),
    "partitions twice": log_dirs(("three", [0, 0, 1]), ("three", [1, 2])),
    "a topic without partitions": log_dirs(("three", [])),
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
            yield side.ask(ApiKey.DESCRIBE_LOG_DIRS, log_dirs(("sized", [0, 1])), version)

    brokers.play(scenario)


ELECTIONS = {
    "partitions that are led already": elect(("one", [0]), ("three", [0, 1, 2])),
    "unknown partitions": elect(("one", [1, -1]), ("unknown", [0]), ("a b", [0])),
    "a partition twice": elect(("one", [0, 0]), ("one", [0])),
    "a topic without partitions": elect(("one", [])),
    "no topics": elect(),
    "no time": elect(("one", [0]), timeout_ms=0),
    "no time for any": elect(every=True, timeout_ms=-1),
}
ELECTIONS_BY_TYPE = {
    "any leader": elect(("one", [0]), ("unknown", [0]), election_type=1),
    "no such type": elect(("one", [0]), ("unknown", [0]), election_type=2),
    "no such type for all": elect(every=True, election_type=-1),
    "no such type for none": elect(election_type=2),
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
            answer = side.ask(ApiKey.ELECT_LEADERS, elect(every=True), version)
            results = answer.replica_election_results
            answer.replica_election_results = [result for result in results if result.topic in ("one", "three")]
            yield answer

    brokers.play(scenario)


REASSIGNMENTS = {
    "to where they are": reassign(("one", 0, [1]), ("three", 2, [1])),
    "unknown partitions": reassign(("one", 1, [1]), ("one", -1, [1]), ("unknown", 0, [1]), ("a b", 0, [1])),
    "nothing to call off": reassign(("one", 0, None), ("one", 5, None), ("unknown", 0, None)),
    "to nowhere": reassign(("one", 0, [])),
    "to unknown brokers": reassign(("one", 0, [9]), ("three", 0, [1, 2]), ("three", 1, [-1])),
    "to one broker twice": reassign(("one", 0, [1, 1])),
    "a partition twice": reassign(("one", 0, [1]), ("one", 0, None), ("one", 0, [9])),
    "nothing": reassign(),
    "no time": reassign(("one", 0, [1]), timeout_ms=0),
}


@pytest.mark.parametrize("case", REASSIGNMENTS)
def test_reassignments(brokers, case):
    for version in range(2):
        play(brokers, ApiKey.ALTER_PARTITION_REASSIGNMENTS, version, REASSIGNMENTS[case])


def test_reassignments_that_keep_the_number_of_replicas(brokers):
    request = reassign(("one", 0, [1]), ("three", 0, [1, 2]), allow_change=False)
    play(brokers, ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, request)


def test_no_partition_is_on_the_move(brokers):
    requests = reassignments(every=True), reassignments(), reassignments(("one", [0, 7, -1]), ("unknown", [0]))
    play(brokers, ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, *requests)


def test_producers_are_described(brokers):
    play(brokers, ApiKey.DESCRIBE_PRODUCERS, 0, producers())
    play(brokers, ApiKey.DESCRIBE_PRODUCERS, 0, producers(("one", [0, 1, -1, 0]), ("unknown", [0]), ("three", [])))
    play(brokers, ApiKey.DESCRIBE_PRODUCERS, 0, producers(("a b", [0]), ("", [0]), ("one", [0]), ("one", [0])))

    def scenario(side):
        side.create_topic("produced")
        for sequence, producer in ((0, 7), (0, 8), (1, 7)):
            records = batch(b"value", producer_id=producer, producer_epoch=3, base_sequence=sequence)
            side.ask(ApiKey.PRODUCE, produce(("produced", 0, records)), 9)
        answer = side.ask(ApiKey.DESCRIBE_PRODUCERS, producers(("produced", [0])), 0)
        # When each was last heard of is told by the broker's clock.
        for producer in answer.topics[0].partitions[0].active_producers:
            producer.last_timestamp = producer.last_timestamp > 0
        yield answer

    brokers.play(scenario)


PAGES = {
    "topics in order": page("three", "one"),
    "unknown topics": page("three", "unknown", "a b"),
    "an internal topic": page("__consumer_offsets"),
    "a topic twice": page("one", "one"),
    "room for one partition": page("three", "one", limit=1),
    "room for all": page("three", "one", limit=4),
    "room for all of the first topic": page("three", "one", "two", limit=1),
    "no room": page("three", "one", limit=0),
    "less than no room": page("three", "one", limit=-5),
    "all the room there is": page("three", "one", limit=2**31 - 1),
    "from a partition on": page("three", "one", cursor=("three", 1)),
    "from a partition on, with too little room": page("three", "one", limit=1, cursor=("three", 1)),
    "from the last partition on": page("three", "one", limit=1, cursor=("three", 2)),
    "from after the last partition on": page("three", "one", cursor=("three", 3)),
    "from far after the last partition on": page("three", "one", cursor=("three", 1_000_000)),
    "from a negative partition on": page("three", "one", cursor=("three", -1)),
    "from an unknown topic on": page("nobody", "one", limit=1, cursor=("nobody", 3)),
    "from a topic on that is not asked for": page("three", "one", cursor=("two", 0)),
    "unknown topics after the end": page("one", "unknown-1", "unknown-2", limit=1),
    "an unknown topic before the end": page("one", "nobody", limit=1),
}


@pytest.mark.parametrize("case", PAGES)
def test_pages_of_topics(brokers, case):
    play(brokers, ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, PAGES[case])


def test_pages_of_all_topics(brokers):
    def scenario(side):
        cursor = None
        seen = []
        while True:
            answer = side.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, page(limit=3, cursor=cursor), 0)
            assert 0 < sum(len(topic.partitions) for topic in answer.topics) <= 3
            seen += [(topic.name, p.partition_index) for topic in answer.topics for p in topic.partitions]
            if answer.next_cursor is None:
                break
            cursor = answer.next_cursor.topic_name, answer.next_cursor.partition_index
        assert seen == sorted(seen)
        yield [partition for partition in seen if partition[0] in ("one", "three", "compacted")]
        yield side.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, page(cursor=("zzz", 0)), 0)
        yield side.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, page(cursor=("one", -1)), 0)

    brokers.play(scenario)
