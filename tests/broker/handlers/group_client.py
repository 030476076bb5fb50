"""A client of groups that speaks to a real broker over a socket."""

from __future__ import annotations

from contextlib import asynccontextmanager

from barnabas.client.requests import groups, lookup
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.server.harness import Client, connected, frame
from tests.support.group_versions import VERSIONS
from tests.support.running_broker import create_topic, running


class GroupClient:
    """Asks in the newest version of every request, unless told otherwise. Its group is "g"."""

    def __init__(self, broker, client: Client) -> None:
        self.broker = broker
        self.client = client

    def send(self, key, message, version=None):
        """Send what may be parked."""
        self.client.send(frame(key, message, VERSIONS[key][-1] if version is None else version))

    async def answer(self, key, version=None):
        return (await self.client.answer(key, VERSIONS[key][-1] if version is None else version))[1]

    async def ask(self, key, message, version=None):
        self.send(key, message, version)
        return await self.answer(key, version)

    async def find_coordinator(self):
        (found,) = (await self.ask(ApiKey.FIND_COORDINATOR, lookup.find_coordinator(6, "g"))).coordinators
        return found.error_code

    async def join(self, member="", group="g", **fields):
        """Join, and again with the id if one is assigned first; returns the answer."""
        answer = await self.ask(ApiKey.JOIN_GROUP, groups.join_group(group, member, **fields))
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            answer = await self.ask(ApiKey.JOIN_GROUP, groups.join_group(group, answer.member_id, **fields))
        return answer

    async def stable(self, group="g", assignment=b"everything", **fields):
        """Become the only member of a stable group; returns the member's id."""
        member = (await self.join(group=group, **fields)).member_id
        protocol = {**groups.BY_RANGE, "protocol_type": fields.get("protocol_type", "consumer")}
        answer = await self.ask(
            ApiKey.SYNC_GROUP, groups.sync_group(group, member, 1, {member: assignment}, **protocol)
        )
        assert answer.error_code == ErrorCode.NONE
        return member

    async def leave(self, member, group="g"):
        await self.ask(ApiKey.LEAVE_GROUP, groups.leave_group(5, group, member))

    async def commit(self, *offsets, group="g", version=9, **fields):
        """Commit (topic, partition, offset); returns the errors, partition by partition."""
        answer = await self.ask(ApiKey.OFFSET_COMMIT, groups.offset_commit(group, *offsets, **fields), version)
        return [partition.error_code for topic in answer.topics for partition in topic.partitions]

    async def committed(self, group="g"):
        """All offsets of a group, or the error."""
        answer = await self.ask(ApiKey.OFFSET_FETCH, groups.offset_fetch(9, {group: None}), 9)
        (found,) = answer.groups
        if found.error_code:
            return ErrorCode(found.error_code)
        return {(topic.name, p.partition_index): p.committed_offset for topic in found.topics for p in topic.partitions}


@asynccontextmanager
async def group_client(broker):
    async with connected(broker.server) as client:
        yield GroupClient(broker, client)


@asynccontextmanager
async def coordinating(folder, **settings):
    """A broker with a topic "t" of three partitions that coordinates groups, and a client of it."""
    few = {"offsets_topic_num_partitions": 1, "group_initial_rebalance_delay_ms": 0}
    async with running(folder, **{**few, **settings}) as broker, group_client(broker) as client:
        await create_topic(broker, "t", partitions=3)
        assert await client.find_coordinator() == ErrorCode.NONE
        yield client
