"""FindCoordinator (key 10): which broker coordinates a group or a transaction.

Version 1 knows other kinds of keys than groups; 4 asks for several at once; 6 for share groups' partitions, which there
are none of. The topics in which groups and transactions are kept are made when one is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.endpoints import BrokerEndpoint, endpoints_for
from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from broker.broker import Broker

_GROUP: Final = 0
_TRANSACTION: Final = 1
_NOBODY: Final = BrokerEndpoint(-1, "", -1, None)


async def handle(broker: Broker, request: Request, message: FindCoordinatorRequest) -> FindCoordinatorResponse:
    error = await _error(broker, message.key_type)
    if request.version >= 4:
        keys = message.coordinator_keys
        return FindCoordinatorResponse(coordinators=[_coordinator(broker, request, key, error) for key in keys])
    found = _coordinator(broker, request, message.key, error)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


async def _error(broker: Broker, key_type: int) -> ErrorCode:
    if key_type == _GROUP:
        return await broker.groups.ensure_topic()
    if key_type == _TRANSACTION:
        return await broker.transactions.ensure_topic()
    return ErrorCode.INVALID_REQUEST


def _coordinator(broker: Broker, request: Request, key: str, error: ErrorCode) -> Coordinator:
    """This broker leads all partitions, so it coordinates everything."""
    endpoints = endpoints_for(broker, request.connection)
    endpoint = next((e for e in endpoints if e.broker_id == broker.config.node_id), _NOBODY)
    if error:
        endpoint = _NOBODY
    return Coordinator(
        key=key,
        node_id=endpoint.broker_id,
        host=endpoint.host,
        port=endpoint.port,
        error_code=error,
        error_message=error.name if error else None,
    )
