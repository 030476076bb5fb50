"""Consumer groups in the classic protocol: join, sync, heartbeat, leave."""

from __future__ import annotations

from typing import Any, Final

from barnabas.client.requests import groups, lookup
from barnabas.conformance.catalogue import Room
from barnabas.conformance.members import Member, settle, stable
from barnabas.conformance.probe import Probe
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest

room = Room("groups", "Consumer groups")

GUIDE: Final = "Protocol guide: Group Membership API"
NEEDS: Final = ("FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup")
STATIC: Final = ("FindCoordinator", "JoinGroup 5+", "SyncGroup 3+", "Heartbeat 3+", "LeaveGroup 3+")


def _describe(probe: Probe, group: str) -> Any:
    (found,) = probe.ask_coordinator(group, ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest(groups=[group])).groups
    return found


@room.check("coordinator", GUIDE, "FindCoordinator", "Metadata")
def coordinator(probe: Probe) -> None:
    """FindCoordinator returns one of the brokers, and the same one each time."""
    group = probe.group()
    probe.coordinator(group)
    first, second = probe.find_coordinator(group), probe.find_coordinator(group)
    node = first.node_id
    probe.require(node in probe.target.nodes, "one of the brokers", f"{node} of {sorted(probe.target.nodes)}")
    probe.expect("the coordinator the second time", second.node_id, node)
    there = probe.target.nodes[node]
    probe.expect("its address", (first.host, first.port), (there.host, there.port))


@room.check("coordinators-in-one-request", "KIP-699", "FindCoordinator 4+")
def coordinators_in_one_request(probe: Probe) -> None:
    """FindCoordinator v4 answers for several groups, each with its key."""
    names = [probe.group() for _ in range(3)]
    probe.coordinator(names[0])
    version = probe.version(ApiKey.FIND_COORDINATOR)
    answer = probe.ask(ApiKey.FIND_COORDINATOR, lookup.find_coordinator(version, *names), version)
    probe.expect("the keys", sorted(each.key for each in answer.coordinators), sorted(names))


@room.check("coordinator-of-nothing", GUIDE, "FindCoordinator 1+")
def coordinator_of_nothing(probe: Probe) -> None:
    """An unknown coordinator type gets INVALID_REQUEST."""
    probe.expect_error("key type 9", probe.find_coordinator("x", 9).error_code, ErrorCode.INVALID_REQUEST)


@room.check("member-id-required", "KIP-394", "FindCoordinator", "JoinGroup 4+", "LeaveGroup")
def member_id_required(probe: Probe) -> None:
    """From version 4 on, a new member first gets MEMBER_ID_REQUIRED and an id, and joins again with that id."""
    member = Member(probe, probe.group())
    answer = member.join()
    probe.expect_error("JoinGroup without an id", answer.error_code, ErrorCode.MEMBER_ID_REQUIRED)
    probe.require(bool(answer.member_id), "an id", "none" if not answer.member_id else "one came")
    given = answer.member_id
    answer = member.join()
    probe.expect_error("JoinGroup with the id", answer.error_code)
    probe.require(answer.member_id == given, "the same id", "the same" if answer.member_id == given else "another")


@room.check("member-id-has-client-id", "KIP-394", "FindCoordinator", "JoinGroup 4+", "LeaveGroup")
def member_id_has_client_id(probe: Probe) -> None:
    """The id that the broker assigns to a member starts with its client id."""
    answer = Member(probe, probe.group()).join()
    own = answer.member_id.startswith("barnabas-conformance-")
    probe.require(own, "an id that starts with the client id", "it does" if own else answer.member_id)


@room.check("first-leads", GUIDE, *NEEDS)
def first_leads(probe: Probe) -> None:
    """The only member leads generation 1, gets the member list, and receives its own assignment back."""
    member = Member(probe, probe.group())
    member.enter()
    answer = member.entered()
    probe.expect("the generation", answer.generation_id, 1)
    probe.expect("whether it leads", answer.leader == member.id, True)
    probe.expect("the members in its response", [each.member_id == member.id for each in answer.members], [True])
    probe.expect("the protocol", answer.protocol_name, "range")
    synced = member.sync({member.id: b"everything"})
    probe.expect_error("SyncGroup", synced.error_code)
    probe.expect("the assignment", synced.assignment, b"everything")


@room.check("follower-waits-for-leader", GUIDE, *NEEDS)
def follower_waits_for_leader(probe: Probe) -> None:
    """A follower gets no member list; its SyncGroup waits for the leader's, then returns what the leader assigned."""
    group = probe.group()
    (leader,) = stable(probe, group)
    follower = Member(probe, group)
    follower.enter()
    leader.rebalancing()
    leader.send_join()
    led, followed = leader.entered(), follower.entered()
    probe.expect("the leader", (led.leader == leader.id, followed.leader == leader.id), (True, True))
    probe.expect("members in the leader's response", len(led.members), 2)
    probe.expect("members in the follower's", len(followed.members), 0)
    probe.expect("the generation of both", (led.generation_id, followed.generation_id), (2, 2))
    follower.send_sync()
    leader.send_sync({leader.id: b"L", follower.id: b"F"})
    probe.expect("the assignments", (leader.synced().assignment, follower.synced().assignment), (b"L", b"F"))


@room.check("heartbeat", GUIDE, *NEEDS)
def heartbeat(probe: Probe) -> None:
    """Heartbeats from a member of a stable group succeed."""
    (member,) = stable(probe, probe.group())
    probe.expect_error("Heartbeat", member.heartbeat())


@room.check("heartbeat-in-rebalance", GUIDE, *NEEDS)
def heartbeat_in_rebalance(probe: Probe) -> None:
    """A new member starts a rebalance: the others' heartbeats get REBALANCE_IN_PROGRESS until they rejoin."""
    group = probe.group()
    (first,) = stable(probe, group)
    second = Member(probe, group)
    second.enter()
    first.rebalancing()
    probe.expect_error("the next heartbeat", first.heartbeat(), ErrorCode.REBALANCE_IN_PROGRESS)
    first.send_join()
    first.entered()
    second.entered()
    probe.expect_error("a heartbeat before SyncGroup", first.heartbeat())


@room.check("unknown-member", GUIDE, *NEEDS)
def unknown_member(probe: Probe) -> None:
    """An unknown member id gets UNKNOWN_MEMBER_ID from JoinGroup, SyncGroup, Heartbeat and LeaveGroup."""
    (member,) = stable(probe, probe.group())
    stranger = Member(probe, member.group)
    code = stranger.join(member="nobody").error_code
    probe.expect_error("JoinGroup", code, ErrorCode.UNKNOWN_MEMBER_ID)
    probe.expect_error("SyncGroup", member.sync(member="nobody").error_code, ErrorCode.UNKNOWN_MEMBER_ID)
    probe.expect_error("Heartbeat", member.heartbeat(member="nobody"), ErrorCode.UNKNOWN_MEMBER_ID)
    stranger.id = "nobody"
    left = stranger.leave()
    code = left.members[0].error_code if left.members else left.error_code
    probe.expect_error("LeaveGroup", code, ErrorCode.UNKNOWN_MEMBER_ID)


@room.check("illegal-generation", GUIDE, *NEEDS)
def illegal_generation(probe: Probe) -> None:
    """A generation other than the group's, older or newer, gets ILLEGAL_GENERATION from SyncGroup and Heartbeat."""
    (member,) = stable(probe, probe.group())
    for generation in (member.generation - 1, member.generation + 1):
        code = member.sync(generation=generation).error_code
        probe.expect_error(f"SyncGroup in generation {generation}", code, ErrorCode.ILLEGAL_GENERATION)
        code = member.heartbeat(generation=generation)
        probe.expect_error(f"Heartbeat in generation {generation}", code, ErrorCode.ILLEGAL_GENERATION)


@room.check("sync-again", GUIDE, *NEEDS)
def sync_again(probe: Probe) -> None:
    """SyncGroup in a stable group returns the assignment again, for a member whose response was lost."""
    member = Member(probe, probe.group())
    member.enter()
    member.entered()
    member.sync({member.id: b"mine"})
    answer = member.sync()
    probe.expect_error("SyncGroup", answer.error_code)
    probe.expect("the assignment", answer.assignment, b"mine")


@room.check("sync-names-protocol", "KIP-559", "FindCoordinator", "JoinGroup", "SyncGroup 5+", "LeaveGroup")
def sync_names_protocol(probe: Probe) -> None:
    """A SyncGroup with a protocol other than the group's gets INCONSISTENT_GROUP_PROTOCOL."""
    (member,) = stable(probe, probe.group())
    code = member.sync(protocol_type="connect").error_code
    probe.expect_error("another type", code, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    code = member.sync(protocol_name="sticky").error_code
    probe.expect_error("another protocol", code, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    answer = member.sync()
    probe.expect("the protocol in the response", (answer.protocol_type, answer.protocol_name), ("consumer", "range"))


@room.check("protocol-vote", GUIDE, *NEEDS)
def protocol_vote(probe: Probe) -> None:
    """The group uses a protocol that every member supports and most of them prefer."""
    group = probe.group()
    first, second = Member(probe, group), Member(probe, group)
    of_first, of_second = groups.subscription("first"), groups.subscription("second")
    first.enter(protocols=(("one", of_first), ("two", of_first)))
    first.entered()
    first.sync({first.id: b""}, protocol_name="one")
    second.enter(protocols=(("two", of_second), ("three", of_second)))
    first.rebalancing()
    first.send_join(protocols=(("one", of_first), ("two", of_first)))
    led = first.entered()
    second.entered()
    probe.expect("the protocol", led.protocol_name, "two")
    metadata = sorted(each.metadata for each in led.members)
    probe.expect("the members' metadata for it", metadata, sorted([of_first, of_second]))


@room.check("no-common-protocol", GUIDE, *NEEDS)
def no_common_protocol(probe: Probe) -> None:
    """A member with another protocol type, or without a common protocol, gets INCONSISTENT_GROUP_PROTOCOL."""
    (member,) = stable(probe, probe.group())
    for what, fields in (
        ("another protocol", {"protocols": (("sticky", b""),)}),
        ("another type", {"protocol_type": "connect"}),
        ("no protocol", {"protocols": ()}),
    ):
        code = Member(probe, member.group).join(**fields).error_code
        probe.expect_error(what, code, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


@room.check("session-timeout-limits", GUIDE, "FindCoordinator", "JoinGroup")
def session_timeout_limits(probe: Probe) -> None:
    """A session timeout outside the broker's limits gets INVALID_SESSION_TIMEOUT."""
    group = probe.group()
    for timeout in (1, 2**31 - 1):
        code = Member(probe, group).join(session_timeout_ms=timeout).error_code
        probe.expect_error(f"{timeout} ms", code, ErrorCode.INVALID_SESSION_TIMEOUT)


@room.check("empty-group-id", GUIDE, "FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat")
def empty_group_id(probe: Probe) -> None:
    """An empty group id gets INVALID_GROUP_ID."""
    node = probe.coordinator(probe.group())
    for key, request in (
        (ApiKey.JOIN_GROUP, groups.join_group("")),
        (ApiKey.SYNC_GROUP, groups.sync_group("", "x", 1, **groups.BY_RANGE)),
        (ApiKey.HEARTBEAT, groups.heartbeat("", "x", 1)),
    ):
        code = probe.ask(key, request, node=node).error_code
        probe.expect_error(key.api_name, code, ErrorCode.INVALID_GROUP_ID)


@room.check("leaving", GUIDE, *NEEDS, "DescribeGroups")
def leaving(probe: Probe) -> None:
    """A member that leaves is removed at once: the others rebalance, and its own heartbeats get UNKNOWN_MEMBER_ID."""
    group = probe.group()
    first, second = stable(probe, group, 2)
    left = second.leave()
    probe.expect_error("LeaveGroup", left.error_code)
    probe.expect_error("its heartbeat", second.heartbeat(), ErrorCode.UNKNOWN_MEMBER_ID)
    first.rebalancing()
    first.send_join()
    probe.expect("the generation after", first.entered().generation_id, 3)


@room.check("leaving-together", "KIP-345", *STATIC)
def leaving_together(probe: Probe) -> None:
    """LeaveGroup v3 removes several members and returns a result for each."""
    group = probe.group()
    first, second = stable(probe, group, 2)
    version = probe.version(ApiKey.LEAVE_GROUP)
    request = groups.leave_group(version, group, (first.id, None), ("nobody", None), (second.id, None))
    answer = probe.ask_coordinator(group, ApiKey.LEAVE_GROUP, request, version)
    codes = {each.member_id: each.error_code for each in answer.members}
    probe.expect_error("the first", codes[first.id])
    probe.expect_error("the second", codes[second.id])
    probe.expect_error("a stranger", codes["nobody"], ErrorCode.UNKNOWN_MEMBER_ID)


@room.check("session-expires", GUIDE, *NEEDS)
def session_expires(probe: Probe) -> None:
    """A member that sends no heartbeat for its session timeout is removed from the group."""
    group = probe.group()
    (member,) = stable(probe, group, session_timeout_ms=6000)
    probe.until(
        "the member to be removed after 6 s",
        lambda: _describe(probe, group).group_state,
        lambda state: state == "Empty",
    )
    probe.expect_error("its heartbeat", member.heartbeat(), ErrorCode.UNKNOWN_MEMBER_ID)


@room.check("static-member-returns", "KIP-345", *STATIC)
def static_member_returns(probe: Probe) -> None:
    """A static member that rejoins gets a new id and its old assignment, without a rebalance."""
    group = probe.group()
    before = Member(probe, group, "instance")
    before.enter()
    probe.expect("the generation", before.entered().generation_id, 1)
    before.sync({before.id: b"mine"})
    after = Member(probe, group, "instance")
    answer = after.join()
    probe.expect_error("JoinGroup", answer.error_code)
    probe.require(after.id != before.id, "another id", "the same" if after.id == before.id else "another")
    probe.expect("the generation still", answer.generation_id, 1)
    probe.expect("the assignment", after.sync().assignment, b"mine")


@room.check("static-member-fenced", "KIP-345", *STATIC)
def static_member_fenced(probe: Probe) -> None:
    """The previous holder of an instance id gets FENCED_INSTANCE_ID."""
    group = probe.group()
    before = Member(probe, group, "instance")
    before.enter()
    before.entered()
    before.sync({before.id: b"mine"})
    after = Member(probe, group, "instance")
    after.join()
    probe.expect_error("its heartbeat", before.heartbeat(), ErrorCode.FENCED_INSTANCE_ID)
    code = before.sync().error_code
    probe.expect_error("its SyncGroup", code, ErrorCode.FENCED_INSTANCE_ID)
    code = before.join().error_code
    probe.expect_error("its JoinGroup", code, ErrorCode.FENCED_INSTANCE_ID)


@room.check("static-member-no-id-first", "KIP-345", *STATIC)
def static_member_no_id_first(probe: Probe) -> None:
    """A static member joins with its first request: it does not need a member id first."""
    answer = Member(probe, probe.group(), "instance").join()
    probe.expect_error("the first JoinGroup", answer.error_code)


@room.check("pending-member", "KIP-394", "FindCoordinator", "JoinGroup 4+", "SyncGroup", "Heartbeat", "LeaveGroup")
def pending_member(probe: Probe) -> None:
    """A client that only has a member id is not a member yet: the rest of the group is not disturbed."""
    group = probe.group()
    (first,) = stable(probe, group)
    code = Member(probe, group).join().error_code
    probe.expect_error("the newcomer's first JoinGroup", code, ErrorCode.MEMBER_ID_REQUIRED)
    probe.expect_error("the other's heartbeat", first.heartbeat())


@room.check("leader-joins-again", GUIDE, *NEEDS)
def leader_joins_again(probe: Probe) -> None:
    """When the leader of a stable group rejoins, it starts a rebalance; a follower with unchanged metadata does not."""
    first, second = stable(probe, probe.group(), 2)
    answer = second.join()
    probe.expect_error("the follower's JoinGroup", answer.error_code)
    probe.expect("the generation still", answer.generation_id, 2)
    first.send_join()
    second.rebalancing()
    second.send_join()
    probe.expect("the generation then", (first.entered().generation_id, second.entered().generation_id), (3, 3))


@room.check("described", "Protocol guide: Administration API", *NEEDS, "DescribeGroups")
def described(probe: Probe) -> None:
    """DescribeGroups shows the state, protocol and members of a stable group, with their assignments."""
    (member,) = stable(probe, probe.group())
    found = _describe(probe, member.group)
    seen = found.group_state, found.protocol_type, found.protocol_data
    probe.expect("state, type and protocol", seen, ("Stable", "consumer", "range"))
    (only,) = found.members
    probe.expect("the member's id", only.member_id == member.id, True)
    probe.expect("its client id", only.client_id, "barnabas-conformance")
    probe.expect("its assignment", only.member_assignment, b"a")
    member.leave()
    probe.expect("the state without members", _describe(probe, member.group).group_state, "Empty")


@room.check("described-unknown", "KIP-1043", "DescribeGroups", "FindCoordinator")
def described_unknown(probe: Probe) -> None:
    """A group that does not exist is described as Dead, from version 6 on with GROUP_ID_NOT_FOUND."""
    found = _describe(probe, probe.group())
    probe.expect("the state", found.group_state, "Dead")
    if probe.version(ApiKey.DESCRIBE_GROUPS) >= 6:
        probe.expect_error("DescribeGroups", found.error_code, ErrorCode.GROUP_ID_NOT_FOUND)


@room.check("listed", "KIP-518", *NEEDS, "ListGroups 4+")
def listed(probe: Probe) -> None:
    """ListGroups lists a group with its state and can filter by state."""
    (member,) = stable(probe, probe.group())
    node = probe.coordinator(member.group)
    for states, there in ((["Stable"], True), (["Empty"], False), ([], True)):
        answer = probe.ask(ApiKey.LIST_GROUPS, ListGroupsRequest(states_filter=states), node=node)
        states_seen = [each.group_state for each in answer.groups if each.group_id == member.group]
        probe.expect(f"the group among {states or 'all'}", states_seen, ["Stable"] if there else [])


@room.check("deleted", "KIP-229", *NEEDS, "DeleteGroups")
def deleted(probe: Probe) -> None:
    """DeleteGroups deletes an empty group; a group with members gets NON_EMPTY_GROUP, an unknown one
    GROUP_ID_NOT_FOUND."""
    (member,) = stable(probe, probe.group())

    def delete() -> int:
        request = groups.delete_groups(member.group)
        (result,) = probe.ask_coordinator(member.group, ApiKey.DELETE_GROUPS, request).results
        return int(result.error_code)

    probe.expect_error("with a member", delete(), ErrorCode.NON_EMPTY_GROUP)
    member.leave()
    probe.expect_error("without", delete())
    probe.expect_error("once more", delete(), ErrorCode.GROUP_ID_NOT_FOUND)


@room.check("many-members", GUIDE, *NEEDS)
def many_members(probe: Probe) -> None:
    """Members that join one after another end up in one generation with one leader, each with its own assignment."""
    group = probe.group()
    members = [Member(probe, group) for _ in range(3)]
    settle(members, members)
    generations = {member.generation for member in members}
    probe.expect("the number of generations that members are in", len(generations), 1)
    for member in members:
        probe.expect_error("a heartbeat", member.heartbeat())
