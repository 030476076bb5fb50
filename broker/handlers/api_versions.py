"""ApiVersions (key 18): what this broker serves.

From version 3 a client names itself; an invalid name or version gets INVALID_REQUEST. A version of ApiVersions
that is not served never arrives here: server/dispatch answers it in version 0's form. Version 4 shows the supported
levels of features: in older ones, a lowest level of 0 keeps Java's clients of 3.4 to 3.7 from connecting.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

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

_MOST_SHOWN: Final = 100  # characters: some client may have a long name
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

# transaction.version 1 changes how records of __transaction_state are written; 2 lets a producer add partitions by
# writing to them, and gives it a new epoch with each transaction's end (KIP-890).
_TRANSACTION_VERSION: Final = "transaction.version"
# group.version 1 has groups of the consumer protocol (KIP-848).
_GROUP_VERSION: Final = "group.version"
# share.version 1 has share groups (KIP-932).
_SHARE_VERSION: Final = "share.version"
# streams.version 1 has streams groups (KIP-1071).
_STREAMS_VERSION: Final = "streams.version"
_FINALIZED_EPOCH: Final = 0
_LOWEST_LEVEL_0_FROM_VERSION: Final = 4


def handle(broker: Broker, request: Request, message: ApiVersionsRequest) -> ApiVersionsResponse:
    if request.version >= 3 and not (
        _SOFTWARE.fullmatch(message.client_software_name) and _SOFTWARE.fullmatch(message.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[])
    if request.version >= 3:
        name, version = message.client_software_name, message.client_software_version
        request.connection.software = f"{name[:_MOST_SHOWN]} {version[:_MOST_SHOWN]}"
    levels = {
        _GROUP_VERSION: broker.understood.group_version,
        _SHARE_VERSION: broker.understood.share_version,
        _STREAMS_VERSION: broker.understood.streams_version,
        _TRANSACTION_VERSION: broker.understood.transaction_version,
    }
    return ApiVersionsResponse(
        api_keys=broker.apis_for_brokers if request.connection.is_from_broker else broker.advertised_apis,
        supported_features=[
            SupportedFeatureKey(name=name, min_version=0, max_version=level)
            for name, level in levels.items()
            if level and request.version >= _LOWEST_LEVEL_0_FROM_VERSION
        ],
        finalized_features_epoch=_FINALIZED_EPOCH,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in levels.items()
            if level
        ],
    )
