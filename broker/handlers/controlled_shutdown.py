"""ControlledShutdown (key 7): a broker that is about to stop asks the controller to let others lead its partitions.

Version 2 comes with the broker's epoch. A broker that is not the controller answers STALE_CONTROLLER_EPOCH, as Kafka's
do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.server.request import Request
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


async def handle(
    broker: Broker, request: Request | None, message: ControlledShutdownRequest
) -> ControlledShutdownResponse:
    """`request` is None if the controller's own broker asks."""
    term = broker.controller.term
    if term is None:
        return ControlledShutdownResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
    error, remaining = await term.controlled_shutdown(message.broker_id, message.broker_epoch)
    return ControlledShutdownResponse(
        error_code=error,
        remaining_partitions=[
            RemainingPartition(topic_name=topic, partition_index=index) for topic, index in remaining
        ],
    )
