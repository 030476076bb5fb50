"""Share groups (KIP-932): members share partitions, and the broker gives each of them other records."""

from __future__ import annotations

from typing import Any, Final

from barnabas.client.requests import groups, share_groups
from barnabas.conformance.beating import JOIN, LEAVE, Beating, beating
from barnabas.conformance.catalogue import Room
from barnabas.conformance.probe import Probe
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_groups import ListGroupsRequest

room = Room("share-groups", "Share groups")

KIP: Final = "KIP-932"
KEY: Final = ApiKey.SHARE_GROUP_HEARTBEAT
NEEDS: Final = ("FindCoordinator", "ShareGroupHeartbeat")
FEATURE: Final = {"share.version": 1}


def _describe(probe: Probe, group: str) -> Any:
    message = share_groups.share_group_describe(group)
    (found,) = probe.ask_coordinator(group, ApiKey.SHARE_GROUP_DESCRIBE, message).groups
    return found


def _offsets(probe: Probe, group: str) -> dict[tuple[str, int], int]:
    message = share_groups.describe_share_group_offsets({group: None})
    (found,) = probe.ask_coordinator(group, ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, message).groups
    probe.expect_error("DescribeShareGroupOffsets", found.error_code)
    return {(t.topic_name, p.partition_index): p.start_offset for t in found.topics for p in t.partitions}


def _delete(probe: Probe, group: str) -> int:
    version = probe.version(ApiKey.DELETE_GROUPS)
    answer = probe.ask_coordinator(group, ApiKey.DELETE_GROUPS, groups.delete_groups(group), version)
    code: int = answer.results[0].error_code
    return code


def _known(group: Beating, topic: str, partitions: int) -> None:
    """A group whose only member has come, got its partitions, and left."""
    group.joined("a", topic)
    group.until_owned(partitions)
    group.beat("a", LEAVE)


@room.check("one-member", KIP, *NEEDS, "ShareGroupDescribe", features=FEATURE)
def one_member(probe: Probe) -> None:
    """The only member gets all partitions of the topics that it subscribes to."""
    topic = probe.topic(3)
    with beating(probe, KEY) as group:
        group.joined("a", topic)
        group.until_owned(3)
        found = _describe(probe, group.group)
        probe.expect("the state", found.group_state, "Stable")
        probe.expect("the assignor", found.assignor_name, "simple")
        probe.expect("the members", [member.member_id for member in found.members], ["a"])


@room.check("more-members-than-partitions", KIP, *NEEDS, features=FEATURE)
def more_members_than_partitions(probe: Probe) -> None:
    """If there are more members than partitions, members share them, and nobody is without one."""
    topic = probe.topic(1)
    with beating(probe, KEY) as group:
        for member in "abc":
            group.joined(member, topic)
        sizes = group.until_owned(3)
        probe.expect("how many partitions each member has", sizes, {"a": 1, "b": 1, "c": 1})


@room.check("epochs", KIP, *NEEDS, features=FEATURE)
def epochs(probe: Probe) -> None:
    """A heartbeat with an epoch that the member is not in gets FENCED_MEMBER_EPOCH."""
    topic = probe.topic()
    with beating(probe, KEY) as group:
        group.joined("a", topic)
        answer = group.beat("a", group.epochs["a"] + 10)
        probe.expect_error("an epoch from the future", answer.error_code, ErrorCode.FENCED_MEMBER_EPOCH)


@room.check("unknown-member", KIP, *NEEDS, features=FEATURE)
def unknown_member(probe: Probe) -> None:
    """A heartbeat of a member that is not in the group gets UNKNOWN_MEMBER_ID."""
    topic = probe.topic()
    with beating(probe, KEY) as group:
        group.joined("a", topic)
        probe.expect_error("a stranger", group.beat("b", 3).error_code, ErrorCode.UNKNOWN_MEMBER_ID)
        probe.expect_error("a stranger who leaves", group.beat("b", LEAVE).error_code, ErrorCode.UNKNOWN_MEMBER_ID)


@room.check("invalid-requests", KIP, *NEEDS, features=FEATURE)
def invalid_requests(probe: Probe) -> None:
    """No subscription in the first heartbeat, an epoch below -1, or an id of 37 characters gets INVALID_REQUEST."""
    topic = probe.topic()
    with beating(probe, KEY) as group:
        probe.expect_error("no subscription", group.beat("a", JOIN).error_code, ErrorCode.INVALID_REQUEST)
        probe.expect_error("an empty one", group.beat("a", JOIN, []).error_code, ErrorCode.INVALID_REQUEST)
        probe.expect_error("epoch -2", group.beat("a", -2, [topic]).error_code, ErrorCode.INVALID_REQUEST)
        probe.expect_error("a long id", group.beat("a" * 37, JOIN, [topic]).error_code, ErrorCode.INVALID_REQUEST)


@room.check("leaving", KIP, *NEEDS, "ShareGroupDescribe", "DeleteGroups", features=FEATURE)
def leaving(probe: Probe) -> None:
    """A member leaves with epoch -1; the group is empty then, and may be deleted."""
    topic = probe.topic()
    with beating(probe, KEY) as group:
        group.joined("a", topic)
        probe.expect_error("DeleteGroups with a member", _delete(probe, group.group), ErrorCode.NON_EMPTY_GROUP)
        answer = group.beat("a", LEAVE)
        probe.expect("the epoch of the answer", (answer.error_code, answer.member_epoch), (0, LEAVE))
        probe.expect("the state", _describe(probe, group.group).group_state, "Empty")
        probe.expect_error("DeleteGroups without members", _delete(probe, group.group))
        gone = _describe(probe, group.group)
        probe.expect_error("ShareGroupDescribe afterwards", gone.error_code, ErrorCode.GROUP_ID_NOT_FOUND)


@room.check("other-protocols", KIP, *NEEDS, "OffsetCommit", features=FEATURE)
def other_protocols(probe: Probe) -> None:
    """A share group has no committed offsets: OffsetCommit gets GROUP_ID_NOT_FOUND."""
    topic = probe.topic()
    with beating(probe, KEY) as group:
        group.joined("a", topic)
        version = probe.version(ApiKey.OFFSET_COMMIT)
        commit = groups.offset_commit(group.group, (probe.reference(topic, version >= 10), 0, 1))
        answer = probe.ask_coordinator(group.group, ApiKey.OFFSET_COMMIT, commit, version)
        code = answer.topics[0].partitions[0].error_code
        probe.expect_error("OffsetCommit", code, ErrorCode.GROUP_ID_NOT_FOUND)


@room.check(
    "offsets", "KIP-932", *NEEDS, "DescribeShareGroupOffsets", "AlterShareGroupOffsets", "DeleteShareGroupOffsets",
    features=FEATURE,
)  # fmt: skip
def offsets(probe: Probe) -> None:
    """The start offsets of a group without members can be set and deleted; with members that gets NON_EMPTY_GROUP."""
    topic = probe.topic()
    with beating(probe, KEY) as group:
        _known(group, topic, 1)
        probe.expect("offsets before anything was read", _offsets(probe, group.group), {(topic, 0): -1})
        alter = share_groups.alter_share_group_offsets(group.group, (topic, 0, 0))
        forget = share_groups.delete_share_group_offsets(group.group, topic)
        altered = probe.ask_coordinator(group.group, ApiKey.ALTER_SHARE_GROUP_OFFSETS, alter)
        probe.expect_error("AlterShareGroupOffsets", altered.error_code)
        probe.expect("offsets after that", _offsets(probe, group.group), {(topic, 0): 0})
        deleted = probe.ask_coordinator(group.group, ApiKey.DELETE_SHARE_GROUP_OFFSETS, forget)
        probe.expect_error("DeleteShareGroupOffsets", deleted.error_code)
        probe.expect("offsets at last", _offsets(probe, group.group), {})
        group.joined("a", topic)
        for key, message in (
            (ApiKey.ALTER_SHARE_GROUP_OFFSETS, alter),
            (ApiKey.DELETE_SHARE_GROUP_OFFSETS, forget),
        ):
            refused = probe.ask_coordinator(group.group, key, message)
            probe.expect_error(f"{key.api_name} with a member", refused.error_code, ErrorCode.NON_EMPTY_GROUP)


@room.check("listed-by-type", "KIP-1099", *NEEDS, "ListGroups 5+", features=FEATURE)
def listed_by_type(probe: Probe) -> None:
    """ListGroups names the type of a group, and leaves out groups of types that were not asked for."""
    topic = probe.topic()
    with beating(probe, KEY) as group:
        group.joined("a", topic)
        for wanted, expected in (("share", ["share"]), ("consumer", [])):
            answer = probe.ask_coordinator(group.group, ApiKey.LIST_GROUPS, ListGroupsRequest(types_filter=[wanted]))
            found = [each.group_type for each in answer.groups if each.group_id == group.group]
            probe.expect(f"the group among those of type {wanted}", found, expected)
