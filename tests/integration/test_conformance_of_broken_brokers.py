"""A check that cannot fail checks nothing. Here, brokers break one rule each, and certain checks must fail.

The broker is a real one, behind a proxy that changes what passes. Each case names the checks that have to fail; another
test shows that the same checks pass when the proxy changes nothing.
"""

import struct
import time

import pytest

from barnabas.client.connection import Address
from barnabas.conformance.rooms import fetch as fetch_room
from barnabas.conformance.runner import run_all, selected
from barnabas.conformance.target import look_at
from barnabas.conformance.verdict import Verdict
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersion
from tests.support.broker_process import BrokerProcess
from tests.support.doctoring_proxy import Doctor, DoctoringProxy, change_answer, change_request

# For checks that wait for something that never arrives.
SHORT = 3.0
LONG = 60.0


@pytest.fixture(scope="module")
def proxy(tmp_path_factory):
    with DoctoringProxy() as proxy:
        settings = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}"}
        with BrokerProcess(tmp_path_factory.mktemp("data"), settings=settings) as broker:
            proxy.upstream = broker.port
            yield proxy


def results(proxy, doctor, *checks, seconds=LONG):
    """Each check's result, with the doctor at work from the first byte on."""
    proxy.doctor = doctor
    try:
        target = look_at([Address("127.0.0.1", proxy.port)], LONG)
        return {result.check.name: result for result in run_all(target, selected(checks), seconds)}
    finally:
        proxy.doctor = Doctor()


class OneKey(Doctor):
    """Changes the answers of one API."""

    key: ApiKey

    def answers(self, frame):
        return self.change(frame) if frame.key == self.key else [frame.body]


class AByteOver(OneKey):
    key = ApiKey.HEARTBEAT

    def change(self, frame):
        return [frame.body + b"\0"]


class AnAnswerCutShort(OneKey):
    key = ApiKey.LIST_OFFSETS

    def change(self, frame):
        return [frame.body[:-3]]


class AnotherCorrelationId(OneKey):
    key = ApiKey.METADATA

    def change(self, frame):
        (correlation_id,) = struct.unpack_from(">i", frame.body)
        return [struct.pack(">i", correlation_id ^ 1 if correlation_id < 0 else correlation_id) + frame.body[4:]]


class OutOfOrder(Doctor):
    """Holds the answer to ListOffsets back until the next one has gone out, where one follows."""

    def __init__(self):
        self.held = []

    def answers(self, frame):
        if frame.key == ApiKey.LIST_OFFSETS and frame.behind and not self.held:
            self.held.append(frame.body)
            return []
        held, self.held = self.held, []
        return [frame.body, *held]


class HangsUp(OneKey):
    key = ApiKey.DESCRIBE_GROUPS

    def change(self, frame):
        return None


class SaysNothing(OneKey):
    key = ApiKey.DESCRIBE_CONFIGS

    def change(self, frame):
        return []


class Late(OneKey):
    key = ApiKey.FETCH

    def change(self, frame):
        time.sleep(1.2)
        return [frame.body]


class Impatient(Doctor):
    """A broker that does not wait for data."""

    def request(self, frame):
        def at_once(message):
            message.max_wait_ms = 0

        return change_request(frame, at_once) if frame.key == ApiKey.FETCH else frame.body


class OtherError(OneKey):
    """An error code in place of another, wherever answers of this API have one."""

    def __init__(self, key, was, becomes):
        self.key, self.was, self.becomes = key, was, becomes

    def change(self, frame):
        return [change_answer(frame, lambda message: self.replace(message))]

    def replace(self, value):
        if isinstance(value, list):
            for each in value:
                self.replace(each)
        elif hasattr(type(value), "fields"):
            for name in type(value).fields:
                if name.endswith("error_code") and getattr(value, name) == self.was:
                    setattr(value, name, self.becomes)
                else:
                    self.replace(getattr(value, name))


class WrongOffset(OneKey):
    key = ApiKey.PRODUCE

    def change(self, frame):
        def one_more(message):
            for topic in message.responses:
                for partition in topic.partition_responses:
                    partition.base_offset += partition.error_code == 0

        return [change_answer(frame, one_more)]


class Dirty(Doctor):
    """A broker that ignores read_committed."""

    def request(self, frame):
        def uncommitted(message):
            message.isolation_level = 0

        return change_request(frame, uncommitted) if frame.key in (ApiKey.FETCH, ApiKey.LIST_OFFSETS) else frame.body


class Forgetful(Doctor):
    """A broker whose fetch sessions always return everything."""

    def request(self, frame):
        def no_session(message):
            message.session_id, message.session_epoch = 0, -1

        return change_request(frame, no_session) if frame.key == ApiKey.FETCH else frame.body


class Boastful(OneKey):
    """Advertises what it does not serve."""

    key = ApiKey.API_VERSIONS

    def change(self, frame):
        def more(message):
            message.api_keys.append(ApiVersion(api_key=ApiKey.DESCRIBE_QUORUM, min_version=0, max_version=1))

        return [change_answer(frame, more)]


class Modest(OneKey):
    """Does not advertise what it serves."""

    key = ApiKey.API_VERSIONS

    def change(self, frame):
        def less(message):
            message.api_keys = [each for each in message.api_keys if each.api_key != ApiKey.HEARTBEAT]

        return [change_answer(frame, less)]


STORIES = {
    "a byte over": (AByteOver(), {"answers.heartbeat": "1 byte over"}),
    "an answer cut short": (AnAnswerCutShort(), {"answers.list-offsets": "cut short"}),
    "another correlation id": (AnotherCorrelationId(), {"framing.any-correlation-id": "one with -2"}),
    "out of order": (OutOfOrder(), {"framing.in-order": "one with"}),
    "hangs up": (HangsUp(), {"answers.describe-groups": "the connection was closed"}),
    "a bad batch taken": (
        OtherError(ApiKey.PRODUCE, ErrorCode.CORRUPT_MESSAGE, ErrorCode.NONE),
        {"produce.bad-checksum": "NONE"},
    ),
    "another error than Kafka's": (
        OtherError(ApiKey.CREATE_TOPICS, ErrorCode.INVALID_PARTITIONS, ErrorCode.INVALID_REQUEST),
        {"topics.no-partitions": "INVALID_REQUEST"},
    ),
    "a wrong offset": (WrongOffset(), {"produce.offsets": "1", "idempotence.duplicate": "2"}),
    "no member id required": (
        OtherError(ApiKey.JOIN_GROUP, ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.NONE),
        {"groups.member-id-required": "NONE"},
    ),
    "zombies let in": (
        OtherError(ApiKey.HEARTBEAT, ErrorCode.ILLEGAL_GENERATION, ErrorCode.NONE),
        {"groups.illegal-generation": "NONE"},
    ),
    "zombies of an application let in": (
        OtherError(ApiKey.STREAMS_GROUP_HEARTBEAT, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.NONE),
        {"streams-groups.epochs": "NONE"},
    ),
    "dirty reads": (
        Dirty(),
        {
            "transactions.classic-open-is-not-read": "b'open'",
            "transactions.classic-abort": "[b'lost', b'kept']",
            "transactions.implicit-abort": "[b'lost', b'kept']",
        },
    ),
    "no fetch sessions": (Forgetful(), {"fetch-sessions.wrong-epoch": "the broker gave no session"}),
    "an API that is not there": (Boastful(), {"answers.describe-quorum": "the connection was closed"}),
}
NOT_APPLICABLE = {"no fetch sessions"}


@pytest.mark.parametrize("story", STORIES)
def test_a_broken_rule_is_found(proxy, story):
    doctor, expected = STORIES[story]
    found = results(proxy, doctor, *expected)
    verdict = Verdict.NOT_APPLICABLE if story in NOT_APPLICABLE else Verdict.FAILED
    assert {name: result.verdict for name, result in found.items()} == dict.fromkeys(expected, verdict)
    for name, seen in expected.items():
        assert seen in found[name].seen
        if verdict is Verdict.FAILED:
            assert found[name].expected
            assert (found[name].steps[-1].expected, found[name].steps[-1].seen) == (
                found[name].expected,
                found[name].seen,
            )


def test_the_same_checks_pass_where_nothing_is_broken(proxy):
    names = {name for _, expected in STORIES.values() for name in expected} - {"answers.describe-quorum"}
    found = results(proxy, Doctor(), *names)
    assert {name: result.verdict for name, result in found.items()} == dict.fromkeys(names, Verdict.PASSED)


def test_what_is_not_advertised_is_not_held_against_a_broker(proxy):
    found = results(proxy, Modest(), "answers.heartbeat", "groups.heartbeat", "answers.metadata")
    assert found["answers.heartbeat"].verdict is Verdict.NOT_APPLICABLE
    assert found["groups.heartbeat"].seen == "Heartbeat is not advertised"
    assert found["answers.metadata"].verdict is Verdict.PASSED


def test_an_answer_that_never_comes_costs_its_check_and_not_the_run(proxy):
    started = time.monotonic()
    found = results(proxy, SaysNothing(), "settings.described", "metadata.brokers", seconds=SHORT)
    assert found["settings.described"].verdict is Verdict.FAILED
    assert found["settings.described"].seen == "nothing within the check's limit of 3 s"
    assert found["metadata.brokers"].verdict is Verdict.PASSED
    assert time.monotonic() - started < LONG


def test_a_fetch_that_is_answered_early_is_found(proxy):
    found = results(proxy, Impatient(), "fetch.waits-as-long-as-asked", "fetch.waits-for-min-bytes")
    assert {result.expected for result in found.values()} == {"a response after 400 ms"}


def test_a_fetch_that_is_answered_late_is_found(proxy, monkeypatch):
    monkeypatch.setattr(fetch_room, "LATE", 0.5)
    found = results(proxy, Late(), "fetch.does-not-wait", "fetch.woken-by-data")
    assert {result.expected for result in found.values()} == {"a response at once"}
