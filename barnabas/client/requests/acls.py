"""Requests about access rules."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.protocol.acls import WILDCARD, AclOperation, PatternType, PermissionType, ResourceType
from barnabas.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest


class Rule(NamedTuple):
    """A rule as a client sees it. As a filter, ANY and None choose all."""

    resource_type: int = ResourceType.ANY
    name: str | None = None
    pattern_type: int = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: int = AclOperation.ANY
    permission: int = PermissionType.ANY


def rule(
    principal: str,
    operation: int,
    resource_type: int,
    name: str,
    *,
    pattern_type: int = PatternType.LITERAL,
    host: str = WILDCARD,
    permission: int = PermissionType.ALLOW,
) -> Rule:
    """A rule that can be created, with what most rules have."""
    return Rule(resource_type, name, pattern_type, principal, host, operation, permission)


def create_acls(*rules: Rule) -> CreateAclsRequest:
    return CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=rule.resource_type,
                resource_name=rule.name or "",
                resource_pattern_type=rule.pattern_type,
                principal=rule.principal or "",
                host=rule.host or "",
                operation=rule.operation,
                permission_type=rule.permission,
            )
            for rule in rules
        ]
    )


def describe_acls(rule: Rule) -> DescribeAclsRequest:
    return DescribeAclsRequest(
        resource_type_filter=rule.resource_type,
        resource_name_filter=rule.name,
        pattern_type_filter=rule.pattern_type,
        principal_filter=rule.principal,
        host_filter=rule.host,
        operation=rule.operation,
        permission_type=rule.permission,
    )


def delete_acls(*rules: Rule) -> DeleteAclsRequest:
    return DeleteAclsRequest(
        filters=[
            DeleteAclsFilter(
                resource_type_filter=rule.resource_type,
                resource_name_filter=rule.name,
                pattern_type_filter=rule.pattern_type,
                principal_filter=rule.principal,
                host_filter=rule.host,
                operation=rule.operation,
                permission_type=rule.permission,
            )
            for rule in rules
        ]
    )
