"""LeaderAndIsr (key 4): the controller says which partitions this broker leads or follows.

Answered when all logs exist. The controller's own broker calls `handle` without a request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.controller.orders import TYPE_FULL
from barnabas.broker.server.request import Request
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


async def handle(broker: Broker, request: Request | None, message: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
    replicas = broker.replicas
    if request is not None and replicas.order_sequence.is_overtaken(message, request.correlation_id):
        return LeaderAndIsrResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    if message.type == TYPE_FULL and not replicas.check_sender(message.controller_epoch, message.broker_epoch):
        _set_aside_strays(broker, message)
    return await replicas.become_leader_or_follower(message)


def _set_aside_strays(broker: Broker, message: LeaderAndIsrRequest) -> None:
    """The controller has named all partitions of this broker: it does not know any others."""
    named = {
        TopicPartition(topic.topic_name, state.partition_index): topic.topic_id
        for topic in message.topic_states
        for state in topic.partition_states
    }
    broker.replicas.set_aside_strays(lambda name, topic_id: name in named and topic_id in (None, named[name]))
