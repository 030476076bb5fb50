"""DeleteAcls (key 31): remove the access rules that filters choose, and say which.

All versions have the same fields; version 2 is flexible, 3 adds the resource type USER.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.describe_acls import NO_AUTHORIZER, acl_filter, has_unknown
from barnabas.broker.registry.errors import RegistryError
from barnabas.broker.security.acls import Acl, AclFilter
from barnabas.broker.server.pieces import spread
from barnabas.broker.server.request import Request
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


async def handle(broker: Broker, request: Request, message: DeleteAclsRequest) -> DeleteAclsResponse | None:
    if any(map(has_unknown, message.filters)):
        request.fail("a filter of an unknown kind")  # as in Kafka
        return None
    if broker.authorizer is None or broker.acl_follower is None:
        refused = _refused(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
        return DeleteAclsResponse(filter_results=[refused for _ in message.filters])
    # All filters choose among the rules as they are now.
    acls = list(broker.authorizer.acls)
    results: list[list[Acl] | str] = []
    async for each in spread(message.filters):
        chosen = acl_filter(each)
        problem = _problem_with(chosen)
        results.append([acl for acl in acls if chosen.matches(acl)] if problem is None else problem)
    try:
        await broker.acl_follower.remove({acl for found in results if isinstance(found, list) for acl in found})
    except RegistryError as error:
        failed = _refused(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
        return DeleteAclsResponse(filter_results=[failed for _ in results])
    return DeleteAclsResponse(
        filter_results=[
            _refused(ErrorCode.INVALID_REQUEST, found) if isinstance(found, str) else _deleted(found)
            for found in results
        ]
    )


def _problem_with(chosen: AclFilter) -> str | None:
    if 0 in (chosen.resource_type, chosen.pattern_type):
        return "Unknown patternFilter."
    return "Unknown entryFilter." if 0 in (chosen.operation, chosen.permission) else None


def _refused(error: ErrorCode, text: str) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(error_code=error, error_message=text, matching_acls=[])


def _deleted(acls: list[Acl]) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(
        matching_acls=[
            DeleteAclsMatchingAcl(
                resource_type=pattern.resource_type,
                resource_name=pattern.name,
                pattern_type=pattern.pattern_type,
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission,
            )
            for pattern, entry in acls
        ]
    )
