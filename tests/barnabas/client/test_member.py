"""Membership: how it joins, what it does when the group moves on without it, and when it leaves."""

import pytest

from barnabas.client.client import Client
from barnabas.client.connection import Address
from barnabas.client.errors import BrokerError, ClientError
from barnabas.client.member import HEARTBEAT_INTERVAL, METADATA_INTERVAL, Member
from barnabas.client.subscription import Subscription
from barnabas.protocol.api import ApiKey
from barnabas.protocol.consumer_protocol import ConsumerProtocolSubscription, with_version
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from barnabas.protocol.messages.heartbeat import HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from barnabas.protocol.messages.leave_group import LeaveGroupResponse
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.protocol.messages.sync_group import SyncGroupResponse
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.scripted_broker import ScriptedBroker

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Coordinating(ScriptedBroker):
    """Coordinates a group in which the member leads. `errors` says what each API answers first, one after another."""

    def __init__(self, **errors):
        super().__init__(
            {
                ApiKey.FIND_COORDINATOR: self.find_coordinator,
                ApiKey.JOIN_GROUP: self.join,
                ApiKey.SYNC_GROUP: self.sync,
                ApiKey.HEARTBEAT: lambda request: HeartbeatResponse(error_code=self.error("heartbeat")),
                ApiKey.OFFSET_COMMIT: self.commit,
                ApiKey.LEAVE_GROUP: lambda request: LeaveGroupResponse(),
            }
        )
        self.partitions = {"t": 2}
        self.generation = 0
        self.other_members = []
        self.errors = errors

    def error(self, api):
        remaining = self.errors.get(api)
        return remaining.pop(0) if remaining else ErrorCode.NONE

    def find_coordinator(self, request):
        found = Coordinator(key="g", node_id=0, host="127.0.0.1", port=self.port)
        return FindCoordinatorResponse(coordinators=[found])

    def join(self, request):
        error = self.error("join")
        if not request.member_id:
            error = ErrorCode.MEMBER_ID_REQUIRED
        member_id = request.member_id or f"member-{len(self.requests(ApiKey.JOIN_GROUP))}"
        if error:
            return JoinGroupResponse(error_code=error, protocol_name=None, leader="", member_id=member_id, members=[])
        self.generation += 1
        own = JoinGroupResponseMember(member_id=member_id, metadata=request.protocols[0].metadata)
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name="range",
            leader=member_id,
            member_id=member_id,
            members=[own, *self.other_members],
        )

    def sync(self, request):
        own = {each.member_id: each.assignment for each in request.assignments}.get(request.member_id, b"")
        return SyncGroupResponse(error_code=self.error("sync"), assignment=own)

    def commit(self, request):
        error = self.error("commit")
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error)
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )


@pytest.fixture
def member_of():
    opened = []

    def start(broker, *topics, regex=False):
        client = Client([Address("127.0.0.1", broker.port)], timeout=20)
        opened.extend([broker, client])
        return Member(client, "g", Subscription(topics or ["t"], regex=regex))

    yield start
    for each in opened:
        each.__exit__()


def subscription(topics, version=0):
    return with_version(ConsumerProtocolSubscription(topics=topics), version)


def test_it_gets_an_id_joins_leads_and_assigns(member_of):
    broker = Coordinating()
    member = member_of(broker)
    assert member.join() == [T0, T1]
    assert [request.member_id for request in broker.requests(ApiKey.JOIN_GROUP)] == ["", "member-1"]
    assert member.generation == 1


def test_it_shares_with_members_of_any_client(member_of):
    broker = Coordinating()
    broker.other_members = [
        JoinGroupResponseMember(member_id="a-first", metadata=subscription(["t", "unknown"], version=3))
    ]
    member = member_of(broker)
    assert member.join() == [T1]
    (sync,) = broker.requests(ApiKey.SYNC_GROUP)
    assert {each.member_id for each in sync.assignments} == {"member-1", "a-first"}


def test_static_members_come_first(member_of):
    broker = Coordinating()
    broker.other_members = [
        JoinGroupResponseMember(member_id="z", group_instance_id="static", metadata=subscription(["t"]))
    ]
    assert member_of(broker).join() == [T1]


def test_a_member_that_is_not_a_consumer(member_of):
    broker = Coordinating()
    broker.other_members = [JoinGroupResponseMember(member_id="odd", metadata=b"?")]
    with pytest.raises(ClientError, match="member odd is not a consumer"):
        member_of(broker).join()


def test_a_generation_that_ends_during_its_join_is_joined_again(member_of):
    broker = Coordinating(sync=[ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION])
    member = member_of(broker)
    assert member.join() == [T0, T1]
    assert member.generation == 3


def test_a_member_that_was_forgotten_comes_back_as_another(member_of):
    broker = Coordinating(sync=[ErrorCode.UNKNOWN_MEMBER_ID])
    member = member_of(broker)
    assert member.join() == [T0, T1]
    assert broker.requests(ApiKey.JOIN_GROUP)[2].member_id == ""


def test_a_coordinator_that_still_loads_is_waited_for(member_of):
    broker = Coordinating(sync=[ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
    assert member_of(broker).join() == [T0, T1]


def test_a_member_looks_for_its_coordinator_again_when_it_has_moved(member_of, clock):
    broker = Coordinating(heartbeat=[ErrorCode.NOT_COORDINATOR])
    member = member_of(broker)
    member.join()
    clock.now += HEARTBEAT_INTERVAL
    assert member.heartbeat()
    assert len(broker.requests(ApiKey.HEARTBEAT)) == 2
    assert len(broker.requests(ApiKey.FIND_COORDINATOR)) == 2


def test_a_group_with_another_assignor(member_of):
    broker = Coordinating(join=[ErrorCode.NONE, ErrorCode.INCONSISTENT_GROUP_PROTOCOL])
    with pytest.raises(BrokerError, match=r"range assignor \(INCONSISTENT_GROUP_PROTOCOL\)"):
        member_of(broker).join()


@pytest.mark.parametrize(
    "error", [ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID]
)
def test_a_heartbeat_says_that_the_group_has_moved_on(member_of, clock, error):
    member = member_of(Coordinating(heartbeat=[ErrorCode.NONE, error]))
    member.join()
    clock.now += HEARTBEAT_INTERVAL
    assert member.heartbeat()
    clock.now += HEARTBEAT_INTERVAL
    assert not member.heartbeat()


def test_heartbeats_are_sent_when_they_are_due(member_of, clock):
    broker = Coordinating()
    member = member_of(broker)
    member.join()
    for _ in range(10):
        clock.now += HEARTBEAT_INTERVAL / 2
        assert member.heartbeat()
    assert len(broker.requests(ApiKey.HEARTBEAT)) == 5


def test_a_commit_names_its_member(member_of):
    broker = Coordinating(commit=[ErrorCode.NONE, ErrorCode.ILLEGAL_GENERATION])
    member = member_of(broker)
    member.join()
    assert member.commit({T0: 5})
    (request,) = broker.requests(ApiKey.OFFSET_COMMIT)
    assert (request.member_id, request.generation_id_or_member_epoch) == ("member-1", 1)
    assert not member.commit({T0: 6})


def test_a_leader_notices_that_a_topic_has_grown(member_of, clock):
    broker = Coordinating()
    member = member_of(broker)
    member.join()
    clock.now += METADATA_INTERVAL
    assert member.heartbeat()
    broker.partitions = {"t": 3}
    clock.now += METADATA_INTERVAL
    assert not member.heartbeat()
    assert len(member.join()) == 3


def test_a_topic_that_matches_the_pattern_is_joined_when_it_appears(member_of, clock):
    broker = Coordinating()
    member = member_of(broker, "[tu]", regex=True)
    assert member.join() == [T0, T1]
    clock.now += METADATA_INTERVAL
    assert member.heartbeat()
    broker.partitions = {"t": 2, "u": 1, "other": 1}
    clock.now += METADATA_INTERVAL
    assert not member.heartbeat()
    assert member.join() == [T0, T1, TopicPartition("u", 0)]


def test_it_leaves_once(member_of):
    broker = Coordinating()
    member = member_of(broker)
    member.leave()
    member.join()
    member.leave()
    member.leave()
    (request,) = broker.requests(ApiKey.LEAVE_GROUP)
    assert [each.member_id for each in request.members] == ["member-1"]
