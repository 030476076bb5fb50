"""Groups of the consumer protocol (KIP-848): the broker assigns partitions."""

from __future__ import annotations

from typing import Any, Final

from barnabas.client.requests import groups
from barnabas.conformance.beating import JOIN, LEAVE, beating
from barnabas.conformance.catalogue import Room
from barnabas.conformance.probe import Probe
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest

room = Room("consumer-groups", "Consumer groups with the broker's assignors")

KIP: Final = "KIP-848"
KEY: Final = ApiKey.CONSUMER_GROUP_HEARTBEAT
NEEDS: Final = ("FindCoordinator", "ConsumerGroupHeartbeat 1+")


def _describe(probe: Probe, group: str) -> Any:
    message = ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=False)
    (found,) = probe.ask_coordinator(group, ApiKey.CONSUMER_GROUP_DESCRIBE, message).groups
    return found


@room.check("one-member", KIP, *NEEDS, "ConsumerGroupDescribe")
def one_member(probe: Probe) -> None:
    """The only member gets all partitions of the topics that it subscribes to."""
    topic = probe.topic(3)
    with beating(probe, KEY) as group:
        group.joined("a", topic)
        group.until_owned(3)
        found = _describe(probe, group.group)
        probe.expect("the state", found.group_state, "Stable")
        probe.expect("the members", [member.member_id for member in found.members], ["a"])


@room.check("two-members", KIP, *NEEDS)
def two_members(probe: Probe) -> None:
    """A partition is given to a second member only when the first has let go of it."""
    topic = probe.topic(2)
    with beating(probe, KEY) as group:
        group.joined("a", topic)
        group.until_owned(2)
        group.joined("b", topic)
        probe.expect("what the second member has at first", group.owned["b"], {})
        sizes = probe.until(
            "a partition each",
            lambda: group.until_owned(2),
            lambda sizes: sorted(sizes.values()) == [1, 1],
        )
        probe.expect("the members", sorted(sizes), ["a", "b"])


@room.check("epochs", KIP, *NEEDS)
def epochs(probe: Probe) -> None:
    """A heartbeat with an epoch that the member is not in gets FENCED_MEMBER_EPOCH."""
    topic = probe.topic()
    with beating(probe, KEY) as group:
        group.joined("a", topic)
        answer = group.beat("a", group.epochs["a"] + 10)
        probe.expect_error("an epoch from the future", answer.error_code, ErrorCode.FENCED_MEMBER_EPOCH)


@room.check("unknown-member", KIP, *NEEDS)
def unknown_member(probe: Probe) -> None:
    """A heartbeat of a member that is not in the group gets UNKNOWN_MEMBER_ID."""
    topic = probe.topic()
    with beating(probe, KEY) as group:
        group.joined("a", topic)
        probe.expect_error("a stranger", group.beat("b", 3).error_code, ErrorCode.UNKNOWN_MEMBER_ID)
        probe.expect_error("a stranger who leaves", group.beat("b", LEAVE).error_code, ErrorCode.UNKNOWN_MEMBER_ID)


@room.check("invalid-requests", KIP, *NEEDS)
def invalid_requests(probe: Probe) -> None:
    """A first heartbeat without a subscription, or with an unknown negative epoch, gets INVALID_REQUEST."""
    topic = probe.topic()
    with beating(probe, KEY) as group:
        probe.expect_error("no subscription", group.beat("a", JOIN).error_code, ErrorCode.INVALID_REQUEST)
        probe.expect_error("epoch -3", group.beat("a", -3, [topic]).error_code, ErrorCode.INVALID_REQUEST)


@room.check("leaving", KIP, *NEEDS, "ConsumerGroupDescribe", "DeleteGroups")
def leaving(probe: Probe) -> None:
    """A member leaves with epoch -1; the group is empty then, and may be deleted."""
    topic = probe.topic()
    with beating(probe, KEY) as group:
        group.joined("a", topic)
        version = probe.version(ApiKey.DELETE_GROUPS)
        deletion = groups.delete_groups(group.group)
        (refused,) = probe.ask_coordinator(group.group, ApiKey.DELETE_GROUPS, deletion, version).results
        probe.expect_error("DeleteGroups with a member", refused.error_code, ErrorCode.NON_EMPTY_GROUP)
        answer = group.beat("a", LEAVE)
        probe.expect("the epoch of the answer", (answer.error_code, answer.member_epoch), (0, LEAVE))
        probe.expect("the state", _describe(probe, group.group).group_state, "Empty")
        (deleted,) = probe.ask_coordinator(group.group, ApiKey.DELETE_GROUPS, deletion, version).results
        probe.expect_error("DeleteGroups without members", deleted.error_code)


@room.check("listed-by-type", "KIP-1099", *NEEDS, "ListGroups 5+")
def listed_by_type(probe: Probe) -> None:
    """ListGroups names the type of a group, and leaves out groups of types that were not asked for."""
    topic = probe.topic()
    with beating(probe, KEY) as group:
        group.joined("a", topic)
        for wanted, expected in (("consumer", ["consumer"]), ("share", [])):
            answer = probe.ask_coordinator(group.group, ApiKey.LIST_GROUPS, ListGroupsRequest(types_filter=[wanted]))
            found = [each.group_type for each in answer.groups if each.group_id == group.group]
            probe.expect(f"the group among those of type {wanted}", found, expected)
