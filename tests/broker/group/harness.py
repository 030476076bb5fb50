"""A coordinator's shard without a broker: time is moved by hand, records are kept in a list."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace

from barnabas.broker.controller.cluster_image import ClusterImage
from barnabas.broker.controller.images import BrokerImage, PartitionImage, TopicImage
from barnabas.broker.group.client import ClientInfo
from barnabas.broker.group.records import read_record
from barnabas.broker.group.shard import GroupShard
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import delete_share_group_state as deleting
from barnabas.protocol.messages import initialize_share_group_state as initializing
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

GROUP = "g"
SHARE = {
    "max_size": 200,
    "initialize_retry_interval_ms": 30_000,
    "session_timeout_ms": 45_000,
    "min_session_timeout_ms": 45_000,
    "max_session_timeout_ms": 60_000,
    "heartbeat_interval_ms": 5000,
    "min_heartbeat_interval_ms": 5000,
    "max_heartbeat_interval_ms": 15_000,
    "assignment_interval_ms": 0,
    "min_assignment_interval_ms": 0,
    "max_assignment_interval_ms": 15_000,
}


class ManualTimers:
    """Timers that fire in order when a test moves the time."""

    def __init__(self, now_ms):
        self.now_ms = now_ms
        self._timers = {}
        self._serial = count()

    def schedule(self, key, delay_ms, callback):
        self._timers[key] = (self.now_ms + delay_ms, next(self._serial), callback)

    def cancel(self, key):
        self._timers.pop(key, None)

    def is_scheduled(self, key):
        return key in self._timers

    def elapsed_ms(self):
        return self.now_ms

    def close(self):
        self._timers.clear()

    def advance(self, ms):
        end = self.now_ms + ms
        while True:
            due = min(((when, serial, key) for key, (when, serial, _) in self._timers.items()), default=None)
            if due is None or due[0] > end:
                break
            self.now_ms = max(self.now_ms, due[0])
            self._timers.pop(due[2])[2]() if due[2] in self._timers else None
        self.now_ms = end

    @property
    def keys(self):
        return set(self._timers)


class FewTopics(ClusterImage):
    """Topics that a test creates; the id of a topic is its name."""

    def create(self, name, partitions=1, racks=()):
        self.brokers = {index: BrokerImage(index, (), rack) for index, rack in enumerate(racks)}
        images = tuple(PartitionImage(index, tuple(self.brokers)) for index in range(partitions))
        self.put(name, TopicImage(name, topic_id(name), images, {}, 0))


def topic_id(name):
    return name.encode().ljust(16)


class FakeStates:
    """A share coordinator that answers at once, and the background in which it is asked.

    While it `holds`, nothing of that happens until `go_on`. `error` is what it says of every partition.
    """

    def __init__(self):
        self.states = {}  # the start offset of each (group, topic id, partition)
        self.error = ErrorCode.NONE
        self.holds = False
        self._held = []

    def start(self, work):
        self._held.append(work)
        if not self.holds:
            self.go_on()

    def go_on(self):
        while self._held:
            work = self._held.pop(0)
            try:
                while work.send(None) is None:  # asyncio.sleep(0), to let others have their turn
                    pass
            except StopIteration:
                continue
            raise AssertionError("it waits for something")

    async def initialize(self, request):
        def one(topic, data):
            if not self.error:
                self.states[request.group_id, topic.topic_id, data.partition] = data.start_offset
            return initializing.PartitionResult(partition=data.partition, error_code=self.error)

        return initializing.InitializeShareGroupStateResponse(
            results=[
                initializing.InitializeStateResult(
                    topic_id=topic.topic_id, partitions=[one(topic, data) for data in topic.partitions]
                )
                for topic in request.topics
            ]
        )

    async def delete(self, request):
        def one(topic, data):
            if not self.error:
                self.states.pop((request.group_id, topic.topic_id, data.partition), None)
            return deleting.PartitionResult(partition=data.partition, error_code=self.error)

        return deleting.DeleteShareGroupStateResponse(
            results=[
                deleting.DeleteStateResult(
                    topic_id=topic.topic_id, partitions=[one(topic, data) for data in topic.partitions]
                )
                for topic in request.topics
            ]
        )


class Answer:
    """What a parked request is answered with, once it is."""

    def __init__(self):
        self.message = None

    def __call__(self, message):
        assert self.message is None, "answered twice"
        self.message = message

    @property
    def error(self):
        return ErrorCode(self.message.error_code)


class Coordinator:
    """What a client sees of a shard. Decisions are carried out as the run-time does: append, replay, tell.

    It begins with what another has appended, if that is given.
    """

    def __init__(self, records=(), now_ms=1_000_000, topics=None, **settings):
        self.timers = ManualTimers(now_ms)
        self.settings = SimpleNamespace(
            **{
                "group_initial_rebalance_delay_ms": 0,
                "group_max_size": 1000,
                "group_min_session_timeout_ms": 6000,
                "group_max_session_timeout_ms": 1_800_000,
                "group_consumer_assignors": ("uniform", "range"),
                "group_consumer_max_size": 1000,
                "group_consumer_migration_policy": "disabled",
                "group_consumer_regex_refresh_interval_ms": 600_000,
                "group_consumer_session_timeout_ms": 45_000,
                "group_consumer_min_session_timeout_ms": 45_000,
                "group_consumer_max_session_timeout_ms": 60_000,
                "group_consumer_heartbeat_interval_ms": 5000,
                "group_consumer_min_heartbeat_interval_ms": 5000,
                "group_consumer_max_heartbeat_interval_ms": 15_000,
                "group_consumer_assignment_interval_ms": 0,
                "group_consumer_min_assignment_interval_ms": 0,
                "group_consumer_max_assignment_interval_ms": 15_000,
                **{f"group_share_{name}": value for name, value in SHARE.items()},
                "group_streams_max_size": 1000,
                "group_streams_session_timeout_ms": 45_000,
                "group_streams_min_session_timeout_ms": 45_000,
                "group_streams_max_session_timeout_ms": 60_000,
                "group_streams_heartbeat_interval_ms": 5000,
                "group_streams_min_heartbeat_interval_ms": 5000,
                "group_streams_max_heartbeat_interval_ms": 15_000,
                "group_streams_assignment_interval_ms": 0,
                "group_streams_min_assignment_interval_ms": 0,
                "group_streams_max_assignment_interval_ms": 15_000,
                "group_streams_num_standby_replicas": 0,
                "group_streams_max_standby_replicas": 2,
                "group_streams_initial_rebalance_delay_ms": 0,
                **settings,
            }
        )
        self.records = list(records)
        self.append_error = ErrorCode.NONE
        self.clock_ahead_ms = 0  # how wrong the wall clock is
        self.commit_error = ErrorCode.NONE  # of what is appended: clients hear it, and it counts nevertheless
        ids = count(1)
        self.topics = topics or FewTopics()
        self.group_configs = {}
        self.states = FakeStates()
        self.shard = GroupShard(
            self.settings,
            self.timers,
            self.carry_out,
            lambda: self.timers.now_ms + self.clock_ahead_ms,
            lambda: f"id{next(ids)}",
            self.topics,
            lambda group_id: self.group_configs.get(group_id, {}),
            self.states,
            self.states,
        )
        for record in records:
            self.shard.replay(read_record(record))
        self.shard.loaded()

    @property
    def group(self):
        return self.shard.groups[GROUP]

    @property
    def state(self):
        return self.group.state.value

    def carry_out(self, decision):
        if decision.records and self.append_error:
            decision.done(self.append_error)
            return
        for record in decision.records:
            self.records.append(record)
            self.shard.replay(read_record(record))
        decision.done(self.commit_error or decision.error)

    def reloaded(self):
        """Another coordinator that has replayed what this one appended."""
        return Coordinator(self.records, self.timers.now_ms, self.topics)

    # --- requests ---

    def join(self, member_id="", *, instance=None, protocols=(("range", b"t"),), version=9, **fields):
        """Ask to join; a new dynamic member comes back with the id that it was given, as clients do."""
        answer = Answer()
        message = JoinGroupRequest(
            **{
                "group_id": GROUP,
                "session_timeout_ms": 10_000,
                "rebalance_timeout_ms": 60_000,
                "protocol_type": "consumer",
                **fields,
            },
            member_id=member_id,
            group_instance_id=instance,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols],
        )
        self.carry_out(self.shard.join(message, ClientInfo("c", "/127.0.0.1", version), answer))
        if answer.message is not None and answer.error == ErrorCode.MEMBER_ID_REQUIRED and not member_id:
            return self.join(answer.message.member_id, protocols=protocols, version=version, **fields)
        self.timers.advance(0)
        return answer

    def sync(self, member_id, generation, assignments=None, *, instance=None, **fields):
        answer = Answer()
        message = SyncGroupRequest(
            group_id=GROUP,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=assignment)
                for member, assignment in (assignments or {}).items()
            ],
            **fields,
        )
        self.carry_out(self.shard.sync(message, answer))
        return answer

    def heartbeat(self, member_id, generation, instance=None, group_id=GROUP):
        message = HeartbeatRequest(
            group_id=group_id, generation_id=generation, member_id=member_id, group_instance_id=instance
        )
        return self.shard.heartbeat(message)

    def leave(self, *members, version=5):
        """Members by their ids, or as (member id, instance id)."""
        identities = [
            MemberIdentity(member_id=m, group_instance_id=None)
            if isinstance(m, str)
            else MemberIdentity(member_id=m[0], group_instance_id=m[1])
            for m in members
        ]
        message = LeaveGroupRequest(group_id=GROUP, members=identities)
        if version < 3:
            message = LeaveGroupRequest(group_id=GROUP, member_id=members[0])
        response, decision = self.shard.leave(message, version)
        self.carry_out(decision)
        return response

    # --- whole stories ---

    def stable_with(self, number, **join):
        """Make a stable group of this many members; returns their ids, the leader's first."""
        first = self.join(**join).message
        members = [first.member_id]
        self.sync(first.member_id, first.generation_id, {first.member_id: b"a0"})
        for _ in range(number - 1):
            answer = self.join(**join)
            rejoined = [self.join(member, **join) for member in members]
            assert answer.message is not None, "the rebalance did not complete"
            members.append(answer.message.member_id)
            leader = next(a.message for a in [*rejoined, answer] if a.message.members)
            self.sync(leader.leader, leader.generation_id, {m: m.encode() for m in members})
        for member in members:
            if member != self.group.leader_id:
                self.sync(member, self.group.generation)
        assert self.state == "Stable"
        return members
