"""ApiVersions (key 18): what this broker serves.

From version 3 a client names itself; an invalid name or version gets INVALID_REQUEST. A version of ApiVersions
that is not served never arrives here: server/dispatch answers it in version 0's form.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.server.request import Request
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

# transaction.version 1 changes how records of __transaction_state are written; 2 lets a producer add partitions by
# writing to them, and gives it a new epoch with each transaction's end (KIP-890).
_TRANSACTION_VERSION: Final = "transaction.version"
_FINALIZED_EPOCH: Final = 0


def handle(broker: Broker, request: Request, message: ApiVersionsRequest) -> ApiVersionsResponse:
    if request.version >= 3 and not (
        _SOFTWARE.fullmatch(message.client_software_name) and _SOFTWARE.fullmatch(message.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[])
    level = broker.understood.transaction_version
    features: dict[str, Any] = {}
    if level:
        features["supported_features"] = [
            SupportedFeatureKey(name=_TRANSACTION_VERSION, min_version=0, max_version=level)
        ]
        features["finalized_features"] = [
            FinalizedFeatureKey(name=_TRANSACTION_VERSION, max_version_level=level, min_version_level=level)
        ]
    return ApiVersionsResponse(
        api_keys=broker.apis_for_brokers if request.connection.is_from_broker else broker.advertised_apis,
        finalized_features_epoch=_FINALIZED_EPOCH,
        **features,
    )
