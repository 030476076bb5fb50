"""Reading continues, whatever happens to offsets, leaders and connections meanwhile."""

import threading

import pytest

from barnabas.client.client import Client
from barnabas.client.connection import Address
from barnabas.client.errors import BrokerError, ConnectionLost, TimedOut, Unreachable
from barnabas.client.fetcher import Fetcher
from barnabas.client.offsets import READ_UNCOMMITTED
from barnabas.client.requests.data import EARLIEST
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.ports import HeldPort
from tests.support.scripted_broker import ScriptedBroker

PARTITION = TopicPartition("t", 0)


class Topic:
    """One partition with one record per offset, from `begin` to `end`, and two records per answer.

    `outcomes` says, request by request, what goes wrong: an error, or None to hang up.
    """

    def __init__(self, *outcomes, begin=0, end=6):
        self.outcomes = list(outcomes)
        self.begin, self.end = begin, end

    def fetch(self, request):
        outcome = self.outcomes.pop(0) if self.outcomes else ErrorCode.NONE
        if outcome is None:
            return None
        (asked,) = request.topics[0].partitions
        offset = asked.fetch_offset
        if not self.begin <= offset <= self.end:
            outcome = ErrorCode.OFFSET_OUT_OF_RANGE
        values = [NewRecord(0, None, b"%d" % each) for each in range(offset, min(offset + 2, self.end))]
        records = build_batch(values, base_offset=offset) if values and not outcome else b""
        data = PartitionData(partition_index=0, error_code=outcome, high_watermark=self.end, records=records)
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[data])])

    def list_offsets(self, request):
        offset = self.begin if request.topics[0].partitions[0].timestamp == EARLIEST else self.end
        found = ListOffsetsPartitionResponse(partition_index=0, offset=offset)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[found])])


@pytest.fixture
def fetcher_of():
    """A fetcher of the topic from a position on, and the list of its warnings."""
    opened = []

    def start(topic, position=0):
        broker = ScriptedBroker({ApiKey.FETCH: topic.fetch, ApiKey.LIST_OFFSETS: topic.list_offsets})
        client = Client([Address("127.0.0.1", broker.port)], timeout=20)
        opened.extend([broker, client])
        warnings = []
        return Fetcher(client, {PARTITION: position}, isolation=READ_UNCOMMITTED, warn=warnings.append), warnings

    yield start
    for each in opened:
        each.__exit__()


def read_to(end, fetcher):
    values = []
    while fetcher.positions[PARTITION] != end:
        for partition, fetched in fetcher.poll(20).items():
            values += [record.value for record in fetched.records]
            fetcher.positions[partition] = fetched.next_offset
    return values


def numbers(begin, end):
    return [b"%d" % number for number in range(begin, end)]


def test_records_are_read_answer_by_answer(fetcher_of):
    fetcher, warnings = fetcher_of(Topic())
    assert read_to(6, fetcher) == numbers(0, 6)
    assert warnings == []


@pytest.mark.parametrize(
    "outcome", [None, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.FENCED_LEADER_EPOCH]
)
def test_transient_errors_are_retried(fetcher_of, outcome):
    fetcher, warnings = fetcher_of(Topic(ErrorCode.NONE, outcome, outcome))
    assert read_to(6, fetcher) == numbers(0, 6)
    assert warnings == []


def test_records_that_were_deleted_meanwhile_are_reported(fetcher_of):
    fetcher, warnings = fetcher_of(Topic(begin=4), position=1)
    assert read_to(6, fetcher) == numbers(4, 6)
    assert warnings == ["t-0 has no offset 1; continuing from 4"]


def test_offsets_beyond_the_end_are_reported(fetcher_of):
    fetcher, warnings = fetcher_of(Topic(), position=99)
    assert read_to(6, fetcher) == []
    assert warnings == ["t-0 has no offset 99; continuing from 6"]


def test_permanent_errors_are_raised(fetcher_of):
    fetcher, _ = fetcher_of(Topic(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(BrokerError, match="partition t-0: TOPIC_AUTHORIZATION_FAILED"):
        fetcher.poll(20)


def test_an_answer_to_an_outdated_request_is_dropped(fetcher_of):
    """The position is moved while the answer is on its way."""
    topic = Topic()
    moved = threading.Event()
    answer = topic.fetch
    topic.fetch = lambda request: answer(request) if moved.wait(20) else None
    fetcher, _ = fetcher_of(topic, position=4)
    assert fetcher.poll(0) == {}
    fetcher.positions[PARTITION] = 0
    moved.set()
    assert read_to(6, fetcher) == numbers(0, 6)


def test_a_partition_that_is_given_up_is_not_read(fetcher_of):
    fetcher, _ = fetcher_of(Topic())
    fetcher.stop([PARTITION])
    assert fetcher.poll(0) == {}


def test_a_broker_that_does_not_answer_is_given_up(fetcher_of, clock):
    over = threading.Event()
    topic = Topic()
    topic.fetch = lambda request: over.wait(20) and None
    fetcher, _ = fetcher_of(topic)
    assert fetcher.poll(0) == {}
    clock.now += 60
    with pytest.raises(TimedOut, match="did not answer within 20 s"):
        fetcher.poll(0)
    over.set()


def test_a_leader_that_hangs_up_every_time_is_given_up(fetcher_of, clock):
    """Everything but the fetch connection works."""
    fetcher, _ = fetcher_of(Topic(*[None] * 100_000))
    started = clock.now
    with pytest.raises(ConnectionLost):
        read_to(6, fetcher)
    assert 20 < clock.now - started < 21


def test_a_leader_that_cannot_be_reached_is_given_up(clock):
    """The bootstrap broker answers, but nothing listens at the address that it gives for the leader."""
    with ScriptedBroker() as broker, Client([Address("127.0.0.1", broker.port)], timeout=20) as client:
        metadata = broker.metadata
        held = HeldPort()
        nowhere = Address("127.0.0.1", held.number)

        def answer(request):
            told = metadata(request)
            told.brokers[0].port = nowhere.port
            return told

        broker.answers[ApiKey.METADATA] = answer
        fetcher = Fetcher(client, {PARTITION: 0}, isolation=READ_UNCOMMITTED, warn=print)
        started = clock.now
        with pytest.raises(Unreachable, match=f"cannot connect to {nowhere}"):
            read_to(6, fetcher)
        assert 20 < clock.now - started < 21


def test_a_temporary_failure_does_not_count_towards_the_next(fetcher_of, clock):
    topic = Topic(None, ErrorCode.NONE, None, ErrorCode.NONE)
    fetcher, _ = fetcher_of(topic)
    for _ in range(2):
        fetcher.poll(20)
        clock.now += 15
    assert read_to(6, fetcher) == numbers(0, 6)
