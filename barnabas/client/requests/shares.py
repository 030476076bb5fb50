"""Requests of share groups: their records, and the state of their partitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from barnabas.protocol.messages import (
    delete_share_group_state as deleting,
)
from barnabas.protocol.messages import (
    initialize_share_group_state as initializing,
)
from barnabas.protocol.messages import (
    read_share_group_state as reading,
)
from barnabas.protocol.messages import (
    read_share_group_state_summary as summarizing,
)
from barnabas.protocol.messages import (
    share_acknowledge as acknowledging,
)
from barnabas.protocol.messages import (
    share_fetch as fetching,
)
from barnabas.protocol.messages import (
    write_share_group_state as writing,
)

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
GAP = 0

# First offset, last offset, delivery state, delivery count.
Batch = tuple[int, int, int, int]
# First offset, last offset, and one type for all of them or one for each.
Acknowledgement = tuple[int, int, Sequence[int]]
# A topic's id and a partition.
Place = tuple[bytes, int]


def initialize_share_group_state(
    group: str, place: Place, *, state_epoch: int = 0, start_offset: int = 0
) -> initializing.InitializeShareGroupStateRequest:
    topic_id, partition = place
    data = initializing.PartitionData(partition=partition, state_epoch=state_epoch, start_offset=start_offset)
    topic = initializing.InitializeStateData(topic_id=topic_id, partitions=[data])
    return initializing.InitializeShareGroupStateRequest(group_id=group, topics=[topic])


def read_share_group_state(group: str, place: Place, leader_epoch: int = 0) -> reading.ReadShareGroupStateRequest:
    topic_id, partition = place
    data = reading.PartitionData(partition=partition, leader_epoch=leader_epoch)
    return reading.ReadShareGroupStateRequest(
        group_id=group, topics=[reading.ReadStateData(topic_id=topic_id, partitions=[data])]
    )


def write_share_group_state(
    group: str, place: Place, *batches: Batch, state_epoch: int = 0, leader_epoch: int = 0, **fields: Any
) -> writing.WriteShareGroupStateRequest:
    topic_id, partition = place
    data = writing.PartitionData(
        partition=partition,
        state_epoch=state_epoch,
        leader_epoch=leader_epoch,
        state_batches=[
            writing.StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
            for first, last, state, count in batches
        ],
        **{"start_offset": -1, **fields},
    )
    return writing.WriteShareGroupStateRequest(
        group_id=group, topics=[writing.WriteStateData(topic_id=topic_id, partitions=[data])]
    )


def delete_share_group_state(group: str, *places: Place) -> deleting.DeleteShareGroupStateRequest:
    return deleting.DeleteShareGroupStateRequest(
        group_id=group,
        topics=[
            deleting.DeleteStateData(topic_id=topic_id, partitions=[deleting.PartitionData(partition=partition)])
            for topic_id, partition in places
        ],
    )


def read_share_group_state_summary(
    group: str, *places: Place, leader_epoch: int = 0
) -> summarizing.ReadShareGroupStateSummaryRequest:
    return summarizing.ReadShareGroupStateSummaryRequest(
        group_id=group,
        topics=[
            summarizing.ReadStateSummaryData(
                topic_id=topic_id,
                partitions=[summarizing.PartitionData(partition=partition, leader_epoch=leader_epoch)],
            )
            for topic_id, partition in places
        ],
    )


def share_fetch(
    group: str | None,
    member: str | None,
    epoch: int,
    places: Iterable[Place] = (),
    *,
    acknowledgements: dict[Place, Sequence[Acknowledgement]] | None = None,
    forgotten: Iterable[Place] = (),
    **fields: Any,
) -> fetching.ShareFetchRequest:
    """Partitions that are acknowledged need not be named again."""
    acknowledged = acknowledgements or {}
    asked = dict.fromkeys([*places, *acknowledged])
    return fetching.ShareFetchRequest(
        group_id=group,
        member_id=member,
        share_session_epoch=epoch,
        topics=[
            fetching.FetchTopic(
                topic_id=topic_id,
                partitions=[
                    fetching.FetchPartition(
                        partition_index=partition,
                        acknowledgement_batches=[
                            fetching.AcknowledgementBatch(
                                first_offset=first, last_offset=last, acknowledge_types=list(types)
                            )
                            for first, last, types in acknowledged.get((topic_id, partition), ())
                        ],
                    )
                ],
            )
            for topic_id, partition in asked
        ],
        forgotten_topics_data=[
            fetching.ForgottenTopic(topic_id=topic_id, partitions=[partition]) for topic_id, partition in forgotten
        ],
        **{
            "max_wait_ms": 0,
            "min_bytes": 0,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            **fields,
        },
    )


def share_acknowledge(
    group: str | None,
    member: str | None,
    epoch: int,
    acknowledgements: dict[Place, Sequence[Acknowledgement]] | None = None,
    **fields: Any,
) -> acknowledging.ShareAcknowledgeRequest:
    return acknowledging.ShareAcknowledgeRequest(
        group_id=group,
        member_id=member,
        share_session_epoch=epoch,
        topics=[
            acknowledging.AcknowledgeTopic(
                topic_id=topic_id,
                partitions=[
                    acknowledging.AcknowledgePartition(
                        partition_index=partition,
                        acknowledgement_batches=[
                            acknowledging.AcknowledgementBatch(
                                first_offset=first, last_offset=last, acknowledge_types=list(types)
                            )
                            for first, last, types in batches
                        ],
                    )
                ],
            )
            for (topic_id, partition), batches in (acknowledgements or {}).items()
        ],
        **fields,
    )
