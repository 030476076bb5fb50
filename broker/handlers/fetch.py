"""Fetch (key 1): read record batches, waiting for some if there are none.

Version 5 adds the log start offset; 7 sessions (replica/fetch_sessions); 9 leader epochs; 10 zstd; 11 racks; 12 is
flexible and reports diverging logs; 13 names topics by id; 15 moves the replica's id; 16 names the current leader.

Followers (requests with a replica's id) read to the end of the leader's log. What they fetch says how far they have
come, which moves the high watermark. Consumers read up to the high watermark, from version 11 on also from followers;
a leader may send them to a replica that is closer (KIP-392).

The result is slices of segment files, which the server sends directly from the files. A request is answered at once if
there is enough data (min_bytes) or an error, or if it does not want to wait; otherwise when appends have brought
enough, or when max_wait_ms has passed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.fetching import READ_COMMITTED, READ_UNCOMMITTED, Fetch, failed
from barnabas.broker.handlers.large_fetch import LargeFetch
from barnabas.broker.replica.fetch_sessions import (
    FetchedPartition,
    PartitionKey,
    Partitions,
)
from barnabas.broker.server.pieces import Steps
from barnabas.broker.server.request import Request
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

# A Fetch of more partitions is read in pieces.
_PARTITIONS_AT_ONCE: Final = 500


def handle(
    broker: Broker, request: Request, message: FetchRequest
) -> FetchResponse | Steps[FetchResponse | None] | None:
    if message.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        return _refusal(request.version, message)
    count = 0
    for topic in message.topics:
        count += len(topic.partitions)
    if count > _PARTITIONS_AT_ONCE:
        return _begin_large(broker, request, message)
    return _begin(broker, request, message, None)


def _begin(broker: Broker, request: Request, message: FetchRequest, wanted: Partitions | None) -> FetchResponse | None:
    context = broker.fetch_sessions.context(request.version, message, broker.clock.now_ms(), wanted)
    if isinstance(context, ErrorCode):
        return FetchResponse(error_code=context, responses=[])
    if len(context.partitions) > _PARTITIONS_AT_ONCE:
        LargeFetch(broker, request, message, context).begin()
        return None
    return Fetch(broker, request, message, context).begin()


def _begin_large(broker: Broker, request: Request, message: FetchRequest) -> Steps[FetchResponse | None]:
    """Start a request that names very many partitions."""
    wanted: Partitions = {}
    for topic in message.topics:
        for partition in topic.partitions:
            key = PartitionKey(topic.topic, topic.topic_id, partition.partition)
            wanted[key] = FetchedPartition(key, partition)
            yield
    return _begin(broker, request, message, wanted)


def _refusal(version: int, message: FetchRequest) -> FetchResponse:
    """Read nothing for an unknown isolation level: it might be more than the client may see."""
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    return FetchResponse(
        error_code=error,
        session_id=message.session_id,
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=[failed(wanted.partition, error, aborted_transactions=()) for wanted in topic.partitions],
            )
            for topic in message.topics
            if version < 13
        ],
    )
