"""ApiVersions (key 18): what this broker serves.

From version 3 a client names itself; a name or version that is not one gets INVALID_REQUEST. A version of ApiVersions
that is not served never comes here: server/dispatch answers it in version 0's form.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from broker.broker import Broker

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(broker: Broker, request: Request, message: ApiVersionsRequest) -> ApiVersionsResponse:
    if request.version >= 3 and not (
        _SOFTWARE.fullmatch(message.client_software_name) and _SOFTWARE.fullmatch(message.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[])
    return ApiVersionsResponse(api_keys=broker.advertised_apis)
