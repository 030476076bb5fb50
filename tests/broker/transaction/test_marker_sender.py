"""Markers on their way to the leaders of a transaction's partitions."""

import asyncio

import pytest
from structlog.testing import capture_logs

from barnabas.broker.transaction.marker_sender import MarkerSender
from barnabas.broker.transaction.markers import Marker
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from tests.broker.transaction.cluster import LOST, ME, OTHER, THIRD, Cluster, Peers


class Local:
    """The partitions of this broker, which accept every marker."""

    def __init__(self):
        self.written = []

    def write(self, marker, done):
        self.written.append(marker)
        done(dict.fromkeys(marker.partitions, ErrorCode.NONE))


@pytest.fixture
def cluster():
    return Cluster(t=[ME, OTHER, OTHER, THIRD])


@pytest.fixture
def peers():
    return Peers(OTHER, THIRD)


@pytest.fixture
def local():
    return Local()


@pytest.fixture
async def sender(cluster, peers, local):
    tasks = []
    yield MarkerSender(
        ME, cluster, local, peers, lambda work: tasks.append(asyncio.get_running_loop().create_task(work)), lambda: 1000
    )
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def marker(*indexes, producer_id=7, topic="t", version=2):
    return Marker(producer_id, 3, 5, True, [(topic, index) for index in indexes], version)


def send(sender, marker, is_wanted=lambda: True):
    """The results, as they are reported."""
    told = []
    sender.send(marker, told.append, is_wanted)
    return told


def response(*answers, error=ErrorCode.NONE):
    """(producer id, indexes) of t, all with one error."""
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name="t",
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=error)
                            for index in indexes
                        ],
                    )
                ],
            )
            for producer_id, indexes in answers
        ]
    )


def taken(*indexes):
    return {("t", index): ErrorCode.NONE for index in indexes}


async def test_partitions_of_this_broker_are_written_at_once(sender, local):
    assert sender.are_local([("t", 0), ("gone", 0)])
    assert send(sender, marker(0)) == [taken(0)]
    assert local.written == [marker(0)._replace(partitions=(("t", 0),))]


async def test_those_of_others_are_sent_to_their_leaders(sender, peers, local):
    assert not sender.are_local([("t", 0), ("t", 1)])
    told = send(sender, marker(0, 1, 2, 3))
    assert told == [taken(0)]
    asked = await peers.answer(OTHER, response((7, [1, 2])))
    assert told[1:] == [taken(1, 2)]
    assert (asked.key, asked.version) == (ApiKey.WRITE_TXN_MARKERS, 2)
    (sent,) = asked.message.markers
    assert (sent.producer_id, sent.producer_epoch, sent.coordinator_epoch) == (7, 3, 5)
    assert (sent.transaction_result, sent.transaction_version) == (True, 2)
    assert [(topic.name, topic.partition_indexes) for topic in sent.topics] == [("t", [1, 2])]
    await peers.answer(THIRD, response((7, [3])))
    assert told[2:] == [taken(3)]


async def test_one_request_is_under_way_and_the_others_gather_behind_it(sender, peers):
    first = send(sender, marker(1))
    asked = await peers.asked(OTHER)
    told = [send(sender, marker(1, 2, producer_id=producer_id)) for producer_id in (8, 9)]
    assert await peers.is_idle(OTHER)
    asked.answer.set_result(response((7, [1])))
    asked = await peers.answer(OTHER, response((8, [1, 2]), (9, [1, 2])))
    assert first == [taken(1)]
    assert told == [[taken(1, 2)], [taken(1, 2)]]
    assert [each.producer_id for each in asked.message.markers] == [8, 9]
    assert await peers.is_idle(OTHER)


async def test_two_markers_of_a_producer_are_two_requests(sender, peers):
    """An answer names producers: it could not tell the two apart."""
    send(sender, marker(1, producer_id=1))
    asked = await peers.asked(OTHER)
    for index in (1, 2):
        send(sender, marker(index))
    asked.answer.set_result(response((1, [1])))
    for index in (1, 2):
        asked = await peers.answer(OTHER, response((7, [index])))
        assert [topic.partition_indexes for each in asked.message.markers for topic in each.topics] == [[index]]


async def test_errors_are_reported_partition_by_partition(sender, peers):
    told = send(sender, marker(1, 2))
    await peers.answer(OTHER, response((7, [1]), error=ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert told == [{("t", 1): ErrorCode.NOT_LEADER_OR_FOLLOWER, ("t", 2): ErrorCode.UNKNOWN_SERVER_ERROR}]


async def test_a_lost_answer_is_an_error(sender, peers):
    told = send(sender, marker(1))
    await peers.answer(OTHER, LOST)
    assert told == [{("t", 1): ErrorCode.NETWORK_EXCEPTION}]
    send(sender, marker(1))  # and the next one is sent
    await peers.answer(OTHER, response((7, [1])))


async def test_without_a_leader_or_its_address_it_is_not_sent(sender, cluster, peers):
    cluster.lead(t=[-1, 4])
    assert send(sender, marker(0, 1)) == [
        {("t", 0): ErrorCode.LEADER_NOT_AVAILABLE},
        {("t", 1): ErrorCode.LEADER_NOT_AVAILABLE},
    ]


async def test_a_deleted_partition_needs_none(sender):
    assert send(sender, marker(0, topic="gone")) == [{("gone", 0): ErrorCode.NONE}]


async def test_before_a_broker_knows_the_cluster_nothing_counts_as_deleted(sender, cluster):
    """It coordinates, so it must know the topic of transactions; as long as it does not, it knows none."""
    cluster.delete("__transaction_state")
    cluster.delete("t")
    assert send(sender, marker(0)) == [{("t", 0): ErrorCode.LEADER_NOT_AVAILABLE}]


async def test_markers_that_are_no_longer_wanted_are_not_sent_and_their_answers_dropped(sender, peers):
    wanted = True
    under_way = send(sender, marker(1), lambda: wanted)
    waiting = send(sender, marker(1, producer_id=8), lambda: wanted)
    asked = await peers.asked(OTHER)
    wanted = False
    asked.answer.set_result(response((7, [1])))
    assert await peers.is_idle(OTHER)
    assert under_way == waiting == []


async def test_a_failing_callback_does_not_affect_the_others(sender, peers):
    sender.send(marker(1), lambda errors: 1 // 0, lambda: True)
    told = send(sender, marker(1, producer_id=8))
    with capture_logs() as logs:
        await peers.answer(OTHER, response((7, [1]), (8, [1])))
    assert told == [taken(1)]
    assert len(logs) == 1


async def test_an_invalid_answer_counts_as_none(sender, peers):
    told = send(sender, marker(1))
    with capture_logs():
        await peers.answer(OTHER, response((7, [1]), error=12345))
    assert told == [{("t", 1): ErrorCode.UNKNOWN_SERVER_ERROR}]
