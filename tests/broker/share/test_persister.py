import asyncio
import itertools

import pytest

from barnabas.broker.controller.images import PartitionImage
from barnabas.broker.interbroker.channel import ChannelError
from barnabas.broker.internal_topics import SHARE_GROUP_STATE
from barnabas.broker.server import pieces
from barnabas.broker.share.persister import Persister
from barnabas.client.requests.shares import delete_share_group_state
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionResult,
)
from tests.support.manual_clock import ManualClock

TOPIC = bytes(16)
OWN, OTHER = 1, 2


def answer(request, error=ErrorCode.NONE):
    return DeleteShareGroupStateResponse(
        results=[
            DeleteStateResult(
                topic_id=topic.topic_id,
                partitions=[PartitionResult(partition=each.partition, error_code=error) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )


class Broker:
    """A share coordinator, here or over a channel. It says what it was told to say, and then yes."""

    def __init__(self):
        self.asked = []
        self.says = []

    async def delete(self, request):
        self.asked.append([each.partition for topic in request.topics for each in topic.partitions])
        said = self.says.pop(0) if self.says else ErrorCode.NONE
        if isinstance(said, Exception):
            raise said
        return answer(request, said)

    async def request(self, key, request, version, response_type, timeout_ms):
        return await self.delete(request)


class World:
    def __init__(self):
        self.here, self.there = Broker(), Broker()
        self.leaders = [OWN, OTHER]
        self.clock = ManualClock()
        self.clock.call_later = self._at_once
        self.pauses = []
        self.persister = Persister(OWN, self, self, self, self.clock, lambda: 1000)

    def _at_once(self, delay, callback):
        self.pauses.append(delay)
        self.clock.advance(delay)
        callback()

    def topic(self, name):
        assert name == SHARE_GROUP_STATE
        return self

    @property
    def partitions(self):
        return [PartitionImage(index, (OWN, OTHER), leader) for index, leader in enumerate(self.leaders)]

    def channel(self, broker_id):
        return self.there if broker_id == OTHER else None

    async def ensure_topic(self):
        return ErrorCode.NONE

    async def initialize(self, request): ...

    async def read(self, request): ...

    async def write(self, request): ...

    async def read_summary(self, request): ...

    async def delete(self, request):
        return await self.here.delete(request)

    async def errors(self, count):
        """What becomes of so many partitions, by number."""
        asked = delete_share_group_state("g", *((TOPIC, index) for index in range(count)))
        response = await self.persister.delete(asked)
        return [each.error_code for topic in response.results for each in topic.partitions]


@pytest.fixture
def world():
    return World()


async def test_each_partition_goes_to_its_coordinator(world):
    assert await world.errors(8) == [ErrorCode.NONE] * 8
    (here,), (there,) = world.here.asked, world.there.asked
    assert here
    assert there
    assert sorted(here + there) == list(range(8))


async def test_while_a_coordinator_moves_it_is_asked_again(world):
    world.there.says = [ErrorCode.NOT_COORDINATOR, ChannelError("lost"), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    assert await world.errors(8) == [ErrorCode.NONE] * 8
    assert len(world.there.asked) == 4
    assert len(world.here.asked) == 1
    assert world.pauses == sorted(world.pauses)


async def test_nobody_waits_forever(world):
    world.leaders = [-1, -1]
    assert await world.errors(2) == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    assert sum(world.pauses) < 20


async def test_other_errors_are_answers(world):
    world.leaders = [OWN, OWN]
    world.here.says = [ErrorCode.FENCED_STATE_EPOCH]
    assert await world.errors(2) == [ErrorCode.FENCED_STATE_EPOCH] * 2
    assert not world.pauses


async def test_a_coordinator_that_fails_is_an_error_in_each_result(world):
    world.leaders = [OWN, OWN]
    world.here.says = [RuntimeError("unforeseen")]
    assert await world.errors(2) == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2


async def test_many_partitions_do_not_make_a_turn_of_the_loop_long(world, monkeypatch):
    monkeypatch.setattr(pieces, "perf_counter", itertools.count(0.0).__next__)  # each step takes longer than a piece
    most = looked_up = 0
    loop = asyncio.get_running_loop()
    leader = world.persister._leader

    def counted(key):
        nonlocal looked_up
        looked_up += 1
        return leader(key)

    def turn():
        nonlocal looked_up, most
        most, looked_up = max(most, looked_up), 0
        loop.call_soon(turn)

    world.persister._leader = counted
    turn()
    assert await world.errors(100) == [ErrorCode.NONE] * 100
    assert most == 1
