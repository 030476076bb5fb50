"""The coordinator inside a real broker: its topic, loading after a restart, compaction, deleted topics, expiry."""

import asyncio
from dataclasses import replace
from unittest.mock import patch

from structlog.testing import capture_logs

from barnabas.broker.controller.cluster_image import ClusterChange, TopicChange
from barnabas.broker.group.classic.membership import Membership
from barnabas.broker.group.offsets import Offsets
from barnabas.broker.internal_topics import CONSUMER_OFFSETS
from barnabas.broker.replica.worker import Worker
from barnabas.client.requests import groups
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from tests.broker.handlers.group_client import coordinating, group_client
from tests.storage.support import read_all
from tests.support.manual_clock import ManualClock
from tests.support.running_broker import create_topic, delete_topic, partition, running


async def until(condition):
    """Wait for what happens inside the broker, which has no event for it."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0)


async def test_the_topic_is_made_when_a_group_is_first_looked_for(tmp_path):
    async with running(tmp_path, offsets_topic_num_partitions=7) as broker, group_client(broker) as client:
        assert broker.cluster.topic(CONSUMER_OFFSETS) is None
        assert (await client.join()).error_code == ErrorCode.NOT_COORDINATOR
        assert await client.find_coordinator() == ErrorCode.NONE
        topic = broker.cluster.topic(CONSUMER_OFFSETS)
        assert len(topic.partitions) == 7
        assert topic.configs["cleanup.policy"] == "compact"
        assert (await client.join()).error_code == ErrorCode.NONE


async def test_groups_and_offsets_are_there_after_a_restart(tmp_path):
    async with coordinating(tmp_path) as client:
        member = await client.stable()
        await client.commit(("t", 0, 5), ("t", 1, 6), member=member, generation=1)
    async with running(tmp_path) as broker, group_client(broker) as client:
        while (found := await client.committed()) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            pass
        assert found == {("t", 0): 5, ("t", 1): 6}
        answer = await client.ask(ApiKey.SYNC_GROUP, groups.sync_group("g", member, 1, **groups.BY_RANGE))
        assert answer.assignment == b"everything"


class HeldWorker:
    """Blocks the worker until it is released."""

    def __init__(self):
        self._run = Worker.run
        self._held = []
        self._is_free = False

    def run(self, worker, work, done=None):
        if self._is_free:
            self._run(worker, work, done)
        else:
            self._held.append((worker, work, done))

    def let_go(self):
        self._is_free = True
        for held in self._held:
            self._run(*held)


async def test_while_groups_are_loaded_clients_are_told_to_retry(tmp_path):
    async with coordinating(tmp_path) as client:
        await client.commit(("t", 0, 5))
    held, loading = HeldWorker(), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    with patch.object(Worker, "run", lambda *arguments: held.run(*arguments)):
        async with running(tmp_path) as broker, group_client(broker) as client:
            for key, message in {
                ApiKey.JOIN_GROUP: groups.join_group("g"),
                ApiKey.SYNC_GROUP: groups.sync_group("g", "m", 1, **groups.BY_RANGE),
                ApiKey.LEAVE_GROUP: groups.leave_group(5, "g", "m"),
                ApiKey.LIST_GROUPS: ListGroupsRequest(),
                ApiKey.OFFSET_DELETE: groups.offset_delete("g", ("t", 0)),
            }.items():
                assert (await client.ask(key, message)).error_code == loading
            (described,) = (await client.ask(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest(groups=["g"]))).groups
            (deleted,) = (await client.ask(ApiKey.DELETE_GROUPS, groups.delete_groups("g"))).results
            assert (described.error_code, deleted.error_code) == (loading, loading)
            assert await client.commit(("t", 0, 6)) == [loading]
            assert await client.committed() == loading
            # A member that sends heartbeats does not need to know.
            answer = await client.ask(ApiKey.HEARTBEAT, groups.heartbeat("g", "m", 1))
            assert answer.error_code == ErrorCode.NONE
            held.let_go()
            while (found := await client.committed()) == loading:
                pass
            assert found == {("t", 0): 5}


async def test_groups_are_loaded_from_a_compacted_log(tmp_path):
    small = {"offsets_topic_segment_bytes": 2**20, "log_cleaner_backoff_ms": 1, "log_cleaner_min_cleanable_ratio": 0.01}
    async with coordinating(tmp_path, **small) as client:
        for offset in range(200):
            await client.commit(("t", 0, offset), ("t", 1, offset), metadata="m" * 4000)
        await client.commit(("t", 2, 7), group="other")
        member = await client.stable("third", session_timeout_ms=1_800_000)
        for offset in range(200):
            await client.commit(("t", 0, offset), group="third", member=member, generation=1, metadata="m" * 4000)
        log = partition(client.broker, CONSUMER_OFFSETS).log
        written = log.end_offset
        await until(lambda: len(read_all(log)) <= written // 2)
    async with running(tmp_path) as broker, group_client(broker) as client:
        while await client.committed() == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            pass
        assert await client.committed() == {("t", 0): 199, ("t", 1): 199}
        assert await client.committed("other") == {("t", 2): 7}
        assert await client.committed("third") == {("t", 0): 199}
        answer = await client.ask(ApiKey.HEARTBEAT, groups.heartbeat("third", member, 1))
        assert answer.error_code == ErrorCode.NONE


async def test_offsets_of_a_deleted_topic_go_with_it(tmp_path):
    async with coordinating(tmp_path) as client:
        await create_topic(client.broker, "u")
        await client.commit(("t", 0, 5), ("u", 0, 6))
        await delete_topic(client.broker, "u")
        assert await client.committed() == {("t", 0): 5}


async def test_offsets_of_a_topic_that_was_replaced_by_another_of_its_name_go_with_it(tmp_path):
    """A broker that was cut off from the controller hears of both at once."""
    async with coordinating(tmp_path) as client:
        await client.commit(("t", 0, 5))
        cluster = client.broker.cluster
        old = cluster.topic("t")
        new = replace(old, topic_id=bytes(range(16)))
        cluster.put("t", new)
        cluster.tell(ClusterChange({"t": TopicChange(old, new)}, False, False))
        assert await client.committed() == {}


async def test_groups_go_with_the_topic_that_they_are_kept_in(tmp_path):
    async with coordinating(tmp_path) as client, group_client(client.broker) as other:
        await client.stable()
        await client.commit(("t", 0, 5), group="simple")
        other.send(ApiKey.JOIN_GROUP, groups.join_group("g"), 3)
        group = client.broker.groups.shard("g").groups["g"]
        await until(lambda: len(group.members) == 2)
        await delete_topic(client.broker, CONSUMER_OFFSETS)
        assert (await other.answer(ApiKey.JOIN_GROUP, 3)).error_code == ErrorCode.NOT_COORDINATOR
        assert await client.find_coordinator() == ErrorCode.NONE
        assert await client.committed("simple") == {}
        assert (await client.join()).generation_id == 1


async def test_offsets_expire_when_it_is_time_to_look(tmp_path):
    clock = ManualClock()
    settings = {
        "offsets_retention_minutes": 60,
        "offsets_retention_check_interval_ms": 600_000,
        "connections_max_idle_ms": 86_400_000,
    }
    async with coordinating(tmp_path, clock=clock, **settings) as client:
        await client.commit(("t", 0, 5))
        clock.advance(3599)
        assert await client.committed() == {("t", 0): 5}
        clock.advance(1)
        assert await client.committed() == {}


async def test_a_group_whose_offsets_cannot_expire_is_set_aside_and_the_others_expire(tmp_path, monkeypatch):
    clock = ManualClock()
    async with coordinating(tmp_path, clock=clock, offsets_retention_minutes=1) as client:
        for group in ("broken", "other"):
            await client.commit(("t", 0, 5), group=group)
        expired = Offsets.expired

        def picky(self, group, *arguments):
            if group.group_id == "broken":
                raise ValueError("what is this?")
            return expired(self, group, *arguments)

        monkeypatch.setattr(Offsets, "expired", picky)
        clock.advance(61)
        with capture_logs() as logs:
            client.broker.groups.expire_offsets()
            client.broker.groups.expire_offsets()
        assert [entry["name"] for entry in logs if entry["event"] == "set aside"] == ["broken"]
        assert await client.committed("other") == {}
        assert await client.committed("broken") == {("t", 0): 5}


async def test_a_group_whose_timer_fails_is_set_aside(tmp_path, monkeypatch):
    async with coordinating(tmp_path) as client:
        monkeypatch.setattr(Membership, "_complete", lambda self, group: 1 // 0)
        with capture_logs() as logs:
            client.send(ApiKey.JOIN_GROUP, groups.join_group("g"), 3)  # the initial delay is over at once
            await until(lambda: ("group", "g") in client.broker.set_aside)
        assert [entry["name"] for entry in logs if entry["event"] == "set aside"] == ["g"]
