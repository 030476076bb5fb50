"""Requests about quotas, bad ones included, get the same answers from Apache Kafka and from Barnabas.

So do clients that are over their quotas: how long each is throttled after its first request follows from the request.
"""

import time

import pytest

from barnabas.client.requests.admin import create_partitions, create_topics, delete_topics, new_topic
from barnabas.client.requests.data import fetch, produce
from barnabas.client.requests.quotas import ANY, DEFAULT, EXACT, alter_quotas, describe_quotas
from barnabas.client.requests.records import batch
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.frames import request_frame
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from tests.support.admin_side_by_side import play
from tests.support.side_by_side import differences

pytestmark = pytest.mark.java

ALTER, DESCRIBE = ApiKey.ALTER_CLIENT_QUOTAS, ApiKey.DESCRIBE_CLIENT_QUOTAS


@pytest.fixture
def brokers(administered_brokers):
    return administered_brokers


def described(brokers, request, version=1):
    """Both describe the same, Apache Kafka perhaps a little later: it answers before its broker knows."""
    ours = brokers.barnabas.comparable(brokers.barnabas.ask(DESCRIBE, request, version))
    end = time.monotonic() + 60
    while True:
        found = list(differences(brokers.kafka.comparable(brokers.kafka.ask(DESCRIBE, request, version)), ours))
        if not found:
            return ours
        assert time.monotonic() < end, "\n".join(found)
        time.sleep(0.02)


def entry(parts, *ops):
    """An entity of (kind, name) parts, and (key, value) pairs; a value of None removes."""
    return AlterClientQuotasRequest(
        entries=[
            RequestEntryData(
                entity=[RequestEntityData(entity_type=kind, entity_name=name) for kind, name in parts],
                ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in ops],
            )
        ],
        validate_only=False,
    )


RATE = ("producer_byte_rate", 1024.0)
REFUSED = {
    "nobody": entry([], RATE),
    "an empty user": entry([("user", "")], RATE),
    "an empty client id": entry([("client-id", "")], RATE),
    "an empty address": entry([("ip", "")], ("connection_creation_rate", 1.0)),
    "an unknown kind of entity": entry([("planet", "mars")], RATE),
    "no kind of entity": entry([("", "mars")], RATE),
    "an address that is none": entry([("ip", "not an address")], ("connection_creation_rate", 1.0)),
    "an address with a user": entry([("ip", "127.0.0.1"), ("user", "bad")], ("connection_creation_rate", 1.0)),
    "an address with a client id": entry([("ip", None), ("client-id", "bad")], ("connection_creation_rate", 1.0)),
    "an unknown key": entry([("user", "bad")], ("speed", 1.0)),
    "no key": entry([("user", "bad")], ("", 1.0)),
    "an address's key for a user": entry([("user", "bad")], ("connection_creation_rate", 1.0)),
    "a user's key for an address": entry([("ip", "127.0.0.1")], RATE),
    "a key of a password": entry([("client-id", "bad")], ("SCRAM-SHA-256", 1.0)),
    "zero": entry([("user", "bad")], ("producer_byte_rate", 0.0)),
    "a negative value": entry([("user", "bad")], ("request_percentage", -1.0)),
    "half a byte": entry([("user", "bad")], ("consumer_byte_rate", 1.5)),
    "half a connection": entry([("ip", "127.0.0.1")], ("connection_creation_rate", 1.5)),
    "more bytes than a number has": entry([("user", "bad")], ("producer_byte_rate", 1e19)),
    "more connections than a number has": entry([("ip", "127.0.0.1")], ("connection_creation_rate", 3e9)),
    "a good and a bad value": entry([("user", "bad")], RATE, ("consumer_byte_rate", 0.0)),
}


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("request_", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_altered(brokers, request_, version):
    play(brokers, ALTER, version, request_)
    assert described(brokers, describe_quotas()) == described(brokers, describe_quotas(), 0)
    assert brokers.barnabas.ask(DESCRIBE, describe_quotas(), 1).entries == []


NOTHING_HAPPENS = {
    "nothing": AlterClientQuotasRequest(entries=[], validate_only=False),
    "no values": entry([("user", "some")]),
    "the removal of what is not there": entry([("user", "some")], ("producer_byte_rate", None)),
    "the removal of an unknown key": entry([("user", "some")], ("speed", None)),
    "validated only": alter_quotas(({"user": "some"}, {"producer_byte_rate": 1.0}), validate_only=True),
}


@pytest.mark.parametrize("request_", NOTHING_HAPPENS.values(), ids=NOTHING_HAPPENS)
def test_what_alters_nothing(brokers, request_):
    play(brokers, ALTER, 1, request_)
    assert described(brokers, describe_quotas())["entries"] == []


ENTITIES = [
    {"user": "alice"},
    {"user": "CN=bob/ü %"},
    {"user": None},
    {"client-id": "app"},
    {"client-id": None},
    {"user": "alice", "client-id": "app"},
    {"user": "alice", "client-id": None},
    {"user": None, "client-id": "app"},
    {"user": None, "client-id": None},
]
ADDRESSES = [{"ip": "127.0.0.2"}, {"ip": None}]

FILTERS = {
    "everything": [],
    "a user": [("user", EXACT, "alice")],
    "a user with strange letters": [("user", EXACT, "CN=bob/ü %")],
    "a user without quotas": [("user", EXACT, "nobody")],
    "the default user": [("user", DEFAULT, None)],
    "any user": [("user", ANY, None)],
    "a client id": [("client-id", EXACT, "app")],
    "any client id": [("client-id", ANY, None)],
    "both": [("user", EXACT, "alice"), ("client-id", EXACT, "app")],
    "a user and any client id": [("user", EXACT, "alice"), ("client-id", ANY, None)],
    "any user and the default client id": [("user", ANY, None), ("client-id", DEFAULT, None)],
    "an address": [("ip", EXACT, "127.0.0.2")],
    "the default address": [("ip", DEFAULT, None)],
    "any address": [("ip", ANY, None)],
    "an unknown kind": [("planet", ANY, None)],
    "an empty kind": [("", ANY, None)],
    "a kind twice": [("user", ANY, None), ("user", EXACT, "alice")],
    "an address and a user": [("ip", ANY, None), ("user", ANY, None)],
    "an address and a client id": [("ip", EXACT, "127.0.0.2"), ("client-id", ANY, None)],
    "exactly nothing": [("user", EXACT, None)],
    "exactly an empty name": [("user", EXACT, "")],
    "a default with a name": [("user", DEFAULT, "alice")],
    "any with a name": [("user", ANY, "alice")],
    "an unknown match": [("user", 3, None)],
}


@pytest.fixture
def with_quotas(administered_brokers):
    values = {"producer_byte_rate": 1e9, "consumer_byte_rate": 2e9, "request_percentage": 1234.5}
    entries = [(entity, values) for entity in ENTITIES]
    addresses = [(address, {"connection_creation_rate": 1e6}) for address in ADDRESSES]
    play(administered_brokers, ALTER, 1, alter_quotas(*entries, *addresses))
    yield administered_brokers
    removed = [(entity, dict.fromkeys(values)) for entity in ENTITIES]
    play(
        administered_brokers,
        ALTER,
        1,
        alter_quotas(*removed, *((address, {"connection_creation_rate": None}) for address in ADDRESSES)),
    )
    assert described(administered_brokers, describe_quotas())["entries"] == []


def test_what_is_described(with_quotas):
    for filter_ in FILTERS.values():
        for strict in (False, True):
            for version in (0, 1):
                described(with_quotas, describe_quotas(filter_, strict), version)


def test_values_come_and_go(brokers):
    mutations = {"controller_mutation_rate": 0.5}
    steps = [
        {"producer_byte_rate": 10.0, **mutations},
        {"producer_byte_rate": 20.0},
        {"controller_mutation_rate": None},
    ]
    for values in [*steps, {"producer_byte_rate": None}]:
        play(brokers, ALTER, 0, alter_quotas(({"user": "carol"}, values)))
        described(brokers, describe_quotas([("user", EXACT, "carol")]))


def test_one_that_is_refused_does_not_hold_back_the_others(brokers):
    good, bad = ({"user": "dora"}, {"producer_byte_rate": 5.0}), ({"user": "eve"}, {"producer_byte_rate": -5.0})
    play(brokers, ALTER, 1, alter_quotas(bad, good))
    described(brokers, describe_quotas())
    play(brokers, ALTER, 1, alter_quotas(({"user": "dora"}, {"producer_byte_rate": None})))
    described(brokers, describe_quotas())


def test_an_entity_twice(brokers):
    """Both refuse it. Apache Kafka has carried out the first part by then; Barnabas does nothing."""
    play(brokers, ALTER, 1, alter_quotas(({"user": "odd"}, {"producer_byte_rate": 5.0}), ({"user": "odd"}, {})))
    assert brokers.barnabas.ask(DESCRIBE, describe_quotas(), 1).entries == []
    play(brokers, ALTER, 1, entry([("user", "odd")], ("producer_byte_rate", None)))
    described(brokers, describe_quotas())


ODD = {
    "a kind of entity twice": entry([("user", "other"), ("user", "odd")], RATE),
    "a key twice": entry([("user", "odd")], RATE, ("producer_byte_rate", 7.0)),
    "a key set and removed": entry([("user", "odd")], RATE, ("producer_byte_rate", None)),
    "a bad key removed with a good one set": entry([("user", "odd")], RATE, ("speed", None)),
}


@pytest.mark.parametrize("request_", ODD.values(), ids=ODD)
def test_odd_requests(brokers, request_):
    play(brokers, ALTER, 1, request_)
    described(brokers, describe_quotas())
    play(brokers, ALTER, 1, *(entry([("user", name)], ("producer_byte_rate", None)) for name in ("odd", "other")))
    assert described(brokers, describe_quotas())["entries"] == []


# --- those who are over their quotas ---


class Client:
    """A client with an id of its own, which has a quota of its own."""

    def __init__(self, side, client_id):
        self.side = side
        self.client_id = client_id
        self.wire = Wire("127.0.0.1", side.port)

    def ask(self, key, message, version):
        self.wire.send(request_frame(key, message, version, client_id=self.client_id))
        return self.wire.answer(key, version)


def limited(brokers, client_id, **values):
    """The quota is in force at both: what a client has used counts from when it has one."""
    play(brokers, ALTER, 1, alter_quotas(({"client-id": client_id}, values)))
    described(brokers, describe_quotas([("client-id", EXACT, client_id)]))


def unlimited(brokers, client_id, *keys):
    play(brokers, ALTER, 1, alter_quotas(({"client-id": client_id}, dict.fromkeys(keys))))
    described(brokers, describe_quotas([("client-id", EXACT, client_id)]))


def both(brokers, client_id, ask):
    """What the two sides answer the first request of a client."""
    theirs, ours = (side.comparable(ask(Client(side, client_id))) for side in (brokers.kafka, brokers.barnabas))
    assert list(differences(theirs, ours)) == []
    return ours


@pytest.mark.parametrize("version", range(3, 13))
def test_a_producer_that_is_too_fast(brokers, version):
    client_id = f"producer-{version}"
    limited(brokers, client_id, producer_byte_rate=1000)
    request = produce(("one", 0, batch(b"x" * 20_000)))

    def ask(client):
        answer = client.ask(ApiKey.PRODUCE, request, version)
        answer.responses = []
        return answer

    assert both(brokers, client_id, ask)["throttle_time_ms"] > 10_000
    unlimited(brokers, client_id, "producer_byte_rate")


@pytest.mark.parametrize("version", [4, 6, 7, 11, 12])
@pytest.mark.parametrize("session", [0, -1])
def test_a_consumer_that_is_too_fast(brokers, version, session):
    """It gets nothing: no records, no error, no session."""
    client_id = f"consumer-{version}-{session}"
    limited(brokers, client_id, consumer_byte_rate=1000)
    for side in (brokers.kafka, brokers.barnabas):
        side.ask(ApiKey.PRODUCE, produce(("compacted", 0, batch(b"x" * 15_000))), 9)
    request = fetch(("compacted", 0, 0), session_epoch=session)
    answer = both(brokers, client_id, lambda client: client.ask(ApiKey.FETCH, request, version))
    assert answer["throttle_time_ms"] > 0
    assert answer["responses"] == []
    unlimited(brokers, client_id, "consumer_byte_rate")


@pytest.mark.parametrize("version", [5, 6, 7])
def test_one_that_creates_and_deletes_too_much(brokers, version):
    """The bucket holds 11 seconds' worth. From some version on, what exceeds it is refused; in older ones, the client
    waits."""
    client_id = f"creator-{version}"
    limited(brokers, client_id, controller_mutation_rate=1)
    names = [f"quota-{version}-{number}" for number in range(3)]

    def creation(client):
        request = create_topics(*(new_topic(name, 12) for name in names))
        answer = client.ask(ApiKey.CREATE_TOPICS, request, version)
        for topic in answer.topics:
            topic.configs = []
        answer.throttle_time_ms = -(-answer.throttle_time_ms // 1000)  # it is less by what the request has taken
        return answer

    created = both(brokers, client_id, creation)
    assert created["throttle_time_ms"] > 0
    assert {topic["error_code"] for topic in created["topics"]} == ({0, 89} if version >= 6 else {0})
    unlimited(brokers, client_id, "controller_mutation_rate")
    for side in (brokers.kafka, brokers.barnabas):
        side.ask(ApiKey.DELETE_TOPICS, delete_topics(*names), 6)


def test_what_is_only_validated_counts_as_well(brokers):
    limited(brokers, "validator", controller_mutation_rate=1)
    for name, partitions in (("first", 12), ("second", 1)):
        request = create_topics(new_topic(name, partitions), validate_only=True)

        def validation(client, request=request):
            answer = client.ask(ApiKey.CREATE_TOPICS, request, 7)
            for topic in answer.topics:
                topic.configs = []
            answer.throttle_time_ms = answer.throttle_time_ms > 0
            return answer

        both(brokers, "validator", validation)
    unlimited(brokers, "validator", "controller_mutation_rate")


@pytest.mark.parametrize("version", [2, 3])
def test_one_that_adds_too_many_partitions(brokers, version):
    client_id = f"adder-{version}"
    names = [f"more-{version}-{number}" for number in range(2)]
    for side in (brokers.kafka, brokers.barnabas):
        for name in names:
            side.create_topic(name)
    limited(brokers, client_id, controller_mutation_rate=1)

    def addition(client):
        answer = client.ask(ApiKey.CREATE_PARTITIONS, create_partitions(*((name, 15) for name in names)), version)
        answer.throttle_time_ms = -(-answer.throttle_time_ms // 1000)
        return answer

    assert both(brokers, client_id, addition)["throttle_time_ms"] > 0
    unlimited(brokers, client_id, "controller_mutation_rate")
    for side in (brokers.kafka, brokers.barnabas):
        side.ask(ApiKey.DELETE_TOPICS, delete_topics(*names), 6)
