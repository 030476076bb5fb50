"""One of two brokers to which a story of consumer groups is played: members have a name and a connection each."""

import re
import time

from barnabas.client.requests import groups, share_groups
from barnabas.client.requests.admin import delete_topics
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.frames import request_frame
from barnabas.protocol.messages import share_group_describe, share_group_heartbeat
from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from tests.support.group_versions import version_at
from tests.support.polling import pause
from tests.support.side_by_side import Side

UNKNOWN_ID = bytes(range(16))
GIVEN_ID = re.compile(r"(.*-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class GroupSide(Side):
    """`group` and `level` are those of the story that is being played. Ids that the broker gave become names."""

    def __init__(self, port):
        super().__init__(port)
        self.group = ""
        self.level = 0
        self.ids = {}
        self._wires = {}

    def begin(self, group, level):
        for wire in self._wires.values():
            wire.close()
        self._wires.clear()
        self.ids.clear()
        self.group, self.level = group, level

    def version(self, key):
        return version_at(key, self.level)

    def send(self, who, key, message):
        """Send what may be parked; `answer` has what comes."""
        if who not in self._wires:
            self._wires[who] = Wire("127.0.0.1", self.port)
        self._wires[who].send(request_frame(key, message, self.version(key)))

    def answer(self, who, key):
        return self._wires[who].answer(key, self.version(key))

    def of(self, key, message):
        return self.ask(key, message, self.version(key))

    # --- members ---

    def send_join(self, who, **fields):
        self.send(who, ApiKey.JOIN_GROUP, groups.join_group(self.group, **{"member": self.ids.get(who, ""), **fields}))

    def joined(self, who):
        answer = self.answer(who, ApiKey.JOIN_GROUP)
        if answer.member_id:
            self.ids[who] = answer.member_id
        return answer

    def join(self, who, **fields):
        """One request, and its answer."""
        self.send_join(who, **fields)
        return self.joined(who)

    def enter(self, who, **fields):
        """Join and, if an id comes first, join with that; the answer may take a while."""
        if self.version(ApiKey.JOIN_GROUP) >= 4 and "group_instance_id" not in fields and who not in self.ids:
            self.join(who, **fields)
        self.send_join(who, **fields)

    def send_sync(self, who, generation, assignments=None, **fields):
        given = {self.ids[name]: assignment for name, assignment in (assignments or {}).items()}
        if self.level >= 5:
            fields = {"protocol_type": "consumer", "protocol_name": "range", **fields}
        self.send(who, ApiKey.SYNC_GROUP, groups.sync_group(self.group, self.ids[who], generation, given, **fields))

    def synced(self, who):
        return self.answer(who, ApiKey.SYNC_GROUP)

    def sync(self, who, generation, assignments=None, **fields):
        self.send_sync(who, generation, assignments, **fields)
        return self.synced(who)

    def heartbeat(self, who, generation, **fields):
        return self.of(ApiKey.HEARTBEAT, groups.heartbeat(self.group, self.ids[who], generation, **fields))

    def leave(self, *members):
        """By name, or as (member id, instance id)."""
        identities = [self.ids.get(m, m) if isinstance(m, str) else m for m in members]
        version = self.version(ApiKey.LEAVE_GROUP)
        return self.of(ApiKey.LEAVE_GROUP, groups.leave_group(version, self.group, *identities))

    def rebalancing(self, who, generation, **fields):
        """Wait until a member would learn that it has to join again."""
        while self.heartbeat(who, generation, **fields).error_code != ErrorCode.REBALANCE_IN_PROGRESS:
            pause()

    def known(self, group):
        """Wait until a group is there: Apache Kafka answers its first member before it has stored the group."""
        while (
            self.ask(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest(groups=[group]), 0).groups[0].group_state == "Dead"
        ):
            pass

    # --- whole groups ---

    def stable(self, *names, **fields):
        """A stable group of these members, who have joined one after another; its generation is their number."""
        for generation, name in enumerate(names, start=1):
            self.enter(name, **fields)
            before = names[: generation - 1]
            for index, other in enumerate(before):
                if index == 0:
                    self.rebalancing(other, generation - 1)
                self.send_join(other, **fields)
            for other in names[:generation]:
                self.joined(other)
            self.sync(names[0], generation, {other: other.encode() for other in names[:generation]})
            for other in names[1:generation]:
                self.sync(other, generation)

    # --- members of the consumer protocol ---

    def beat(self, who, epoch, *, member=None, owned=None, **fields):
        """A heartbeat; `owned` are partitions by the topic's name. Members choose their ids: their names."""
        member = self.ids.setdefault(who, who) if member is None else member
        by_id = None if owned is None else {self.name(topic, by_id=True): owned[topic] for topic in owned}
        message = groups.consumer_group_heartbeat(self.group, member, epoch, owned=by_id, **fields)
        answer = self.of(ApiKey.CONSUMER_GROUP_HEARTBEAT, message)
        if answer.member_id:
            self.ids[who] = answer.member_id
        return answer

    def assignable(self, name="t"):
        """A topic that the coordinator knows. Apache Kafka's coordinator learns about a new topic a little later than
        its other parts."""
        if self.has_topic(name, 3):
            return self.topic(name)
        topic = self.topic(name)
        group, self.group = self.group, f"reads-{name}"
        while not self.beat("reader", 0, topics=[name]).assignment.topic_partitions:
            self.beat("reader", -1)
            pause()
        self.beat("reader", -1)
        del self.ids["reader"]
        self.group = group
        return topic

    def described(self, *groups, operations=False):
        message = ConsumerGroupDescribeRequest(
            group_ids=list(groups or [self.group]), include_authorized_operations=operations
        )
        return self.of(ApiKey.CONSUMER_GROUP_DESCRIBE, message)

    # --- members of share groups ---

    def share(self, who, epoch, topics=None, **fields):
        """A heartbeat. Members choose their ids: their names."""
        message = share_groups.share_group_heartbeat(fields.pop("group", self.group), who, epoch, topics, **fields)
        return self.of(ApiKey.SHARE_GROUP_HEARTBEAT, message)

    def shared_topic(self, name="t", partitions=3):
        """A topic that the coordinators know. Apache Kafka's hear of a new one a little later than its other parts."""
        if self.has_topic(name, partitions):
            return
        self.create_topic(name, partitions)
        group, self.group = self.group, f"shares-{name}"
        epoch = self.share("reader", 0, [name]).member_epoch
        while not (answer := self.share("reader", epoch, [name])).assignment.topic_partitions:
            epoch = answer.member_epoch
            pause()
        self.share("reader", -1)
        self.group = group

    def initialized(self, **partitions):
        """Wait until so many partitions of topics have a state: that happens some time after a heartbeat."""
        deadline = time.monotonic() + 60
        while {t.topic_name: len(t.partitions) for t in self.share_offsets().groups[0].topics} != partitions:
            assert time.monotonic() < deadline, "the share coordinator did not create states"
            pause()

    def settled(self, *epochs):
        """Heartbeats of members, as (name, epoch), until each has had the same answer twice."""
        last = {}
        for _ in range(3):
            for who, epoch in epochs:
                last[who] = self.share(who, last[who].member_epoch if who in last else epoch, ["t"])
        return list(last.values())

    def described_shares(self, *groups, operations=False):
        return self.of(
            ApiKey.SHARE_GROUP_DESCRIBE,
            share_groups.share_group_describe(*(groups or [self.group]), operations=operations),
        )

    def share_offsets(self, topics=None, group=None):
        asked = {self.group if group is None else group: topics}
        return self.of(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, share_groups.describe_share_group_offsets(asked))

    def alter_share_offsets(self, *offsets, group=None):
        message = share_groups.alter_share_group_offsets(self.group if group is None else group, *offsets)
        return self.of(ApiKey.ALTER_SHARE_GROUP_OFFSETS, message)

    def delete_share_offsets(self, *topics, group=None):
        message = share_groups.delete_share_group_offsets(self.group if group is None else group, *topics)
        return self.of(ApiKey.DELETE_SHARE_GROUP_OFFSETS, message)

    # --- questions ---

    def describe(self, *groups, operations=False):
        message = DescribeGroupsRequest(groups=list(groups or [self.group]), include_authorized_operations=operations)
        return self.of(ApiKey.DESCRIBE_GROUPS, message)

    def listed(self, states=(), types=()):
        """The groups whose names start like this story's."""
        answer = self.of(ApiKey.LIST_GROUPS, ListGroupsRequest(states_filter=list(states), types_filter=list(types)))
        answer.groups = [group for group in answer.groups if group.group_id.startswith(self.group)]
        return answer

    def delete(self, *names):
        return self.of(ApiKey.DELETE_GROUPS, groups.delete_groups(*(names or [self.group])))

    # --- offsets ---

    def topic(self, name="t"):
        """As commits and fetches name a topic."""
        self.create_topic(name, partitions=3)
        return self.name(name, by_id=self.level >= 10)

    def delete_topic(self, name):
        """Delete a topic, and wait until the groups know."""
        self.ask(ApiKey.DELETE_TOPICS, delete_topics(name), 5)
        everything = groups.offset_fetch(7, {self.group: None})
        while self.ask(ApiKey.OFFSET_FETCH, everything, 7).topics:
            pause()

    def unknown_topic(self):
        return UNKNOWN_ID if self.level >= 10 else "unknown"

    def commit(self, *offsets, who=None, group=None, **fields):
        member = {} if who is None else {"member": self.ids[who]}
        message = groups.offset_commit(self.group if group is None else group, *offsets, **{**member, **fields})
        return self.of(ApiKey.OFFSET_COMMIT, message)

    def fetch(self, *topics, **fields):
        """Of this story's group: some topics, or all."""
        return self.fetch_groups({self.group: topics or None}, **fields)

    def fetch_groups(self, asked, **fields):
        message = groups.offset_fetch(self.version(ApiKey.OFFSET_FETCH), asked, **fields)
        return self.of(ApiKey.OFFSET_FETCH, message)

    def delete_offsets(self, *partitions, group=None):
        message = groups.offset_delete(self.group if group is None else group, *partitions)
        return self.of(ApiKey.OFFSET_DELETE, message)

    # --- comparing ---

    def comparable(self, value):
        if isinstance(value, str):
            names = {member_id: name for name, member_id in self.ids.items()}
            if value in names:
                return names[value]
            return "the id of somebody" if GIVEN_ID.fullmatch(value) else value
        if isinstance(value, share_group_heartbeat.Assignment | share_group_describe.Assignment):
            # Which of them depends on the ids of topics, and those differ.
            return {"partitions": sum(len(each.partitions) for each in value.topic_partitions)}
        if isinstance(value, FindCoordinatorResponse | Coordinator):
            return {**super().comparable(value), "port": "its own" if value.port == self.port else value.port}
        return super().comparable(value)
