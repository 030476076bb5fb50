"""Who may do what: `authorizer.class.name`, `super.users`, `allow.everyone.if.no.acl.found`, and the rules.

Handlers ask an `Access`: what one principal may do from one host. It caches each decision until the rules change, so
that Produce and Fetch only pay for a lookup of the topic's name, however many rules there are. Where no authorizer is
set, a connection has no Access, and requests that ask anyway get EVERYTHING.
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import AddressValueError, IPv6Address
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

import structlog

from barnabas.broker.config.values import principals
from barnabas.broker.security.acls import Acls
from barnabas.broker.security.principal import Principal
from barnabas.protocol.acls import CLUSTER_NAME, OPERATIONS, AclOperation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.config import BrokerConfig

log = structlog.get_logger()

# The value in an answer when the request did not ask what its sender may do.
NOT_ASKED: Final = -(2**31)

# How many decisions about resources of one type are cached: clients may make up names.
_REMEMBERED: Final = 10_000


class Access:
    """What somebody may do."""

    __slots__ = ("__weakref__",)

    def may(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        raise NotImplementedError

    def some(self, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Whether it may be done to at least one resource of the type."""
        raise NotImplementedError

    def topic(self, operation: AclOperation, name: str) -> bool:
        return self.may(operation, ResourceType.TOPIC, name)

    def group(self, operation: AclOperation, group_id: str) -> bool:
        return self.may(operation, ResourceType.GROUP, group_id)

    def transactional_id(self, operation: AclOperation, transactional_id: str) -> bool:
        return self.may(operation, ResourceType.TRANSACTIONAL_ID, transactional_id)

    def cluster(self, *operations: AclOperation) -> bool:
        """Whether one of these may be done to the cluster."""
        return any(self.may(operation, ResourceType.CLUSTER, CLUSTER_NAME) for operation in operations)

    def operations(self, resource_type: ResourceType, name: str = CLUSTER_NAME) -> int:
        """Everything that may be done to a resource, as the bits in answers."""
        return bits(*(each for each in OPERATIONS[resource_type] if self.may(each, resource_type, name)))

    def cluster_operations(self) -> int:
        """What may be done to the cluster. A client that may not describe it is told nothing."""
        return self.operations(ResourceType.CLUSTER) if self.cluster(AclOperation.DESCRIBE) else 0


class _Everything(Access):
    __slots__ = ()

    def may(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        return True

    def some(self, operation: AclOperation, resource_type: ResourceType) -> bool:
        return True


EVERYTHING: Final = _Everything()


class Decisions(dict[str, bool]):
    """Whether an operation is allowed on each resource of a type, by name. Decides what is not known yet."""

    __slots__ = ("_access", "_operation", "_resource_type")

    def __init__(self, access: CheckedAccess, operation: AclOperation, resource_type: ResourceType) -> None:
        super().__init__()
        self._access = access
        self._operation = operation
        self._resource_type = resource_type

    def __missing__(self, name: str) -> bool:
        decision = self._access.decide(self._operation, self._resource_type, name)
        if len(self) >= _REMEMBERED:
            self.clear()
        self[name] = decision
        return decision


class CheckedAccess(Access):
    """What a principal may do from a host, as the authorizer decides it."""

    __slots__ = ("_authorizer", "_decisions", "_host", "_principal", "readable_topics", "writable_topics")

    def __init__(self, authorizer: Authorizer, principal: str, host: str) -> None:
        self._authorizer = authorizer
        self._principal = principal
        self._host = host
        self._decisions: dict[tuple[AclOperation, ResourceType], Decisions] = {}
        # What Fetch and Produce look up.
        self.readable_topics = self._of(AclOperation.READ, ResourceType.TOPIC)
        self.writable_topics = self._of(AclOperation.WRITE, ResourceType.TOPIC)

    def may(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        return self._of(operation, resource_type)[name]

    @property
    def is_super_users(self) -> bool:
        return self._principal in self._authorizer.super_users

    def some(self, operation: AclOperation, resource_type: ResourceType) -> bool:
        authorizer = self._authorizer
        # Super users may do everything, and so may everybody to a resource without rules, where the settings say so.
        if self.decide(operation, resource_type, "hardcode"):
            return True
        return authorizer.acls.authorize_some(self._principal, self._host, operation, resource_type)

    def decide(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        return self._authorizer.authorize(self._principal, self._host, operation, resource_type, name)

    def forget(self) -> None:
        """The rules have changed."""
        for decisions in self._decisions.values():
            decisions.clear()

    def _of(self, operation: AclOperation, resource_type: ResourceType) -> Decisions:
        found = self._decisions.get((operation, resource_type))
        if found is None:
            found = self._decisions[operation, resource_type] = Decisions(self, operation, resource_type)
        return found


class Authorizer:
    """Decides by super users and rules. Whoever changes `acls` must call `changed`."""

    def __init__(self, super_users: Collection[str], allow_everyone: bool) -> None:
        self.acls = Acls()
        self.super_users = frozenset(super_users)
        self._allow_everyone = allow_everyone
        self._accesses: WeakValueDictionary[tuple[str, str], CheckedAccess] = WeakValueDictionary()

    def access(self, principal: Principal, host: str) -> CheckedAccess:
        """What a principal may do from an address. Its connections share it."""
        key = str(principal), _as_java_writes(host)
        found = self._accesses.get(key)
        if found is None:
            found = self._accesses[key] = CheckedAccess(self, *key)
        return found

    def changed(self) -> None:
        """The rules have changed: earlier decisions are no longer valid."""
        for access in self._accesses.values():
            access.forget()

    def authorize(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> bool:
        if principal in self.super_users:
            return True
        decision = self.acls.authorize(principal, host, operation, resource_type, name)
        allowed = self._allow_everyone if decision is None else decision
        if not allowed:
            log.debug(
                "not allowed",
                principal=principal,
                host=host,
                operation=operation.name,
                to=f"{resource_type.name}:{name}",
            )
        return allowed


def authorizer_of(config: BrokerConfig) -> Authorizer | None:
    """The authorizer that a broker's settings ask for."""
    if not config.authorizer_class_name:
        return None
    return Authorizer(principals(config.super_users), config.allow_everyone_if_no_acl_found)


def bits(*operations: AclOperation) -> int:
    return sum(1 << operation for operation in operations)


def _as_java_writes(host: str) -> str:
    """An address as rules write it: IPv6 addresses without short forms."""
    if ":" not in host:
        return host
    address, percent, scope = host.partition("%")
    try:
        groups = IPv6Address(address).exploded.split(":")
    except AddressValueError:
        return host
    return ":".join(f"{int(group, 16):x}" for group in groups) + percent + scope
