"""ShareAcknowledge (key 79): what happened to records that a share group was given.

Version 2 lets members keep records for longer (KIP-1222). The answer comes when everything is written. With the final
epoch the session ends, and what the member still has is for others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.current_leader import current_leader, endpoints_of
from barnabas.broker.handlers.share_acknowledging import Acknowledging, Results, acknowledgements_of, refusal
from barnabas.broker.server.pieces import Steps
from barnabas.broker.server.request import Request
from barnabas.broker.share.error_texts import text_of
from barnabas.broker.share.sessions import FINAL_EPOCH, SessionKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_acknowledge import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(
    broker: Broker, request: Request, message: ShareAcknowledgeRequest
) -> ShareAcknowledgeResponse | Steps[None]:
    error = refusal(broker, request.access, message.group_id, message.member_id)
    if error:
        return _refused(error)
    key = SessionKey(message.group_id or "", message.member_id or "")
    error = broker.share_partitions.sessions.acknowledge(key, message.share_session_epoch)
    return _refused(error) if error else _begin(broker, request, message, key)


def _begin(broker: Broker, request: Request, message: ShareAcknowledgeRequest, key: SessionKey) -> Steps[None]:
    def done(results: Results) -> None:
        if message.share_session_epoch == FINAL_EPOCH:
            broker.share_partitions.end_session(key)
        broker.server.dispatcher.go_on(request, _answer(broker, request, key, results))

    renews = request.version >= 2 and message.is_renew_ack
    acknowledging = Acknowledging(broker, request.access, key, request.version, renews, done)
    for topic in message.topics:
        for each in topic.partitions:
            if each.acknowledgement_batches:
                place = topic.topic_id, each.partition_index
                acknowledging.add(place, acknowledgements_of(each.acknowledgement_batches))
            yield
    acknowledging.all_added()
    return None


def _answer(broker: Broker, request: Request, key: SessionKey, results: Results) -> Steps[ShareAcknowledgeResponse]:
    topics: dict[bytes, list[PartitionData]] = {}
    leaders: set[int] = set()
    for (topic_id, index), error in results.items():
        named = LeaderIdAndEpoch(leader_id=0, leader_epoch=0)
        if error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
            leader = current_leader(broker, topic_id, index)
            if leader is not None:
                named = LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1])
                leaders.add(leader[0])
        topics.setdefault(topic_id, []).append(
            PartitionData(
                partition_index=index,
                error_code=error,
                error_message=text_of(error) if error else None,
                current_leader=named,
            )
        )
        yield
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=broker.share_partitions.settings.lock_duration_ms(key.group_id),
        responses=[
            ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=each) for topic_id, each in topics.items()
        ],
        node_endpoints=[
            NodeEndpoint(node_id=e.broker_id, host=e.host, port=e.port, rack=e.rack)
            for e in endpoints_of(broker, request.connection, leaders)
        ]
        if leaders
        else [],
    )


def _refused(error: ErrorCode) -> ShareAcknowledgeResponse:
    return ShareAcknowledgeResponse(error_code=error, error_message=text_of(error), responses=[], node_endpoints=[])
