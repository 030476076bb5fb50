"""DescribeCluster (key 60): the brokers, the controller and the cluster's id.

Version 1 can ask for controllers instead of brokers, which a broker refuses. Version 2 can also ask for fenced brokers,
of which there are none here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.endpoints import endpoints_for
from barnabas.broker.security.authorizer import NOT_ASKED
from barnabas.broker.server.request import Request
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_BROKERS: Final = 1
_CONTROLLERS: Final = 2


def handle(broker: Broker, request: Request, message: DescribeClusterRequest) -> DescribeClusterResponse:
    if message.endpoint_type != _BROKERS:
        return _refusal(message.endpoint_type)
    return DescribeClusterResponse(
        endpoint_type=_BROKERS,
        cluster_id=broker.cluster.cluster_id or "",
        controller_id=broker.cluster.controller_id,
        brokers=[
            DescribeClusterBroker(broker_id=e.broker_id, host=e.host, port=e.port, rack=e.rack)
            for e in endpoints_for(broker, request.connection)
        ],
        cluster_authorized_operations=(
            request.access.cluster_operations() if message.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _refusal(endpoint_type: int) -> DescribeClusterResponse:
    if endpoint_type == _CONTROLLERS:
        error, text = (
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "This is a broker's endpoint, and the request wants a controller's.",
        )
    else:
        error, text = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"There is no endpoint type {endpoint_type}."
    return DescribeClusterResponse(error_code=error, error_message=text, cluster_id="", brokers=[])
