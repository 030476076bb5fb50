"""DescribeClientQuotas (key 48): the quotas of users, client ids and addresses that a filter selects.

All versions have the same fields; version 1 is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.quotas.selection import InvalidFilter, UnknownEntityType, filter_of, shown
from barnabas.broker.server.pieces import Steps
from barnabas.broker.server.request import Request
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(
    broker: Broker, request: Request, message: DescribeClientQuotasRequest
) -> Steps[DescribeClientQuotasResponse]:
    try:
        wanted = filter_of(
            ((each.entity_type, each.match_type, each.match) for each in message.components), message.strict
        )
    except InvalidFilter as error:
        return _refused(ErrorCode.INVALID_REQUEST, str(error))
    except UnknownEntityType as error:
        return _refused(ErrorCode.UNSUPPORTED_VERSION, str(error))
    entries = []
    for entity, limits in list(broker.server.quotas):
        if wanted.selects(entity):
            parts = [EntityData(entity_type=kind, entity_name=shown(name)) for kind, name in entity.parts.items()]
            values = [ValueData(key=key, value=value) for key, value in limits.items()]
            entries.append(EntryData(entity=parts, values=values))
        yield
    return DescribeClientQuotasResponse(entries=entries)


def _refused(error: ErrorCode, message: str) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=error, error_message=message, entries=None)
