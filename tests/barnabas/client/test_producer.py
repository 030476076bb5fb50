"""Batches on their way: each arrives once and in order, whatever happens to the connection."""

import pytest

from barnabas.client.client import Client
from barnabas.client.connection import Address
from barnabas.client.errors import BrokerError, ConnectionLost
from barnabas.client.producer import Producer
from barnabas.client.record_encoder import Records
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.init_producer_id import InitProducerIdResponse
from barnabas.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from barnabas.protocol.records.batch import validate_batch
from barnabas.protocol.records.compression import CompressionType
from barnabas.protocol.records.record import read_records
from tests.support.scripted_broker import ScriptedBroker

PRODUCER_ID = 42


class Log:
    """Accepts Produce requests as a broker would: it drops repeated batches and refuses those out of order.

    `outcomes` says, request by request, what goes wrong: an error instead of appending, "lost" to hang up before and
    "unheard" to hang up after.
    """

    def __init__(self, *outcomes):
        self.outcomes = list(outcomes)
        self.values = {}
        self.records = []
        self.headers = []
        self._sequences = {}

    def __call__(self, request):
        outcome = self.outcomes.pop(0) if self.outcomes else ErrorCode.NONE
        if outcome == "lost":
            return None
        answers = []
        for data in request.topic_data[0].partition_data:
            error = outcome if isinstance(outcome, ErrorCode) else ErrorCode.NONE
            if not error:
                error = self.append(data.index, memoryview(data.records))
            answers.append(PartitionProduceResponse(index=data.index, error_code=error, base_offset=0))
        if outcome == "unheard":
            return None
        return ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=answers)])

    def append(self, index, records):
        header = validate_batch(records)
        self.headers.append(header)
        if header.producer_id == PRODUCER_ID:
            expected = self._sequences.get(index, 0)
            if header.base_sequence < expected:
                return ErrorCode.DUPLICATE_SEQUENCE_NUMBER
            if header.base_sequence > expected:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            self._sequences[index] = header.base_sequence + header.record_count
        read = list(read_records(records, header))
        self.records += read
        self.values.setdefault(index, []).extend(record.value for record in read)
        return ErrorCode.NONE


@pytest.fixture
def produce():
    """A producer to a topic with this many partitions, whose requests the log answers."""
    opened = []

    def start(log, partitions=1, **options):
        broker = ScriptedBroker({ApiKey.PRODUCE: log, ApiKey.INIT_PRODUCER_ID: init_producer_id()})
        broker.partitions = {"t": partitions}
        client = Client([Address("127.0.0.1", broker.port)], timeout=20)
        opened.extend([broker, client])
        return Producer(client, "t", **options)

    yield start
    for each in opened:
        each.__exit__()


def init_producer_id():
    """The first time that a broker is asked for an id, it has to find out which ids it may allocate."""
    errors = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]

    def answer(request):
        error = errors.pop() if errors else ErrorCode.NONE
        return InitProducerIdResponse(error_code=error, producer_id=-1 if error else PRODUCER_ID, producer_epoch=0)

    return answer


def numbers(begin, end):
    return [b"%d" % number for number in range(begin, end)]


def test_everything_arrives_in_order(produce):
    log = Log()
    producer = produce(log)
    for begin in range(0, 100, 10):
        producer.send(Records(numbers(begin, begin + 10)))
    producer.flush()
    assert log.values == {0: numbers(0, 100)}
    assert producer.acknowledged == 100
    assert [header.base_sequence for header in log.headers] == list(range(0, 100, 10))


@pytest.mark.parametrize(
    "outcome", ["lost", "unheard", ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS]
)
def test_a_batch_with_a_transient_error_is_sent_again_and_arrives_once(produce, outcome):
    log = Log(ErrorCode.NONE, outcome, ErrorCode.NONE, outcome)
    producer = produce(log)
    for begin in range(0, 100, 10):
        producer.send(Records(numbers(begin, begin + 10)))
    producer.flush()
    assert log.values == {0: numbers(0, 100)}
    assert producer.acknowledged == 100


def test_a_permanent_failure_is_an_error(produce):
    producer = produce(Log(ErrorCode.MESSAGE_TOO_LARGE))
    producer.send(Records([b"x"]))
    with pytest.raises(BrokerError, match=r"partition t-0: .*max\.message\.bytes \(MESSAGE_TOO_LARGE\)"):
        producer.flush()
    assert producer.acknowledged == 0


def test_a_failure_that_persists_until_the_timeout_is_an_error(produce):
    producer = produce(Log(*[ErrorCode.NOT_ENOUGH_REPLICAS] * 10_000))
    producer.send(Records([b"x"]))
    with pytest.raises(BrokerError, match="NOT_ENOUGH_REPLICAS"):
        producer.flush()


def test_without_acks_from_all_nothing_is_sent_twice(produce):
    log = Log("unheard")
    producer = produce(log, acks=1)
    producer.send(Records([b"x"]))
    with pytest.raises(ConnectionLost):
        producer.flush()
    assert log.values == {0: [b"x"]}
    assert log.headers[0].producer_id == -1


def test_keys_decide_and_records_of_one_key_stay_in_order(produce):
    log = Log()
    producer = produce(log, partitions=4)
    producer.send(Records(numbers(0, 20), keys=[b"a", b"b", b"c", b"d"] * 5))
    producer.flush()
    assert sorted(value for values in log.values.values() for value in values) == sorted(numbers(0, 20))
    for index, values in log.values.items():
        assert values == sorted(values, key=int), index
    assert len(log.values) > 1


def test_records_without_key_take_turns_as_a_whole(produce):
    log = Log()
    producer = produce(log, partitions=3)
    for begin in range(0, 60, 10):
        producer.send(Records(numbers(begin, begin + 10)))
    producer.flush()
    assert {index: len(values) for index, values in log.values.items()} == {0: 20, 1: 20, 2: 20}
    assert len(log.headers) == 6


def test_a_partition_that_is_named(produce):
    log = Log()
    producer = produce(log, partitions=3, partition=2)
    producer.send(Records([b"1", b"2"], keys=[b"a", b"b"]))
    producer.flush()
    assert log.values == {2: [b"1", b"2"]}


def test_a_partition_that_does_not_exist(produce):
    with pytest.raises(BrokerError, match="topic 't' has 3 partitions; partition 3"):
        produce(Log(), partitions=3, partition=3)


def test_records_that_do_not_fit_into_one_batch_become_several(produce):
    log = Log()
    producer = produce(log, batch_bytes=1000)
    producer.send(Records([b"x" * 90] * 50 + [b"y" * 5000]))
    producer.flush()
    assert log.values == {0: [b"x" * 90] * 50 + [b"y" * 5000]}
    assert all(header.batch_length <= 1100 for header in log.headers[:-1])
    assert log.headers[-1].record_count == 1


def test_compression_and_headers(produce):
    log = Log()
    producer = produce(log, compression=CompressionType.ZSTD, headers=[("h", b"1")])
    producer.send(Records([b"x" * 1000] * 10))
    producer.flush()
    assert log.values == {0: [b"x" * 1000] * 10}
    assert log.headers[0].compression == CompressionType.ZSTD
    assert log.headers[0].batch_length < 1000


def test_records_have_headers_and_timestamps_of_their_own(produce, clock):
    log = Log()
    producer = produce(log, headers=[("common", b"1")])
    producer.send(
        Records([b"a", b"b", b"c"], headers=[[("own", None)], [], [("own", b"2")]], timestamps=[5000, None, 3000])
    )
    producer.flush()
    now = int(clock.now * 1000)
    assert [(record.timestamp, list(record.headers)) for record in log.records] == [
        (5000, [("common", b"1"), ("own", None)]),
        (now, [("common", b"1")]),
        (3000, [("common", b"1"), ("own", b"2")]),
    ]
    assert (log.headers[0].base_timestamp, log.headers[0].max_timestamp) == (5000, now)


def test_records_that_name_a_partition_go_there_and_the_others_by_their_keys(produce):
    log = Log()
    producer = produce(log, partitions=3)
    producer.send(Records([b"1", b"2", b"3", b"4"], keys=[b"a", b"a", None, None], partitions=[2, None, None, 2]))
    producer.flush()
    assert log.values[2] == [b"1", b"4"]
    assert sorted(value for values in log.values.values() for value in values) == [b"1", b"2", b"3", b"4"]
