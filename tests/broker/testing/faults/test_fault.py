"""A fault as data: what is checked when it is created, which requests it affects, and when it fires."""

import pytest

from barnabas.broker.testing.faults.fault import Fault, FaultError, parse
from barnabas.broker.testing.subjects import Subjects
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.schema import Versions

T0 = Subjects(partitions=[("t", 0)], groups=["g"], transactional_ids=["tx"])


def fault(**asked):
    asked = {"error": "UNKNOWN_SERVER_ERROR", **asked}
    return Fault(1, parse(asked), asked)


def is_about(made, key=ApiKey.PRODUCE, version=9, client_id="c", principal="User:ANONYMOUS", subjects=T0):
    return made.is_about(key, version, client_id, principal, subjects)


# --- what is checked ---


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({}, "error"),
        ({"api": "Produce"}, "error"),
        ({"api": "Prodcue", "error": "NOT_COORDINATOR"}, "api"),
        ({"api": [], "error": "NOT_COORDINATOR"}, "api"),
        ({"api": 3, "error": "NOT_COORDINATOR"}, "api"),
        ({"error": "NO_SUCH_ERROR"}, "error"),
        ({"error": "NONE"}, "error"),
        ({"error": 4711}, "error"),
        ({"error": True}, "error"),
        ({"eror": "NOT_COORDINATOR"}, "eror"),
        ({"versions": "7-3", "delay_ms": 1}, "versions"),
        ({"versions": "x", "delay_ms": 1}, "versions"),
        ({"api": "Heartbeat", "versions": "9+", "delay_ms": 1}, "versions"),
        ({"partition": -1, "delay_ms": 1}, "partition"),
        ({"partition": "0", "delay_ms": 1}, "partition"),
        ({"topic": "", "delay_ms": 1}, "topic"),
        ({"api": "Heartbeat", "topic": "t", "delay_ms": 1}, "topic"),
        ({"api": "DeleteTopics", "partition": 1, "delay_ms": 1}, "partition"),
        ({"api": "Produce", "group": "g", "delay_ms": 1}, "group"),
        ({"api": "Heartbeat", "transactional_id": "t", "delay_ms": 1}, "transactional_id"),
        ({"nth": 0, "delay_ms": 1}, "nth"),
        ({"times": 0, "delay_ms": 1}, "times"),
        ({"times": True, "delay_ms": 1}, "times"),
        ({"probability": 0, "delay_ms": 1}, "probability"),
        ({"probability": 1.5, "delay_ms": 1}, "probability"),
        ({"seed": "x", "delay_ms": 1}, "seed"),
        ({"for_ms": 0, "delay_ms": 1}, "for_ms"),
        ({"delay_ms": -5}, "delay_ms"),
        ({"delay_ms": 1e99}, "delay_ms"),
        ({"delay_ms": 10**30}, "delay_ms"),
        ({"close": "sometimes"}, "close"),
        ({"corrupt": "yes"}, "corrupt"),
        ({"api": "Produce", "corrupt": True}, "api"),
        ({"error": "NOT_COORDINATOR", "close": "before"}, "close"),
        ({"refuse_connections": True, "topic": "t"}, "topic"),
        ({"refuse_connections": True, "delay_ms": 10}, "delay_ms"),
    ],
)
def test_an_error_is_reported_with_the_name_of_the_field(asked, field):
    with pytest.raises(FaultError) as caught:
        parse(asked)
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field}: ")


def test_names_are_kafkas_and_their_case_does_not_matter():
    spec = parse({"api": ["produce", "OffsetCommit"], "error": "not_leader_or_follower"})
    assert spec.api == (ApiKey.PRODUCE, ApiKey.OFFSET_COMMIT)
    assert spec.error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert parse({"error": 6}).error == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(("text", "versions"), [(3, (3, 3)), ("3", (3, 3)), ("3-7", (3, 7)), ("9+", (9, 32767))])
def test_versions_are_one_a_range_or_all_from_one_on(text, versions):
    assert parse({"versions": text, "delay_ms": 1}).versions == Versions(*versions)


def test_a_delay_may_come_with_something_else():
    spec = parse({"delay_ms": 10, "close": "before"})
    assert (spec.delay_ms, spec.close) == (10, "before")


# --- what it is about ---


def test_a_fault_without_matchers_affects_everything():
    assert is_about(fault())


@pytest.mark.parametrize(
    ("asked", "same", "other"),
    [
        ({"api": "Produce"}, {}, {"key": ApiKey.FETCH}),
        ({"api": ["Produce", "Fetch"]}, {"key": ApiKey.FETCH}, {"key": ApiKey.METADATA}),
        ({"versions": "3-9"}, {}, {"version": 10}),
        ({"client_id": "c"}, {}, {"client_id": "d"}),
        ({"client_id": "c*"}, {"client_id": "c-1"}, {"client_id": None}),
        ({"principal": "User:ANONYMOUS"}, {}, {"principal": "User:alice"}),
        ({"topic": "t"}, {}, {"subjects": Subjects(partitions=[("u", 0)])}),
        ({"topic": "t*"}, {"subjects": Subjects(partitions=[("tt", 0)])}, {"subjects": Subjects()}),
        ({"partition": 0}, {}, {"subjects": Subjects(partitions=[("t", 1)])}),
        ({"topic": "t", "partition": 1}, {"subjects": Subjects(partitions=[("t", 1)])}, {}),
        ({"topic": "t", "partition": 0}, {}, {"subjects": Subjects(partitions=[("t", 1), ("u", 0)])}),
        ({"group": "g"}, {}, {"subjects": Subjects(groups=["h"])}),
        ({"transactional_id": "tx"}, {}, {"subjects": Subjects(transactional_ids=["ty"])}),
    ],
)
def test_each_matcher_distinguishes_requests(asked, same, other):
    assert is_about(fault(**asked), **same)
    assert not is_about(fault(**asked), **other)


# --- when it fires ---


def fired(made, count):
    return [made.fires() for _ in range(count)]


def test_by_default_it_fires_every_time():
    assert fired(fault(), 3) == [True, True, True]


def test_it_is_over_after_a_number_of_times():
    made = fault(times=2)
    assert fired(made, 3) == [True, True, False]
    assert (made.seen, made.hits, made.over) == (3, 2, True)


def test_only_the_nth_request_is_affected():
    assert fired(fault(nth=3), 5) == [False, False, True, False, False]


def test_a_number_of_requests_from_the_nth_on():
    assert fired(fault(nth=2, times=2), 5) == [False, True, True, False, False]


def test_chance_is_the_same_for_the_same_seed():
    first, same, other = (fired(fault(probability=0.5, seed=seed), 200) for seed in (1, 1, 2))
    assert first == same != other
    assert 60 < sum(first) < 140
