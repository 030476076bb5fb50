"""Asking the controller for other in-sync replicas: together, one request at a time, and again if necessary."""

import asyncio

import pytest
from structlog.testing import capture_logs

from barnabas.broker.interbroker.channel import ChannelError
from barnabas.broker.replica.isr_changes import IsrChanges
from barnabas.broker.replica.partition import Partition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_partition import AlterPartitionResponse, PartitionResponse, TopicResponse
from tests.broker.replica.partition.fakes import FakeReplicas
from tests.storage.support import batch, make_log

TOPIC_ID = bytes(range(16))
LAG_MS = 30_000


class Controller:
    """Holds requests back until it is told what to answer."""

    def __init__(self):
        self.requests = []
        self._answers = []

    async def ask(self, key, request, version, answer, timeout_ms):
        self.requests.append({p.partition_index: p for topic in request.topics for p in topic.partitions})
        self._answers.append(asyncio.get_running_loop().create_future())
        return await self._answers[-1]

    async def confirm(self, *errors):
        """Answer the last request, with errors for its first partitions."""
        codes = [*errors, *[ErrorCode.NONE] * len(self.requests[-1])]
        partitions = [
            PartitionResponse(
                partition_index=index,
                error_code=error,
                leader_epoch=wanted.leader_epoch,
                partition_epoch=wanted.partition_epoch + 1,
                isr=[state.broker_id for state in wanted.new_isr_with_epochs],
            )
            for (index, wanted), error in zip(self.requests[-1].items(), codes, strict=False)
        ]
        await self.answer(AlterPartitionResponse(topics=[TopicResponse(topic_id=TOPIC_ID, partitions=partitions)]))

    async def answer(self, answer):
        if isinstance(answer, Exception):
            self._answers[-1].set_exception(answer)
        else:
            self._answers[-1].set_result(answer)
        await settle()


async def settle():
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
def host():
    return FakeReplicas()


@pytest.fixture
def partitions(tmp_path, host):
    """Three partitions, led by broker 0. Broker 2 is not in sync."""
    made = []
    for index in range(3):
        partition = Partition(host, "t", TOPIC_ID, index, make_log(tmp_path / f"t-{index}"))
        partition.lead(4, 6, (0, 1, 2), (0, 1))
        made.append(partition)
    return made


@pytest.fixture
def controller():
    return Controller()


@pytest.fixture
async def changes(partitions, controller, host):
    alive = {1, 2}
    changes = IsrChanges(
        0,
        lambda: 77,
        partitions,
        lambda: LAG_MS,
        controller.ask,
        alive.__contains__,
        host.clock,
        asyncio.get_running_loop(),
    )
    changes.alive = alive
    changes.start()
    yield changes
    changes.stop()


def fetched(changes, partition, broker_id, offset, broker_epoch=5):
    partition.follower_fetched(broker_id, offset, 0, broker_epoch)
    changes.expand(partition, broker_id)


async def test_one_that_has_caught_up_joins(changes, partitions, controller):
    fetched(changes, partitions[0], 2, 0)
    await settle()
    ((index, wanted),) = controller.requests[0].items()
    assert (index, wanted.leader_epoch, wanted.partition_epoch) == (0, 4, 6)
    epochs = [(state.broker_id, state.broker_epoch) for state in wanted.new_isr_with_epochs]
    assert epochs == [(0, 77), (1, -1), (2, 5)]
    assert partitions[0].leadership.isr == (0, 1)
    await controller.confirm()
    assert (partitions[0].leadership.isr, partitions[0].leadership.partition_epoch) == ((0, 1, 2), 7)
    assert not changes.are_under_way


async def test_a_follower_that_lags_or_is_down_does_not_join(changes, partitions, controller):
    partitions[0].append_now(batch(b"a"), 0)
    partitions[0].follower_fetched(1, 1, 0, 5)
    fetched(changes, partitions[0], 2, 0)
    changes.alive.discard(2)
    fetched(changes, partitions[0], 2, 1)
    await settle()
    assert controller.requests == []


async def test_what_is_asked_while_a_request_is_under_way_goes_out_together(changes, partitions, controller):
    for partition in partitions:
        fetched(changes, partition, 2, 0)
        await settle()
    assert [list(request) for request in controller.requests] == [[0]]
    fetched(changes, partitions[0], 2, 0)  # asked for already
    await controller.confirm()
    assert [list(request) for request in controller.requests] == [[0], [1, 2]]
    await controller.confirm()
    assert [partition.leadership.isr for partition in partitions] == [(0, 1, 2)] * 3


@pytest.mark.parametrize(
    "failure",
    [ChannelError("gone"), AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH), AlterPartitionResponse()],
    ids=["no answer", "refused as a whole", "left out"],
)
async def test_what_was_not_decided_is_asked_again(changes, partitions, controller, host, failure):
    fetched(changes, partitions[0], 2, 0)
    await settle()
    await controller.answer(failure)
    assert len(controller.requests) == 1
    assert partitions[0].leadership.maximal_isr == {0, 1, 2}
    host.clock.advance(0.05)
    await settle()
    assert [request[0].partition_epoch for request in controller.requests] == [6, 6]


async def test_the_same_trouble_is_logged_once(changes, partitions, controller, host):
    expired = AlterPartitionResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    with capture_logs() as logs:
        fetched(changes, partitions[0], 2, 0)
        await settle()
        for answer in (expired, expired, ChannelError("gone"), expired):
            await controller.answer(answer)
            host.clock.advance(0.05)
            await settle()
    assert [entry["error"] for entry in logs] == ["UNKNOWN_SERVER_ERROR", "gone", "UNKNOWN_SERVER_ERROR"]


async def test_it_is_not_asked_again_if_the_controller_has_decided_meanwhile(changes, partitions, controller, host):
    fetched(changes, partitions[0], 2, 0)
    await settle()
    await controller.answer(ChannelError("gone"))
    partitions[0].lead(5, 8, (0, 1, 2), (0, 1))
    host.clock.advance(0.05)
    await settle()
    assert len(controller.requests) == 1
    assert not changes.are_under_way


async def test_an_answer_from_an_earlier_epoch_is_ignored(changes, partitions, controller):
    """KAFKA-14617."""
    fetched(changes, partitions[0], 2, 0)
    await settle()
    partitions[0].lead(5, 8, (0, 1, 2), (0,))
    await controller.confirm()
    assert (partitions[0].leadership.isr, partitions[0].leadership.partition_epoch) == ((0,), 8)


async def test_a_replica_that_is_refused_is_not_asked_for_at_once(changes, partitions, controller):
    fetched(changes, partitions[0], 2, 0)
    await settle()
    await controller.confirm(ErrorCode.INELIGIBLE_REPLICA)
    assert (len(controller.requests), partitions[0].leadership.asked) == (1, None)
    fetched(changes, partitions[0], 2, 0)
    await settle()
    assert len(controller.requests) == 2


async def test_those_that_lag_leave(changes, partitions, controller, host):
    committed = []
    partitions[0].append_now(batch(b"a"), 0)
    partitions[0].when_committed(1, committed.append)
    host.clock.advance(30)
    assert controller.requests == []
    for partition in partitions[1:]:
        partition.follower_fetched(1, 0, 0, 5)
    host.clock.advance(15)
    await settle()
    ((index, wanted),) = controller.requests[0].items()
    assert (index, [state.broker_id for state in wanted.new_isr_with_epochs]) == (0, [0])
    assert committed == []
    await controller.confirm()
    assert (partitions[0].leadership.isr, committed) == ((0,), [None])


async def test_one_that_was_refused_and_fetches_no_more_does_not_count_for_ever(changes, partitions, controller, host):
    partition, committed = partitions[0], []
    fetched(changes, partition, 2, 0)
    await settle()
    await controller.confirm(ErrorCode.INELIGIBLE_REPLICA)
    partition.append_now(batch(b"a"), 0)
    partition.follower_fetched(1, 1, 0, 5)
    partition.when_committed(1, committed.append)
    host.clock.advance(15)
    partition.follower_fetched(1, 1, 0, 5)
    assert committed == []  # replica 2 is alive, had everything, and would join as soon as it may
    host.clock.advance(30)
    assert committed == [None]


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_wall_clock_that_jumps_says_nothing_about_followers(changes, partitions, controller, host, hours):
    partition = partitions[0]
    partition.append_now(memoryview(bytearray(batch(b"a"))), host.clock.now_ms())
    partition.append_now(memoryview(bytearray(batch(b"b"))), host.clock.now_ms())
    host.clock.advance(14)
    partition.follower_fetched(1, 1, 0, 5)  # it keeps up, but has not got everything yet
    host.clock.put(hours * 3600)
    host.clock.advance(2)
    await settle()
    assert controller.requests == []
    host.clock.advance(45)
    await settle()
    assert 0 in controller.requests[0]
