"""Transactional Produce requests to a real broker, whose coordinator of transactions says what a test wants it to."""

import asyncio

import pytest

from barnabas.broker.transaction.admission import Admission
from barnabas.broker.transaction.markers import Marker
from barnabas.client.requests.data import produce
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.topic_partition import TopicPartition
from tests.broker.server.harness import connected, frame
from tests.storage.support import read_all, values_of
from tests.support.batches import batch
from tests.support.manual_clock import ManualClock
from tests.support.running_broker import create_topic, partition, running

PRODUCER = 7
VERIFIED = range(3, 12)
ADDED = range(12, 14)
BACKOFF = 0.02  # add.partitions.to.txn.retry.backoff.ms


class Coordinator:
    """Answers at once what it is told to; holds what it is asked to add until it is released."""

    def __init__(self):
        self.error = ErrorCode.NONE
        self.holds = False
        self.asked = []
        self.held = []
        self._asked = asyncio.Event()

    def verify(self, transactional_id, producer_id, producer_epoch, partitions, answer):
        self._note("verify", transactional_id, producer_id, producer_epoch, partitions)
        answer(dict.fromkeys(partitions, self.error))

    def add_partitions(self, transactional_id, producer_id, producer_epoch, partitions, answer):
        self._note("add", transactional_id, producer_id, producer_epoch, partitions)
        if self.holds:
            self.held.append(lambda error: answer(dict.fromkeys(partitions, error)))
        else:
            answer(dict.fromkeys(partitions, self.error))

    def _note(self, question, *about):
        self.asked.append((question, *about))
        self._asked.set()

    async def until_asked(self, times):
        while len(self.asked) < times:
            self._asked.clear()
            await self._asked.wait()


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
async def broker(tmp_path, clock):
    async with running(tmp_path, clock=clock) as broker:
        broker.topic_id = await create_topic(broker, "t", partitions=3)
        yield broker


@pytest.fixture
def coordinator(broker, clock):
    coordinator = Coordinator()
    broker.admission = Admission(broker.config, clock, coordinator)
    return coordinator


@pytest.fixture
async def client(broker, coordinator):
    async with connected(broker.server) as client:
        yield client


def records(sequence=0, value=b"value", *, epoch=0, producer_id=PRODUCER, transactional=True):
    return batch(
        value, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=transactional
    )


def request(broker, *parts, version=12, **fields):
    """Batches for partitions of the topic, which the version names as it must."""
    topic = broker.topic_id if version >= 13 else "t"
    return produce(*((topic, index, data) for index, data in parts), transactional_id="id", **fields)


async def send(broker, client, *parts, version=12, **fields):
    """The error and the offset of each partition."""
    answer = await client.ask(ApiKey.PRODUCE, request(broker, *parts, version=version, **fields), version)
    return told(answer)


def told(answer):
    return [(each.error_code, each.base_offset) for topic in answer.responses for each in topic.partition_responses]


async def error_of(broker, client, *parts, **fields):
    ((error, _),) = await send(broker, client, *parts, **fields)
    return error


def values(broker, index=0):
    return values_of(read_all(partition(broker, "t", index).log))


class TestAsking:
    @pytest.mark.parametrize("version", VERIFIED)
    async def test_up_to_version_11_partitions_are_verified(self, broker, client, coordinator, version):
        sent = await send(broker, client, (0, records()), (2, records()), version=version)
        assert sent == [(ErrorCode.NONE, 0), (ErrorCode.NONE, 0)]
        assert coordinator.asked == [("verify", "id", PRODUCER, 0, [("t", 0), ("t", 2)])]

    @pytest.mark.parametrize("version", ADDED)
    async def test_from_version_12_on_they_are_added(self, broker, client, coordinator, version):
        sent = await send(broker, client, (0, records()), (2, records()), version=version)
        assert sent == [(ErrorCode.NONE, 0), (ErrorCode.NONE, 0)]
        assert coordinator.asked == [("add", "id", PRODUCER, 0, [("t", 0), ("t", 2)])]

    @pytest.mark.parametrize("version", [11, 12])
    async def test_the_coordinator_is_asked_once_per_partition(self, broker, client, coordinator, version):
        for sequence in range(3):
            await send(broker, client, (0, records(sequence)), version=version)
        assert len(coordinator.asked) == 1
        await send(broker, client, (0, records(3)), (1, records()), version=version)
        assert coordinator.asked[1:] == [("verify" if version == 11 else "add", "id", PRODUCER, 0, [("t", 1)])]

    async def test_the_coordinator_is_asked_again_for_another_epoch(self, broker, client, coordinator):
        await send(broker, client, (0, records()))
        await send(broker, client, (0, records(epoch=1)))
        assert [asked[3] for asked in coordinator.asked] == [0, 1]

    @pytest.mark.parametrize("version", [11, 12])
    async def test_the_coordinator_is_not_asked_about_an_outdated_epoch(self, broker, client, coordinator, version):
        await send(broker, client, (0, records(epoch=1)), version=version)
        coordinator.error = ErrorCode.INVALID_PRODUCER_ID_MAPPING
        sent = await send(broker, client, (0, records(epoch=0)), (1, records(epoch=0)), version=version)
        assert sent == [(ErrorCode.INVALID_PRODUCER_EPOCH, -1), (ErrorCode.INVALID_PRODUCER_ID_MAPPING, -1)]
        assert [asked[3:] for asked in coordinator.asked] == [(1, [("t", 0)]), (0, [("t", 1)])]

    async def test_the_coordinator_is_not_asked_about_batches_outside_transactions(self, broker, client, coordinator):
        plain = records(transactional=False)
        without_producer = batch(b"x", transactional=True)
        assert await send(broker, client, (0, plain), (1, without_producer)) == [(ErrorCode.NONE, 0)] * 2
        assert coordinator.asked == []

    async def test_whether_to_verify_is_a_setting(self, tmp_path, clock):
        async with running(tmp_path / "other", transaction_partition_verification_enable=False) as broker:
            await create_topic(broker, "t")
            coordinator = Coordinator()
            coordinator.error = ErrorCode.TRANSACTION_ABORTABLE
            broker.admission = Admission(broker.config, clock, coordinator)
            async with connected(broker.server) as client:
                assert await error_of(broker, client, (0, records()), version=11) == ErrorCode.NONE
                assert coordinator.asked == []
                assert await error_of(broker, client, (0, records(producer_id=8)), version=12) != ErrorCode.NONE


class TestErrors:
    @pytest.mark.parametrize("version", VERIFIED)
    async def test_of_a_partition_that_was_not_added(self, broker, client, coordinator, version):
        coordinator.error = ErrorCode.TRANSACTION_ABORTABLE
        expected = ErrorCode.TRANSACTION_ABORTABLE if version >= 11 else ErrorCode.INVALID_TXN_STATE
        assert await error_of(broker, client, (0, records()), version=version) == expected
        assert values(broker) == []

    @pytest.mark.parametrize("version", [11, 12])
    @pytest.mark.parametrize(
        ("error", "expected"),
        [
            (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
            (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH),
            (ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
            (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_ENOUGH_REPLICAS),
            (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_ENOUGH_REPLICAS),
        ],
    )
    async def test_of_the_coordinator_become_those_of_a_produce(
        self, broker, client, coordinator, version, error, expected
    ):
        coordinator.error = error
        assert await error_of(broker, client, (0, records()), version=version) == expected

    async def test_an_older_client_does_not_know_concurrent_transactions(self, broker, client, coordinator):
        coordinator.error = ErrorCode.CONCURRENT_TRANSACTIONS
        assert await error_of(broker, client, (0, records()), version=11) == ErrorCode.NOT_ENOUGH_REPLICAS

    async def test_of_one_partition_do_not_affect_others(self, broker, client, coordinator):
        await send(broker, client, (0, records()), version=11)
        coordinator.error = ErrorCode.TRANSACTION_ABORTABLE
        plain = batch(b"plain")
        sent = await send(broker, client, (0, records(1)), (1, records()), (2, plain), version=11)
        assert sent == [(ErrorCode.NONE, 1), (ErrorCode.TRANSACTION_ABORTABLE, -1), (ErrorCode.NONE, 0)]

    async def test_of_two_producers_in_one_request(self, broker, client, coordinator):
        both = await send(broker, client, (0, records()), (1, records(producer_id=8)))
        assert [error for error, _ in both] == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2
        assert coordinator.asked == []

    async def test_without_acks_close_the_connection(self, broker, client, coordinator):
        coordinator.error = ErrorCode.INVALID_PRODUCER_EPOCH
        client.send(frame(ApiKey.PRODUCE, request(broker, (0, records()), acks=0), 12))
        assert await client.closed()


class TestOrder:
    def several(self, broker, *requests):
        return b"".join(frame(ApiKey.PRODUCE, each, 12, correlation_id=n) for n, each in enumerate(requests))

    async def test_what_comes_behind_a_batch_that_waits_waits_too(self, broker, client, coordinator):
        coordinator.holds = True
        client.send(self.several(broker, *(request(broker, (0, records(n, b"%d" % n))) for n in range(3))))
        await coordinator.until_asked(1)
        assert values(broker) == []
        coordinator.held.pop()(ErrorCode.NONE)
        assert [told((await client.answer(ApiKey.PRODUCE, 12))[1]) for _ in range(3)] == [
            [(ErrorCode.NONE, n)] for n in range(3)
        ]
        assert values(broker) == [b"0", b"1", b"2"]
        assert len(coordinator.asked) == 1

    async def test_what_waits_behind_a_refused_batch_is_refused_too(self, broker, client, coordinator):
        coordinator.holds = True
        client.send(self.several(broker, *(request(broker, (0, records(n))) for n in range(3))))
        await coordinator.until_asked(1)
        coordinator.held.pop()(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        for _ in range(3):
            assert told((await client.answer(ApiKey.PRODUCE, 12))[1]) == [(ErrorCode.NOT_ENOUGH_REPLICAS, -1)]
        coordinator.holds = False
        # The client sends all of them again. One that arrives alone is not mistaken for the first.
        assert await error_of(broker, client, (0, records(1))) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert [await error_of(broker, client, (0, records(n))) for n in range(3)] == [ErrorCode.NONE] * 3

    async def test_other_partitions_and_producers_do_not_wait(self, broker, client, coordinator):
        coordinator.holds = True
        client.send(frame(ApiKey.PRODUCE, request(broker, (0, records())), 12))
        await coordinator.until_asked(1)
        coordinator.holds = False
        async with connected(broker.server) as other:
            assert await error_of(broker, other, (1, records())) == ErrorCode.NONE
            assert await error_of(broker, other, (0, records(producer_id=8))) == ErrorCode.NONE
        coordinator.held.pop()(ErrorCode.NONE)
        assert told((await client.answer(ApiKey.PRODUCE, 12))[1]) == [(ErrorCode.NONE, 1)]

    async def test_the_next_epoch_is_asked_about_by_itself(self, broker, client, coordinator):
        coordinator.holds = True
        client.send(frame(ApiKey.PRODUCE, request(broker, (0, records())), 12))
        await coordinator.until_asked(1)
        async with connected(broker.server) as other:
            other.send(frame(ApiKey.PRODUCE, request(broker, (0, records(epoch=1)), (1, records(epoch=1))), 12))
            await coordinator.until_asked(2)
            coordinator.held[0](ErrorCode.PRODUCER_FENCED)
            await coordinator.until_asked(3)
            for done in coordinator.held[1:]:
                done(ErrorCode.NONE)
            assert told((await other.answer(ApiKey.PRODUCE, 12))[1]) == [(ErrorCode.NONE, 0)] * 2
        assert told((await client.answer(ApiKey.PRODUCE, 12))[1]) == [(ErrorCode.INVALID_PRODUCER_EPOCH, -1)]
        assert [asked[3:] for asked in coordinator.asked] == [(0, [("t", 0)]), (1, [("t", 1)]), (1, [("t", 0)])]

    async def test_a_zombie_that_comes_behind_it_does_no_harm(self, broker, client, coordinator):
        coordinator.holds = True
        client.send(self.several(broker, request(broker, (0, records(epoch=1))), request(broker, (0, records()))))
        await coordinator.until_asked(1)
        coordinator.held.pop()(ErrorCode.NONE)
        await coordinator.until_asked(2)
        coordinator.held.pop()(ErrorCode.PRODUCER_FENCED)
        assert told((await client.answer(ApiKey.PRODUCE, 12))[1]) == [(ErrorCode.NONE, 0)]
        assert told((await client.answer(ApiKey.PRODUCE, 12))[1]) == [(ErrorCode.INVALID_PRODUCER_EPOCH, -1)]

    async def test_a_client_that_leaves_while_its_batch_waits_has_appended_all_the_same(
        self, broker, client, coordinator
    ):
        coordinator.holds = True
        async with connected(broker.server) as leaving:
            leaving.send(frame(ApiKey.PRODUCE, request(broker, (0, records())), 12))
            await coordinator.until_asked(1)
        coordinator.held.pop()(ErrorCode.NONE)
        assert await error_of(broker, client, (0, records(1))) == ErrorCode.NONE
        assert len(values(broker)) == 2


class TestTheTransactionBefore:
    """Its end is answered before all its markers are written."""

    async def test_is_waited_for(self, broker, client, coordinator, clock):
        coordinator.error = ErrorCode.CONCURRENT_TRANSACTIONS
        client.send(frame(ApiKey.PRODUCE, request(broker, (0, records())), 12))
        await coordinator.until_asked(1)
        clock.advance(BACKOFF)
        assert len(coordinator.asked) == 2
        coordinator.error = ErrorCode.NONE
        clock.advance(BACKOFF)
        assert told((await client.answer(ApiKey.PRODUCE, 12))[1]) == [(ErrorCode.NONE, 0)]

    async def test_its_marker_does_not_refuse_what_waits(self, broker, client, coordinator, clock):
        """The marker has the epoch of the producer's next transaction, whose first batch has been here before it."""
        coordinator.error = ErrorCode.CONCURRENT_TRANSACTIONS
        client.send(frame(ApiKey.PRODUCE, request(broker, (0, records(epoch=1))), 12))
        await coordinator.until_asked(1)
        marker = Marker(PRODUCER, 1, 0, commit=True, partitions=[TopicPartition("t", 0)], transaction_version=2)
        written = asyncio.get_running_loop().create_future()
        broker.transaction_markers.write(marker, written.set_result)
        assert set((await written).values()) == {ErrorCode.NONE}
        coordinator.error = ErrorCode.NONE
        clock.advance(BACKOFF)
        assert told((await client.answer(ApiKey.PRODUCE, 12))[1]) == [(ErrorCode.NONE, 1)]

    async def test_its_marker_comes_while_the_next_one_waits(self, broker, client, coordinator):
        """With one epoch for several transactions, the marker may be that of the one before, or of this one."""
        coordinator.holds = True
        client.send(frame(ApiKey.PRODUCE, request(broker, (0, records())), 12))
        client.send(frame(ApiKey.PRODUCE, request(broker, (0, records(1))), 12))
        await coordinator.until_asked(1)
        partition(broker, "t", 0).admissions.ended(PRODUCER, 0)
        coordinator.held.pop()(ErrorCode.NONE)  # the answer to a question from before: it is asked again
        await coordinator.until_asked(2)
        coordinator.held.pop()(ErrorCode.NONE)
        for offset in range(2):
            assert told((await client.answer(ApiKey.PRODUCE, 12))[1]) == [(ErrorCode.NONE, offset)]

    async def test_nothing_is_appended_if_the_marker_ended_this_transaction(self, broker, client, coordinator):
        coordinator.holds = True
        client.send(frame(ApiKey.PRODUCE, request(broker, (0, records())), 12))
        await coordinator.until_asked(1)
        partition(broker, "t", 0).admissions.ended(PRODUCER, 0)
        coordinator.held.pop()(ErrorCode.NONE)
        await coordinator.until_asked(2)
        coordinator.held.pop()(ErrorCode.INVALID_TXN_STATE)
        assert told((await client.answer(ApiKey.PRODUCE, 12))[1]) == [(ErrorCode.INVALID_TXN_STATE, -1)]
        assert values(broker) == []

    async def test_it_is_not_waited_for_forever(self, broker, client, coordinator, clock):
        coordinator.error = ErrorCode.CONCURRENT_TRANSACTIONS
        client.send(frame(ApiKey.PRODUCE, request(broker, (0, records())), 12))
        await coordinator.until_asked(1)
        clock.advance(1)
        assert told((await client.answer(ApiKey.PRODUCE, 12))[1]) == [(ErrorCode.CONCURRENT_TRANSACTIONS, -1)]
        assert 4 <= len(coordinator.asked) <= 7


class TestAnotherBrokerLeads:
    async def test_what_waits_is_refused(self, broker, client, coordinator):
        coordinator.holds = True
        client.send(frame(ApiKey.PRODUCE, request(broker, (0, records())), 12))
        await coordinator.until_asked(1)
        part = partition(broker, "t", 0)
        part.follow(9, 1)
        broker.admission.on_not_leader(part)
        assert told((await client.answer(ApiKey.PRODUCE, 12))[1]) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]
        coordinator.held[0](ErrorCode.NONE)  # too late
        assert values(broker) == []

    async def test_the_coordinator_is_asked_again_about_what_was_admitted(self, broker, client, coordinator):
        """Meanwhile the transaction may have ended there."""
        part = partition(broker, "t", 0)
        part.admissions.try_out(PRODUCER, 0, 0, from_zero=False, now_ms=0)
        part.admissions.admit(PRODUCER, 0)
        part.follow(9, 1)
        broker.admission.on_not_leader(part)
        part.lead(2)
        broker.admission.on_leader(part)
        await send(broker, client, (0, records()))
        assert len(coordinator.asked) == 1
