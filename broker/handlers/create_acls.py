"""CreateAcls (key 30): add access rules. Creating a rule that already exists is not an error.

All versions have the same fields; version 2 is flexible, 3 adds the resource type USER. Any broker writes rules to the
registry. They are effective here before the answer, elsewhere soon after.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.acl_follower import can_be_kept
from barnabas.broker.handlers.describe_acls import NO_AUTHORIZER, known
from barnabas.broker.registry.errors import RegistryError
from barnabas.broker.security.acls import Acl, Entry, Pattern
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import CLUSTER_NAME, AclOperation, PatternType, PermissionType, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_OK = AclCreationResult(error_code=ErrorCode.NONE, error_message=None)


async def handle(broker: Broker, request: Request, message: CreateAclsRequest) -> CreateAclsResponse | None:
    if any(0 in (c.resource_type, c.resource_pattern_type, c.operation, c.permission_type) for c in message.creations):
        request.fail("an ACL of an unknown kind")  # as in Kafka
        return None
    if broker.acl_follower is None:
        refused = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
        return CreateAclsResponse(results=[refused for _ in message.creations])
    if any(map(_is_filter, message.creations)):  # as in Kafka, such a request is refused as a whole
        error = AclCreationResult(error_code=ErrorCode.UNKNOWN_SERVER_ERROR, error_message="A rule is not a filter.")
        return CreateAclsResponse(results=[error for _ in message.creations])
    problems = [_problem_with(creation) for creation in message.creations]
    wanted = [_acl(creation) for creation, problem in zip(message.creations, problems, strict=True) if problem is None]
    written = _OK
    try:
        await broker.acl_follower.add(wanted)
    except RegistryError as error:
        written = AclCreationResult(error_code=ErrorCode.UNKNOWN_SERVER_ERROR, error_message=str(error))
    return CreateAclsResponse(results=[written if problem is None else _refused(problem) for problem in problems])


def _is_filter(creation: AclCreation) -> bool:
    return (
        creation.resource_type == ResourceType.ANY
        or creation.resource_pattern_type in (PatternType.ANY, PatternType.MATCH)
        or creation.operation == AclOperation.ANY
        or creation.permission_type == PermissionType.ANY
    )


def _refused(problem: str) -> AclCreationResult:
    return AclCreationResult(error_code=ErrorCode.INVALID_REQUEST, error_message=problem)


def _problem_with(creation: AclCreation) -> str | None:
    resource_type = known(ResourceType, creation.resource_type)
    pattern_type = known(PatternType, creation.resource_pattern_type)
    operation = known(AclOperation, creation.operation)
    permission = known(PermissionType, creation.permission_type)
    if resource_type == ResourceType.CLUSTER and creation.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not creation.resource_name:
        return "Invalid empty resource name"
    if resource_type == ResourceType.UNKNOWN:
        return f"Invalid resourceType {resource_type.name}"
    if pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        return f"Invalid patternType {pattern_type.name}"
    if operation == AclOperation.UNKNOWN:
        return f"Invalid operation {operation.name}"
    if permission not in (PermissionType.ALLOW, PermissionType.DENY):
        return f"Invalid permissionType {permission.name}"
    if ":" not in creation.principal:
        return (
            f"Could not parse principal from `{creation.principal}` (no colon is present separating the principal type "
            "from the principal name)"
        )
    if not can_be_kept(Pattern(resource_type, creation.resource_name, pattern_type)):
        return f"A rule about {creation.resource_name!r} cannot be stored: its slashes or dots make it an invalid path"
    return None


def _acl(creation: AclCreation) -> Acl:
    pattern = Pattern(
        ResourceType(creation.resource_type), creation.resource_name, PatternType(creation.resource_pattern_type)
    )
    operation, permission = AclOperation(creation.operation), PermissionType(creation.permission_type)
    return Acl(pattern, Entry(creation.principal, creation.host, operation, permission))
