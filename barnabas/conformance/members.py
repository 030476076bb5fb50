"""Members of a classic group, each with its own connection, like consumers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.client.requests import groups
from barnabas.conformance.probe import ANY_VERSION, Probe
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode


class Member:
    def __init__(self, probe: Probe, group: str, instance_id: str | None = None) -> None:
        self.probe = probe
        self.group = group
        self.instance_id = instance_id
        self.id = ""
        self.generation = -1
        node = probe.coordinator(group)
        self._wire = probe.connect(probe.target.nodes.get(node))

    # --- joining ---

    def send_join(self, **fields: Any) -> None:
        if self.instance_id is not None:
            fields = {"group_instance_id": self.instance_id, **fields}
        member = fields.pop("member", self.id)
        version = self.probe.version(ApiKey.JOIN_GROUP, ANY_VERSION)
        self._wire.send(ApiKey.JOIN_GROUP, groups.join_group(self.group, member, **fields), version)

    def joined(self) -> Any:
        answer = self._wire.answer()
        if answer.member_id:
            self.id = answer.member_id
            self.probe.joined(self.group, self.id, self.instance_id)
        if not answer.error_code:
            self.generation = answer.generation_id
        return answer

    def join(self, **fields: Any) -> Any:
        """Send one request and return its response."""
        self.send_join(**fields)
        return self.joined()

    def enter(self, **fields: Any) -> None:
        """Join, and join again with the id if the broker assigns one first (KIP-394). The response may take a while."""
        if self.instance_id is None and not self.id and self.probe.version(ApiKey.JOIN_GROUP, ANY_VERSION) >= 4:
            self.probe.expect_error("the first JoinGroup", self.join(**fields).error_code, ErrorCode.MEMBER_ID_REQUIRED)
        self.send_join(**fields)

    def entered(self) -> Any:
        answer = self.joined()
        self.probe.expect_error("JoinGroup", answer.error_code)
        return answer

    # --- syncing ---

    def send_sync(self, assignments: Mapping[str, bytes] | None = None, **fields: Any) -> None:
        fields = {"generation": self.generation, **groups.BY_RANGE, **self._instance(), **fields}
        request = groups.sync_group(
            self.group, fields.pop("member", self.id), fields.pop("generation"), assignments, **fields
        )
        self._wire.send(ApiKey.SYNC_GROUP, request, self.probe.version(ApiKey.SYNC_GROUP, ANY_VERSION))

    def synced(self) -> Any:
        return self._wire.answer()

    def sync(self, assignments: Mapping[str, bytes] | None = None, **fields: Any) -> Any:
        self.send_sync(assignments, **fields)
        return self.synced()

    # --- the rest ---

    def heartbeat(self, **fields: Any) -> int:
        given = {"member": self.id, "generation": self.generation, **self._instance(), **fields}
        request = groups.heartbeat(self.group, given.pop("member"), given.pop("generation"), **given)
        return int(self._ask(ApiKey.HEARTBEAT, request).error_code)

    def leave(self) -> Any:
        version = self.probe.version(ApiKey.LEAVE_GROUP, ANY_VERSION)
        request = groups.leave_group(version, self.group, (self.id, self.instance_id))
        return self.probe.ask_coordinator(self.group, ApiKey.LEAVE_GROUP, request, version)

    def rebalancing(self) -> None:
        """Wait until this member is told to rejoin."""
        self.probe.until(
            "a heartbeat to be answered with REBALANCE_IN_PROGRESS",
            self.heartbeat,
            lambda code: code == ErrorCode.REBALANCE_IN_PROGRESS,
        )

    def _ask(self, key: ApiKey, request: Any) -> Any:
        return self.probe.ask_coordinator(self.group, key, request, self.probe.version(key, ANY_VERSION))

    def _instance(self) -> dict[str, Any]:
        return {} if self.instance_id is None else {"group_instance_id": self.instance_id}


def stable(probe: Probe, group: str, count: int = 1, **fields: Any) -> list[Member]:
    """A stable group of this many members, led by the first. All of them join in one generation."""
    members = [Member(probe, group) for _ in range(count)]
    settle(members, members, **fields)
    return members


def settle(members: list[Member], new: list[Member], **fields: Any) -> None:
    """Add new members and take everybody through the resulting rebalance."""
    for member in new:
        member.enter(**fields)
        others = members[: members.index(member)]
        for other in others:
            other.rebalancing()
        for other in others:
            other.send_join(**fields)
        present = [*others, member]
        for each in present:
            each.entered()
        leader = present[0]
        leader.probe.expect_error("the leader's SyncGroup", leader.sync({each.id: b"a" for each in present}).error_code)
        for each in present[1:]:
            each.probe.expect_error("SyncGroup", each.sync().error_code)
