"""Committed offsets: who may commit, and what is returned."""

from __future__ import annotations

from typing import Any, Final

from barnabas.client.requests import admin, groups
from barnabas.conformance.catalogue import Room
from barnabas.conformance.members import Member, stable
from barnabas.conformance.probe import Probe
from barnabas.conformance.verdict import NotApplicable
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

room = Room("offsets", "Committed offsets")

COMMIT: Final = "Protocol guide: OffsetCommit API"
FETCH: Final = "Protocol guide: OffsetFetch API"
NEEDS: Final = ("FindCoordinator", "OffsetCommit", "OffsetFetch")
OF_MEMBERS: Final = (*NEEDS, "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup")


def _commit(probe: Probe, group: str, topic: str, offset: int, partition: int = 0, **fields: Any) -> int:
    version = probe.version(ApiKey.OFFSET_COMMIT)
    request = groups.offset_commit(group, (probe.reference(topic, version >= 10), partition, offset), **fields)
    answer = probe.ask_coordinator(group, ApiKey.OFFSET_COMMIT, request, version)
    return int(probe.only(answer.topics, "partitions").error_code)


def _fetched(probe: Probe, group: str, topics: list[tuple[str, list[int]]] | None, **fields: Any) -> Any:
    """The group's part of the response, with an error code and topics."""
    version = probe.version(ApiKey.OFFSET_FETCH)
    asked = None if topics is None else [(probe.reference(name, version >= 10), parts) for name, parts in topics]
    request = groups.offset_fetch(version, {group: asked}, **fields)
    answer = probe.ask_coordinator(group, ApiKey.OFFSET_FETCH, request, version)
    return answer.groups[0] if version >= 8 else answer


def _committed(probe: Probe, group: str, topic: str, partition: int = 0, **fields: Any) -> Any:
    found = _fetched(probe, group, [(topic, [partition])], **fields)
    probe.expect_error("OffsetFetch", found.error_code)
    return probe.only(found.topics, "partitions")


@room.check("kept", COMMIT, *NEEDS)
def kept(probe: Probe) -> None:
    """OffsetFetch returns the committed offset, metadata and leader epoch."""
    topic, group = probe.topic(), probe.group()
    probe.expect_error("OffsetCommit", _commit(probe, group, topic, 42, metadata="words", leader_epoch=0))
    found = _committed(probe, group, topic)
    probe.expect("offset and metadata", (found.committed_offset, found.metadata), (42, "words"))
    if probe.version(ApiKey.OFFSET_FETCH) >= 5:
        probe.expect("the leader epoch", found.committed_leader_epoch, 0)


@room.check("overwritten", COMMIT, *NEEDS)
def overwritten(probe: Probe) -> None:
    """A later commit replaces an earlier one, even with a smaller offset."""
    topic, group = probe.topic(), probe.group()
    for offset in (42, 7):
        probe.expect_error("OffsetCommit", _commit(probe, group, topic, offset))
    probe.expect("the offset", _committed(probe, group, topic).committed_offset, 7)


@room.check("none-yet", FETCH, *NEEDS)
def none_yet(probe: Probe) -> None:
    """A partition without a committed offset gets -1 and no error, even for an unknown group."""
    topic, group = probe.topic(), probe.group()
    found = _committed(probe, group, topic)
    probe.expect_error("the partition", found.error_code)
    probe.expect("the offset", found.committed_offset, -1)


@room.check("all-of-a-group", "KIP-88", "FindCoordinator", "OffsetCommit", "OffsetFetch 2+")
def all_of_a_group(probe: Probe) -> None:
    """A null list of topics returns exactly the offsets that the group has committed."""
    topic, group = probe.topic(partitions=3), probe.group()
    for partition in (0, 2):
        probe.expect_error("OffsetCommit", _commit(probe, group, topic, 5, partition))
    found = _fetched(probe, group, None)
    seen = sorted(each.partition_index for part in found.topics for each in part.partitions)
    probe.expect("the partitions", seen, [0, 2])


@room.check("several-groups", "KIP-709", "FindCoordinator", "OffsetCommit", "OffsetFetch 8+")
def several_groups(probe: Probe) -> None:
    """OffsetFetch v8 returns the offsets of several groups, each with its own."""
    topic = probe.topic()
    both = [probe.group(), probe.group()]
    if len({probe.coordinator(group) for group in both}) > 1:
        raise NotApplicable("the two groups happen to have different coordinators")
    for offset, group in enumerate(both, start=5):
        probe.expect_error("OffsetCommit", _commit(probe, group, topic, offset))
    version = probe.version(ApiKey.OFFSET_FETCH)
    request = groups.offset_fetch(version, dict.fromkeys(both))
    answer = probe.ask_coordinator(both[0], ApiKey.OFFSET_FETCH, request, version)
    seen = {each.group_id: probe.only(each.topics, "partitions").committed_offset for each in answer.groups}
    probe.expect("the offsets", [seen.get(group) for group in both], [5, 6])


@room.check("unknown-topic", COMMIT, *NEEDS)
def unknown_topic(probe: Probe) -> None:
    """A commit for an unknown topic or partition gets UNKNOWN_TOPIC_OR_PARTITION, or UNKNOWN_TOPIC_ID by id."""
    topic, group = probe.topic(), probe.group()
    code = _commit(probe, group, topic, 1, partition=9)
    probe.expect_error("an unknown partition", code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    by_id = probe.version(ApiKey.OFFSET_COMMIT) >= 10
    expected = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    probe.expect_error("an unknown topic", _commit(probe, group, probe.name(), 1), expected)


@room.check("large-metadata", "Documentation: offset.metadata.max.bytes", *NEEDS)
def large_metadata(probe: Probe) -> None:
    """Metadata larger than offset.metadata.max.bytes gets OFFSET_METADATA_TOO_LARGE, and nothing is committed."""
    topic, group = probe.topic(), probe.group()
    code = _commit(probe, group, topic, 1, metadata="x" * 30_000)
    probe.expect_error("30000 bytes", code, ErrorCode.OFFSET_METADATA_TOO_LARGE)
    probe.expect("the offset", _committed(probe, group, topic).committed_offset, -1)


@room.check("member-commits", COMMIT, *OF_MEMBERS)
def member_commits(probe: Probe) -> None:
    """A member can commit with its id and generation."""
    topic = probe.topic()
    (member,) = stable(probe, probe.group())
    code = _commit(probe, member.group, topic, 3, member=member.id, generation=member.generation)
    probe.expect_error("OffsetCommit", code)
    probe.expect("the offset", _committed(probe, member.group, topic).committed_offset, 3)


@room.check("wrong-generation", COMMIT, *OF_MEMBERS)
def wrong_generation(probe: Probe) -> None:
    """A commit with another generation gets ILLEGAL_GENERATION, with an unknown member id UNKNOWN_MEMBER_ID."""
    topic = probe.topic()
    (member,) = stable(probe, probe.group())
    for generation in (member.generation - 1, member.generation + 1):
        code = _commit(probe, member.group, topic, 3, member=member.id, generation=generation)
        probe.expect_error(f"generation {generation}", code, ErrorCode.ILLEGAL_GENERATION)
    code = _commit(probe, member.group, topic, 3, member="nobody", generation=member.generation)
    probe.expect_error("a stranger", code, ErrorCode.UNKNOWN_MEMBER_ID)
    probe.expect("the offset", _committed(probe, member.group, topic).committed_offset, -1)


@room.check("without-membership", COMMIT, *OF_MEMBERS)
def without_membership(probe: Probe) -> None:
    """While a group has members, a commit from outside (generation -1, no id) gets UNKNOWN_MEMBER_ID."""
    topic = probe.topic()
    (member,) = stable(probe, probe.group())
    code = _commit(probe, member.group, topic, 3)
    probe.expect_error("a commit from outside", code, ErrorCode.UNKNOWN_MEMBER_ID)
    member.leave()
    probe.expect_error("when the group is empty", _commit(probe, member.group, topic, 3))


@room.check("in-a-rebalance", COMMIT, *OF_MEMBERS)
def in_a_rebalance(probe: Probe) -> None:
    """Members may commit while a rebalance waits for members to join, but not while it waits for the leader."""
    topic, group = probe.topic(), probe.group()
    (first,) = stable(probe, group)
    second = Member(probe, group)
    second.enter()
    first.rebalancing()
    code = _commit(probe, group, topic, 3, member=first.id, generation=first.generation)
    probe.expect_error("before it joins again", code)
    first.send_join()
    first.entered()
    second.entered()
    code = _commit(probe, group, topic, 4, member=first.id, generation=first.generation)
    probe.expect_error("before the assignment", code, ErrorCode.REBALANCE_IN_PROGRESS)


@room.check("fenced-static-member", "KIP-345", "OffsetCommit 7+", "JoinGroup 5+", "SyncGroup 3+", *NEEDS[:1])
def fenced_static_member(probe: Probe) -> None:
    """A commit from a static member that was replaced by another gets FENCED_INSTANCE_ID."""
    topic, group = probe.topic(), probe.group()
    before = Member(probe, group, "instance")
    before.enter()
    before.entered()
    before.sync({before.id: b""})
    Member(probe, group, "instance").join()
    code = _commit(probe, group, topic, 3, member=before.id, generation=before.generation, group_instance_id="instance")
    probe.expect_error("OffsetCommit", code, ErrorCode.FENCED_INSTANCE_ID)


def _delete(probe: Probe, group: str, topic: str) -> Any:
    partition = OffsetDeleteRequestPartition(partition_index=0)
    request = OffsetDeleteRequest(group_id=group, topics=[OffsetDeleteRequestTopic(name=topic, partitions=[partition])])
    return probe.ask_coordinator(group, ApiKey.OFFSET_DELETE, request)


@room.check("deleted", "KIP-496", *NEEDS, "OffsetDelete")
def deleted(probe: Probe) -> None:
    """OffsetDelete removes a committed offset; an unknown group gets GROUP_ID_NOT_FOUND."""
    topic, group = probe.topic(), probe.group()
    probe.expect_error("an unknown group", _delete(probe, group, topic).error_code, ErrorCode.GROUP_ID_NOT_FOUND)
    _commit(probe, group, topic, 3)
    answer = _delete(probe, group, topic)
    probe.expect_error("OffsetDelete", answer.error_code)
    probe.expect_error("the partition", probe.only(answer.topics, "partitions").error_code)
    probe.expect("the offset", _committed(probe, group, topic).committed_offset, -1)


@room.check("gone-with-the-topic", "Documentation: offsets of deleted topics", *NEEDS, "DeleteTopics")
def gone_with_the_topic(probe: Probe) -> None:
    """Deleting a topic deletes its committed offsets."""
    topic, group = probe.topic(), probe.group()
    _commit(probe, group, topic, 3)
    probe.ask_controller(ApiKey.DELETE_TOPICS, admin.delete_topics(topic))
    probe.until("the offsets to be gone", lambda: _fetched(probe, group, None).topics, lambda topics: not topics)
    probe.require(True, "the offsets to be gone", "they are")


@room.check("gone-with-the-group", "KIP-229", *NEEDS, "DeleteGroups")
def gone_with_the_group(probe: Probe) -> None:
    """Deleting a group deletes its offsets."""
    topic, group = probe.topic(), probe.group()
    _commit(probe, group, topic, 3)
    (result,) = probe.ask_coordinator(group, ApiKey.DELETE_GROUPS, groups.delete_groups(group)).results
    probe.expect_error("DeleteGroups", result.error_code)
    probe.expect("the offset", _committed(probe, group, topic).committed_offset, -1)


@room.check("stable-without-transactions", "KIP-447", "FindCoordinator", "OffsetCommit", "OffsetFetch 7+")
def stable_without_transactions(probe: Probe) -> None:
    """require_stable makes no difference without an open transaction."""
    topic, group = probe.topic(), probe.group()
    _commit(probe, group, topic, 3)
    probe.expect("the offset", _committed(probe, group, topic, require_stable=True).committed_offset, 3)
