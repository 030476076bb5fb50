"""The share partitions of a broker, and what becomes of them when members come and go."""

import asyncio
from types import SimpleNamespace

import pytest

from barnabas.broker.share.in_flight import Acquisition, FetchedBatch, Limits
from barnabas.broker.share.key import SharePartitionKey
from barnabas.broker.share.partitions import SharePartitions
from barnabas.broker.share.sessions import SessionKey
from barnabas.protocol.messages import read_share_group_state as reading
from barnabas.protocol.messages import write_share_group_state as writing
from tests.support.manual_clock import ManualClock

TOPIC = bytes(range(16))
LIMITS = Limits(delivery_count=5, record_locks=100)


class ShareState:
    """A share coordinator that knows nothing yet, and agrees with everything."""

    def __init__(self):
        self.written = []
        self.writes = asyncio.Event()  # while it is not set, it is slow
        self.writes.set()

    async def read(self, request):
        (topic,) = request.topics
        found = [
            reading.PartitionResult(partition=each.partition, start_offset=0, state_epoch=0, state_batches=[])
            for each in topic.partitions
        ]
        return reading.ReadShareGroupStateResponse(
            results=[reading.ReadStateResult(topic_id=topic.topic_id, partitions=found)]
        )

    async def write(self, request):
        (topic,) = request.topics
        for data in topic.partitions:
            self.written += [(each.first_offset, each.delivery_count) for each in data.state_batches]
        await self.writes.wait()
        found = [writing.PartitionResult(partition=each.partition) for each in topic.partitions]
        return writing.WriteShareGroupStateResponse(
            results=[writing.WriteStateResult(topic_id=topic.topic_id, partitions=found)]
        )


class Partition:
    leader_epoch = 1
    leadership = object()
    log = SimpleNamespace()


class World:
    """All partitions are led here, and are the same one; members have a session and a connection each."""

    def __init__(self):
        self._tasks = []
        self.partition = Partition()
        replicas = SimpleNamespace(find=lambda topic_id, index: self.partition)
        self.settings = SimpleNamespace(limits=lambda group: LIMITS, lock_duration_ms=lambda group: 30_000)
        self.state = ShareState()
        self.shares = SharePartitions(replicas, self.state, self.settings, ManualClock(), self._spawn, lambda: 100)
        self.epochs = {}

    def _spawn(self, coroutine):
        self._tasks.append(asyncio.ensure_future(coroutine))

    async def settled(self):
        while self._tasks:
            await self._tasks.pop()

    async def read(self, member, index, *, forgets=()):
        """A member reads a partition, and gets ten records of it."""
        key, epoch = SessionKey("g", member), self.epochs.get(member, 0)
        self.shares.sessions.fetch(key, epoch, member, [(TOPIC, index)], [(TOPIC, each) for each in forgets], False)
        self.epochs[member] = epoch + 1
        share = self.shares.get(SharePartitionKey("g", TOPIC, index))
        await self.settled()
        asked = Acquisition(member, max_records=10, batch_size=100, is_exact=True, deadline=1e9)
        return share.in_flight.acquire(asked, [FetchedBatch(0, 99)], share.in_flight.next_fetch_offset(), LIMITS)

    @property
    def known(self):
        return sorted(share.key.partition for share in self.shares)


@pytest.fixture
def world():
    return World()


async def test_a_group_without_members_is_forgotten_also_where_it_has_read_before(world):
    """Its offsets may be set while it is empty. And what a member had where it no longer reads is for others."""
    await world.read("a", 0)
    await world.read("a", 1, forgets=[0])
    world.shares.end_session(SessionKey("g", "a"))
    await world.settled()
    assert world.known == []
    assert [each.first for each in await world.read("b", 0)] == [0]


async def test_what_the_last_members_give_back_is_written(world):
    """How often records were delivered counts, also for the next members."""
    for member in "abc":
        await world.read(member, 0)
    world.state.writes.clear()
    for member in "abc":
        world.shares.end_session(SessionKey("g", member))
        await asyncio.sleep(0)  # the first write is under way
    world.state.writes.set()
    await world.settled()
    assert world.known == []
    assert world.state.written == [(0, 1), (10, 1), (20, 1)]


async def test_while_others_read_the_group_knows_how_far_it_has_come(world):
    await world.read("a", 0)
    await world.read("b", 0)
    world.shares.connection_closed("a")
    await world.settled()
    assert world.known == [0]
    assert [each[:2] for each in await world.read("b", 0)] == [(0, 9)]  # what the other has had
    assert [each[:2] for each in await world.read("b", 0)] == [(20, 29)]


@pytest.mark.parametrize(("epoch", "known"), [(2, [0]), (3, [])])
async def test_what_another_leader_may_have_changed_is_loaded_again(world, epoch, known):
    await world.read("a", 0)
    world.partition.leader_epoch = epoch
    world.shares.on_leader(world.partition)
    assert world.known == known
    world.partition.leader_epoch = epoch + 1
    world.shares.on_leader(world.partition)
    assert world.known == known
