"""DescribeAcls (key 29): the access rules that a filter chooses, by resource.

All versions have the same fields; version 2 is flexible, 3 adds the resource type USER.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.broker.security.acls import AclFilter, Pattern
from barnabas.broker.server.pieces import Steps
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation, PatternType, PermissionType, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_acls import DeleteAclsFilter
from barnabas.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

NO_AUTHORIZER: Final = "No Authorizer is configured."

Number = TypeVar("Number", bound=IntEnum)


def handle(broker: Broker, request: Request, message: DescribeAclsRequest) -> Steps[DescribeAclsResponse | None]:
    if has_unknown(message):
        request.fail("a filter of an unknown kind")  # as in Kafka
        return None
    if broker.authorizer is None:
        return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER, resources=[])
    chosen = acl_filter(message)
    resources: dict[Pattern, list[AclDescription]] = {}
    for acl in list(broker.authorizer.acls):
        yield
        if chosen.matches(acl):
            entry = acl.entry
            resources.setdefault(acl.pattern, []).append(
                AclDescription(
                    principal=entry.principal,
                    host=entry.host,
                    operation=entry.operation,
                    permission_type=entry.permission,
                )
            )
    return DescribeAclsResponse(
        resources=[
            DescribeAclsResource(
                resource_type=pattern.resource_type,
                resource_name=pattern.name,
                pattern_type=pattern.pattern_type,
                acls=acls,
            )
            for pattern, acls in resources.items()
        ]
    )


def has_unknown(message: DescribeAclsRequest | DeleteAclsFilter) -> bool:
    """Whether a filter names the kind UNKNOWN, which no client may."""
    return 0 in (
        message.resource_type_filter,
        message.pattern_type_filter,
        message.operation,
        message.permission_type,
    )


def acl_filter(message: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        known(ResourceType, message.resource_type_filter),
        message.resource_name_filter,
        known(PatternType, message.pattern_type_filter),
        message.principal_filter,
        message.host_filter,
        known(AclOperation, message.operation),
        known(PermissionType, message.permission_type),
    )


def known(kind: type[Number], number: int) -> Number:
    """What a number stands for; UNKNOWN if it is not known here."""
    try:
        return kind(number)
    except ValueError:
        return kind(0)
