"""A share partition writes what becomes of its records, one write at a time, and survives what goes wrong there."""

import asyncio
from types import SimpleNamespace

import pytest

from barnabas.broker.share.in_flight import Acknowledgement, AcknowledgeType, Acquisition, FetchedBatch, Limits
from barnabas.broker.share.key import SharePartitionKey
from barnabas.broker.share.partition import SharePartition
from barnabas.broker.share.state_batches import DeliveryState
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import read_share_group_state as reading
from barnabas.protocol.messages import write_share_group_state as writing
from tests.support.manual_clock import ManualClock

KEY = SharePartitionKey("group", bytes(16), 0)
LIMITS = Limits(delivery_count=5, record_locks=100)
ACCEPT = (AcknowledgeType.ACCEPT,)


class ShareState:
    """A share coordinator that says what it was told to say, and then yes."""

    def __init__(self):
        self.says = []
        self.written = []

    def _said(self):
        said = self.says.pop(0) if self.says else ErrorCode.NONE
        if isinstance(said, Exception):
            raise said
        return said

    async def read(self, request):
        error = self._said()
        found = reading.PartitionResult(partition=0, error_code=error, start_offset=0, state_epoch=3, state_batches=[])
        return reading.ReadShareGroupStateResponse(
            results=[reading.ReadStateResult(topic_id=KEY.topic_id, partitions=[found])]
        )

    async def write(self, request):
        data = request.topics[0].partitions[0]
        self.written.append([(each.first_offset, each.last_offset, each.delivery_state) for each in data.state_batches])
        found = writing.PartitionResult(partition=0, error_code=self._said())
        return writing.WriteShareGroupStateResponse(
            results=[writing.WriteStateResult(topic_id=KEY.topic_id, partitions=[found])]
        )


class World:
    def __init__(self):
        self.state = ShareState()
        self.dropped = []
        self.answers = []
        self._tasks = []

    async def loaded(self):
        settings = SimpleNamespace(limits=lambda group: LIMITS, lock_duration_ms=lambda group: 30_000)
        partition = SimpleNamespace(leader_epoch=1, log=SimpleNamespace())
        found = SharePartition(
            KEY, partition, self.state, settings, ManualClock(), self._spawn, None, self.dropped.append
        )
        await self.settled()
        return found

    def _spawn(self, coroutine):
        self._tasks.append(asyncio.ensure_future(coroutine))

    async def settled(self):
        while self._tasks:
            await self._tasks.pop()

    def give(self, share_partition, first, last):
        asked = Acquisition("member", max_records=100, batch_size=100, is_exact=False, deadline=1e9)
        share_partition.in_flight.acquire(asked, [FetchedBatch(first, last)], first, LIMITS)

    def accept(self, share_partition, first, last):
        share_partition.acknowledge("member", [Acknowledgement(first, last, ACCEPT)], self.answers.append)


@pytest.fixture
def world():
    return World()


async def test_an_acknowledgement_counts_when_it_is_written(world):
    found = await world.loaded()
    world.give(found, 0, 9)
    world.accept(found, 0, 4)
    assert found.in_flight.start_offset == 0
    await world.settled()
    assert world.answers == [ErrorCode.NONE]
    assert found.in_flight.start_offset == 5
    assert world.state.written == [[(0, 4, DeliveryState.ACKNOWLEDGED)]]


async def test_what_comes_during_a_write_goes_together_in_the_next_one(world):
    found = await world.loaded()
    world.give(found, 0, 9)
    world.accept(found, 0, 0)
    await asyncio.sleep(0)  # the first write is under way
    world.accept(found, 1, 1)
    world.accept(found, 2, 2)
    await world.settled()
    assert [[batch[:2] for batch in write] for write in world.state.written] == [[(0, 0)], [(1, 1), (2, 2)]]
    assert world.answers == [ErrorCode.NONE] * 3


@pytest.mark.parametrize("failure", [ErrorCode.NOT_COORDINATOR, RuntimeError("nobody foresaw it")])
async def test_a_write_that_fails_leaves_the_records_with_their_member(world, failure):
    found = await world.loaded()
    world.give(found, 0, 9)
    world.state.says = [failure]
    world.accept(found, 0, 9)
    await world.settled()
    assert world.answers[0] != ErrorCode.NONE
    assert found.in_flight.start_offset == 0
    world.accept(found, 0, 9)
    await world.settled()
    assert world.answers[1] == ErrorCode.NONE
    assert found.in_flight.start_offset == 10
    assert not world.dropped


@pytest.mark.parametrize("fenced", [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH])
async def test_a_leader_that_was_fenced_drops_what_it_knows(world, fenced):
    found = await world.loaded()
    world.give(found, 0, 9)
    world.state.says = [fenced]
    world.accept(found, 0, 9)
    await world.settled()
    assert world.answers == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert world.dropped == [found]


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_ID_NOT_FOUND),
        (RuntimeError("nobody foresaw it"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
async def test_a_state_that_cannot_be_loaded_is_dropped_and_tried_again_later(world, failure, error):
    world.state.says = [failure]
    found = await world.loaded()
    assert (found.error, world.dropped) == (error, [found])
