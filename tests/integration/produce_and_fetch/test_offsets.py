"""What ListOffsets, OffsetForLeaderEpoch and InitProducerId answer, in every version."""

from itertools import groupby

import pytest

from barnabas.client.requests.data import list_offsets
from barnabas.client.requests.transactions import init_producer_id
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.integration.produce_and_fetch.records import read
from tests.support.side_by_side import Side

pytestmark = pytest.mark.java

LIST_OFFSETS = {
    **{f"timestamp {t}": list_offsets(("read", 0, t), ("read", 1, t), ("read", 2, t)) for t in range(-8, 2)},
    **{f"time {t}": list_offsets(("read", 0, t)) for t in (1001, 1002, 1003, 1005, 1006, 2**63 - 1, -(2**63))},
    "read committed, the end": list_offsets(("read", 0, -1), isolation_level=1),
    "read committed, a time": list_offsets(("read", 0, 1004), isolation_level=1),
    "an isolation level that nobody knows": list_offsets(("read", 0, -1), ("unknown", 0, -1), isolation_level=2),
    "a partition twice": list_offsets(("read", 0, -1), ("read", 0, -2), ("read", 1, -1)),
    "a partition that is not there": list_offsets(("read", 9, -1), ("read", 0, -1)),
    "a negative partition": list_offsets(("read", -1, -1)),
    "a topic that is not there": list_offsets(("unknown", 0, -1), ("read", 0, -1)),
    "an empty name": list_offsets(("", 0, -1)),
    "nothing": list_offsets(),
    "the leader's epoch": list_offsets(("read", 0, -1), current_leader_epoch=0),
    "an epoch to come": list_offsets(("read", 0, -1), current_leader_epoch=1),
    "an epoch below all": list_offsets(("read", 0, -1), current_leader_epoch=-2),
}


@pytest.mark.parametrize("version", range(1, 12))
@pytest.mark.parametrize("case", LIST_OFFSETS)
def test_list_offsets(brokers, case, version):
    def scenario(side: Side):
        read(side)
        yield side.ask(ApiKey.LIST_OFFSETS, LIST_OFFSETS[case], version)

    brokers.play(scenario)


def epochs(*parts, replica_id=-1):
    """Where leader epochs end: each part is a topic, a partition, the leader's epoch, and the epoch in question."""
    return OffsetForLeaderEpochRequest(
        replica_id=replica_id,
        topics=[
            OffsetForLeaderTopic(
                topic=topic,
                partitions=[
                    OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
                    for _, partition, current, epoch in group
                ],
            )
            for topic, group in groupby(parts, key=lambda part: part[0])
        ],
    )


OFFSET_FOR_LEADER_EPOCH = {
    **{f"epoch {e}": epochs(("read", 0, -1, e), ("read", 1, -1, e), ("read", 2, -1, e)) for e in (-2, -1, 0, 1, 9)},
    **{f"the leader's epoch {e}": epochs(("read", 0, e, 0)) for e in (-2, -1, 0, 1)},
    "a partition that is not there": epochs(("read", 9, -1, 0), ("read", 0, -1, 0)),
    "a topic that is not there": epochs(("unknown", 0, -1, 0)),
    "a partition twice": epochs(("read", 0, -1, 0), ("read", 0, -1, 1)),
    "nothing": epochs(),
    "a replica that is none": epochs(("read", 0, -1, 0), replica_id=-2),
}


@pytest.mark.parametrize("version", range(2, 5))
@pytest.mark.parametrize("case", OFFSET_FOR_LEADER_EPOCH)
def test_offset_for_leader_epoch(brokers, case, version):
    def scenario(side: Side):
        read(side)
        yield side.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, OFFSET_FOR_LEADER_EPOCH[case], version)

    brokers.play(scenario)


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("timeout_ms", [60_000, 0, -1])
@pytest.mark.parametrize(
    "has", [(-1, -1), (5, 0), (5, -1), (-1, 0), (-2, -2), (2**63 - 1, 2**15 - 1)], ids="{0[0]} in epoch {0[1]}".format
)
def test_init_producer_id(brokers, has, timeout_ms, version):
    request = init_producer_id(None, *has, timeout_ms)

    def scenario(side: Side):
        answer = side.ask(ApiKey.INIT_PRODUCER_ID, request, version)
        while answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:  # Apache Kafka, when it is new
            answer = side.ask(ApiKey.INIT_PRODUCER_ID, request, version)
        yield answer

    brokers.play(scenario)
