"""ApiVersions (key 18): what this broker serves.

From version 3 a client names itself; a name or version that is not one gets INVALID_REQUEST. A version of ApiVersions
that is not served never comes here: server/dispatch answers it in version 0's form.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from broker.broker import Broker

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

# transaction.version 1 changes how records of __transaction_state are written; 2 lets a producer add partitions by
# writing to them, and gives it a new epoch with each transaction's end (KIP-890).
_SUPPORTED: Final = [SupportedFeatureKey(name="transaction.version", min_version=0, max_version=2)]
_FINALIZED: Final = [FinalizedFeatureKey(name="transaction.version", max_version_level=2, min_version_level=2)]
_FINALIZED_EPOCH: Final = 0


def handle(broker: Broker, request: Request, message: ApiVersionsRequest) -> ApiVersionsResponse:
    if request.version >= 3 and not (
        _SOFTWARE.fullmatch(message.client_software_name) and _SOFTWARE.fullmatch(message.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[])
    return ApiVersionsResponse(
        api_keys=broker.advertised_apis,
        supported_features=_SUPPORTED,
        finalized_features_epoch=_FINALIZED_EPOCH,
        finalized_features=_FINALIZED,
    )
