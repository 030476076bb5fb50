"""FindCoordinator (key 10): which broker coordinates a group, a transaction or a share partition.

Version 1 adds key types; 4 asks for several keys at once; 6 for share partitions, which only brokers may ask for. The
topics that store groups, transactions and share partitions are created when a coordinator is first looked up. The
coordinator is the leader of the key's partition, on whichever broker; while there is none, clients ask again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.broker.controller.images import PartitionImage
from barnabas.broker.coordinator.key_hash import partition_of
from barnabas.broker.endpoints import BrokerEndpoint, endpoints_for
from barnabas.broker.internal_topics import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from barnabas.broker.server.pieces import each, spread
from barnabas.broker.server.request import Request
from barnabas.broker.share.key import is_coordinator_key
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_GROUP: Final = 0
_TRANSACTION: Final = 1
_SHARE: Final = 2
_SHARE_FROM: Final = 6  # version


async def handle(broker: Broker, request: Request, message: FindCoordinatorRequest) -> FindCoordinatorResponse:
    keys = message.coordinator_keys if request.version >= 4 else [message.key]
    denied: dict[str, ErrorCode] = {}
    is_any_allowed = not keys
    async for key in spread(keys):
        error = _denial(broker, request, message.key_type, key)
        if error is None:
            is_any_allowed = True
        else:
            denied[key] = error
    coordinators: Sequence[PartitionImage] | ErrorCode = ErrorCode.NONE
    if is_any_allowed:
        coordinators = await _coordinators(broker, message.key_type)
    endpoints = {endpoint.broker_id: endpoint for endpoint in endpoints_for(broker, request.connection)}
    answer = partial(_coordinator, coordinators, endpoints, denied)
    if request.version >= 4:
        return FindCoordinatorResponse(coordinators=await broker.pieces.result(each(answer, keys)))
    found = answer(message.key)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _denial(broker: Broker, request: Request, key_type: int, key: str) -> ErrorCode | None:
    """Why a key is not looked up: a group or transactional id that the client may not describe, and so on."""
    access = request.access
    if key_type == _GROUP:
        return None if access.group(AclOperation.DESCRIBE, key) else ErrorCode.GROUP_AUTHORIZATION_FAILED
    if key_type == _TRANSACTION:
        allowed = access.transactional_id(AclOperation.DESCRIBE, key)
        return None if allowed else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if key_type == _SHARE:
        if request.version < _SHARE_FROM or not broker.understood.share_version:
            return ErrorCode.INVALID_REQUEST
        if not access.cluster(AclOperation.CLUSTER_ACTION):
            return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return None if is_coordinator_key(key) else ErrorCode.INVALID_REQUEST
    return None


async def _coordinators(broker: Broker, key_type: int) -> Sequence[PartitionImage] | ErrorCode:
    """The partitions whose leaders coordinate."""
    if key_type == _GROUP:
        name, error = CONSUMER_OFFSETS, await broker.groups.ensure_topic()
    elif key_type == _TRANSACTION:
        name, error = TRANSACTION_STATE, await broker.transactions.ensure_topic()
    elif key_type == _SHARE:
        name, error = SHARE_GROUP_STATE, await broker.share_coordinator.ensure_topic()
    else:
        return ErrorCode.INVALID_REQUEST
    topic = broker.cluster.topic(name)
    return error or (ErrorCode.COORDINATOR_NOT_AVAILABLE if topic is None else topic.partitions)


def _coordinator(
    partitions: Sequence[PartitionImage] | ErrorCode,
    endpoints: Mapping[int, BrokerEndpoint],
    denied: Mapping[str, ErrorCode],
    key: str,
) -> Coordinator:
    endpoint: BrokerEndpoint | None = None
    error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    if key in denied:
        error = denied[key]
    elif isinstance(partitions, ErrorCode):
        error = partitions
    else:
        endpoint = endpoints.get(partitions[partition_of(key, len(partitions))].leader_id)
    if endpoint is None:
        return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=error.name)
    return Coordinator(
        key=key,
        node_id=endpoint.broker_id,
        host=endpoint.host,
        port=endpoint.port,
        error_code=ErrorCode.NONE,
        error_message=None,
    )
