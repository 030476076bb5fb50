"""Groups under faults: a broker that is killed, members that stall or vanish, a leader that dies."""

import asyncio
import queue
import threading

import confluent_kafka
import kafka
import pytest

from barnabas.client.requests import groups, lookup
from barnabas.client.requests.data import produce
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.server.harness import connected, frame
from tests.support.batches import batch
from tests.support.broker_process import BrokerProcess
from tests.support.group_side import GroupSide
from tests.support.group_versions import version_at
from tests.support.kafka_python import wait_for_topic
from tests.support.manual_clock import ManualClock
from tests.support.running_broker import running

NEWEST = 10
SESSION_MS = 30_000

# --- a broker that is killed ---

COMMITTERS = 8
PARTITIONS = 3
ROUNDS = 3
COMMITS_PER_ROUND = 300


class Committer(threading.Thread):
    """Commits larger and larger offsets of one group until the broker is gone. Remembers the last that was
    acknowledged."""

    def __init__(self, port, group, first, acknowledgements):
        super().__init__()
        self.group = group
        self.sent = self.acknowledged = first
        self._port = port
        self._acknowledgements = acknowledgements

    def run(self):
        try:
            with Wire("127.0.0.1", self._port) as wire:
                while True:
                    self.sent += 1
                    offsets = [("t", partition, self.sent) for partition in range(PARTITIONS)]
                    answer = wire.ask(ApiKey.OFFSET_COMMIT, groups.offset_commit(self.group, *offsets), 9)
                    assert {p.error_code for topic in answer.topics for p in topic.partitions} == {0}
                    self.acknowledged = self.sent
                    self._acknowledgements.release()
        except OSError:
            pass


def committed(port, group):
    """What a group has committed, once it is loaded."""
    message = groups.offset_fetch(9, {group: None})
    with Wire("127.0.0.1", port) as wire:
        # Nothing tells a client that a group has been loaded; polling is the only way.
        while True:
            (found,) = wire.ask(ApiKey.OFFSET_FETCH, message, 9).groups
            if found.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                assert found.error_code == ErrorCode.NONE
                return [p.committed_offset for topic in found.topics for p in topic.partitions]


def test_every_commit_that_was_acknowledged_is_there_after_a_kill(tmp_path):
    last = dict.fromkeys((f"storm-{number}" for number in range(COMMITTERS)), 0)
    with BrokerProcess(tmp_path) as broker:
        side = GroupSide(broker.port)
        side.of(ApiKey.FIND_COORDINATOR, lookup.find_coordinator(0, "g"))
        side.topic("t")
        side.close()
        for _ in range(ROUNDS):
            acknowledgements = threading.Semaphore(0)
            storm = [Committer(broker.port, group, first, acknowledgements) for group, first in last.items()]
            for committer in storm:
                committer.start()
            for _ in range(COMMITS_PER_ROUND):
                assert acknowledgements.acquire(timeout=60)
            broker.kill()
            for committer in storm:
                committer.join()
            broker.start()
            for committer in storm:
                offsets = committed(broker.port, committer.group)
                # All partitions of a commit are there, or none of them.
                assert len(offsets) == PARTITIONS
                assert len(set(offsets)) == 1
                assert committer.acknowledged <= offsets[0] <= committer.sent
                last[committer.group] = offsets[0]


class Reader(threading.Thread):
    """A consumer of a group that reads until it is told to stop. It keeps whatever its application would notice."""

    def __init__(self, bootstrap, values):
        super().__init__()
        self.bootstrap = bootstrap
        self.values = values
        self.assigned = threading.Event()
        self.errors = []
        self.stop = threading.Event()

    def run(self):
        try:
            self.read()
        except Exception as error:
            self.errors.append(error)

    def read(self):
        raise NotImplementedError


class KafkaPython(Reader):
    def read(self):
        consumer = kafka.KafkaConsumer(
            "t", bootstrap_servers=self.bootstrap, group_id="readers", auto_offset_reset="earliest"
        )
        wait_for_topic(consumer, "t", self.stop)
        while not self.stop.is_set():
            for records in consumer.poll(100).values():
                for record in records:
                    self.values.put(record.value)
            if consumer.assignment():
                self.assigned.set()
        consumer.close()


class Confluent(Reader):
    def read(self):
        settings = {
            "bootstrap.servers": self.bootstrap,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "range",
            "topic.metadata.refresh.interval.ms": 1000,
        }
        consumer = confluent_kafka.Consumer(settings)
        consumer.subscribe(["t"], on_assign=lambda *_: self.assigned.set())
        while not self.stop.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is not None:
                self.errors.append(message.error())
            elif message is not None:
                self.values.put(message.value())
        consumer.close()


@pytest.mark.parametrize("library", [KafkaPython, Confluent])
def test_members_carry_on_after_a_kill(tmp_path, library):
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with BrokerProcess(tmp_path, settings=settings) as broker:
        side = GroupSide(broker.port)
        side.topic("t")
        read = queue.Queue()
        readers = [library(broker.bootstrap, read) for _ in range(2)]
        started = []
        try:
            for reader in readers:
                reader.start()
                started.append(reader)
                assert reader.assigned.wait(60)
            expect(read, write(side, "before"))
            side.close()
            broker.kill()
            broker.start()
            side = GroupSide(broker.port)
            expect(read, write(side, "after"))
            side.close()
        finally:
            for reader in started:
                reader.stop.set()
            for reader in started:
                reader.join()
        assert [reader.errors for reader in readers] == [[], []]


def write(side, name):
    """Write a value to every partition; returns them all."""
    values = {f"{name} {partition}".encode() for partition in range(PARTITIONS)}
    for partition, value in enumerate(values):
        answer = side.ask(ApiKey.PRODUCE, produce(("t", partition, batch(value))), 9)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    return values


def expect(read, values):
    """Wait until all of these have been read; what was read before and not yet committed may come again."""
    missing = set(values)
    while missing:
        missing.discard(read.get(timeout=60))


# --- members that stall or vanish: the time is the test's own ---


class Member:
    """One connection to the broker, as a member of the group."""

    def __init__(self, stage, client):
        self.client = client
        self.member_id = ""
        self.generation = -1
        self._stage = stage

    def send(self, key, message):
        self.client.send(frame(key, message, version_at(key, NEWEST)))

    async def answer(self, key):
        return await self._stage.passing(self.client.answer(key, version_at(key, NEWEST)))

    async def ask(self, key, message):
        self.send(key, message)
        _, answer = await self.answer(key)
        return answer

    def send_join(self):
        self.send(ApiKey.JOIN_GROUP, groups.join_group("g", self.member_id, session_timeout_ms=SESSION_MS))

    async def joined(self):
        _, answer = await self.answer(ApiKey.JOIN_GROUP)
        self.member_id, self.generation = answer.member_id, answer.generation_id
        return answer

    async def enter(self):
        """Get an id and ask to join with it; the answer waits for the others."""
        self.member_id = ""
        self.send_join()
        assert (await self.joined()).error_code == ErrorCode.MEMBER_ID_REQUIRED
        self.send_join()
        await self._stage.until(lambda: self.member_id in self._stage.group.members)

    def send_sync(self, *members):
        assignments = {member.member_id: member.member_id.encode() for member in members}
        protocol = {"protocol_type": "consumer", "protocol_name": "range"}
        self.send(ApiKey.SYNC_GROUP, groups.sync_group("g", self.member_id, self.generation, assignments, **protocol))

    async def synced(self):
        _, answer = await self.answer(ApiKey.SYNC_GROUP)
        return answer.error_code, answer.assignment.decode()

    async def sync(self, *members):
        self.send_sync(*members)
        return await self.synced()

    async def heartbeat(self):
        message = groups.heartbeat("g", self.member_id, self.generation)
        return (await self.ask(ApiKey.HEARTBEAT, message)).error_code


class Stage:
    """A broker whose time stands still, unless it is moved, and members who come and go."""

    def __init__(self, broker, clock):
        self.broker = broker
        self.clock = clock

    @property
    def group(self):
        return self.broker.groups.shard("g").groups["g"]

    @property
    def state(self):
        return self.group.state.value

    async def passing(self, awaitable):
        """Wait for something, with all timers going off that are due now."""
        task = asyncio.ensure_future(awaitable)
        while not task.done():
            self.clock.advance(0)
            await asyncio.sleep(0)
        return task.result()

    async def until(self, condition):
        while not condition():  # noqa: ASYNC110, what it waits for happens inside the broker, which has no event for it
            await asyncio.sleep(0)

    async def silence(self, *alive):
        """Let a session's time pass, during which only these members send heartbeats."""
        for _ in range(4):
            self.clock.advance(SESSION_MS / 4 / 1000)
            for member in alive:
                await member.heartbeat()

    async def stable(self, *members):
        """Let members join one after another; the first leads."""
        for number, member in enumerate(members, start=1):
            await member.enter()
            for other in members[: number - 1]:
                other.send_join()
            for other in members[:number]:
                assert (await other.joined()).error_code == ErrorCode.NONE
            await members[0].sync(*members[:number])
            for other in members[1:number]:
                await other.sync()
        assert self.state == "Stable"


@pytest.fixture
async def stage(tmp_path):
    clock = ManualClock()
    async with running(tmp_path, clock=clock, group_initial_rebalance_delay_ms=0) as broker:
        yield Stage(broker, clock)


@pytest.fixture
async def members(stage):
    """A member that is well, and one that will not be."""
    server = stage.broker.server
    async with connected(server) as first, connected(server) as second:
        well, ill = Member(stage, first), Member(stage, second)
        await well.ask(ApiKey.FIND_COORDINATOR, lookup.find_coordinator(6, "g"))
        yield well, ill


async def alone_again(stage, member):
    """What a member does when it learns about a rebalance; it is then the only one."""
    member.send_join()
    answer = await member.joined()
    assert [found.member_id for found in answer.members] == [member.member_id]
    assert await member.sync(member) == (ErrorCode.NONE, member.member_id)
    assert stage.state == "Stable"


async def test_a_member_that_stalls_is_given_up_and_may_come_back(stage, members):
    well, ill = members
    await stage.stable(well, ill)
    await stage.silence(well)
    assert await well.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    await alone_again(stage, well)
    assert await ill.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    await ill.enter()
    assert await well.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    well.send_join()
    assert len((await well.joined()).members) == 2
    assert (await ill.joined()).generation_id == well.generation
    assert await well.sync(well, ill) == (ErrorCode.NONE, well.member_id)
    assert await ill.sync() == (ErrorCode.NONE, ill.member_id)


async def test_a_stalled_leader_is_replaced(stage, members):
    well, ill = members
    await stage.stable(ill, well)
    await stage.silence(well)
    await alone_again(stage, well)


async def test_a_member_that_vanishes_while_its_join_waits(stage, members):
    well, ill = members
    await stage.stable(well)
    await ill.enter()
    ill.client.close()
    well.send_join()
    assert len((await well.joined()).members) == 2  # nobody knows yet
    assert await well.sync(well, ill) == (ErrorCode.NONE, well.member_id)
    await stage.silence(well)
    await alone_again(stage, well)


async def test_a_member_that_vanishes_before_it_joins_with_its_id(stage, members):
    well, ill = members
    await stage.stable(well)
    ill.send_join()
    assert (await ill.joined()).error_code == ErrorCode.MEMBER_ID_REQUIRED
    ill.client.close()
    well.send_join()
    await stage.until(lambda: stage.state == "PreparingRebalance")
    stage.clock.advance(SESSION_MS / 1000)
    assert [found.member_id for found in (await well.joined()).members] == [well.member_id]


async def test_a_leader_that_dies_before_it_has_assigned(stage, members):
    follower, leader = members
    await stage.stable(leader, follower)
    leader.send_join()
    await stage.until(lambda: stage.state == "PreparingRebalance")
    follower.send_join()
    assert (await leader.joined()).leader == leader.member_id
    await follower.joined()
    follower.send_sync()
    await stage.until(lambda: stage.group.members[follower.member_id].answer_sync is not None)
    leader.client.close()
    stage.clock.advance(SESSION_MS / 1000)
    assert await follower.synced() == (ErrorCode.REBALANCE_IN_PROGRESS, "")
    await alone_again(stage, follower)


async def test_wrong_requests_leave_a_group_as_it_is(stage, members):
    well, ill = members
    await stage.stable(well)
    generation = well.generation
    refused = [
        (ApiKey.JOIN_GROUP, groups.join_group(""), ErrorCode.INVALID_GROUP_ID),
        (ApiKey.JOIN_GROUP, groups.join_group("g", session_timeout_ms=1), ErrorCode.INVALID_SESSION_TIMEOUT),
        (ApiKey.JOIN_GROUP, groups.join_group("g", "nobody"), ErrorCode.UNKNOWN_MEMBER_ID),
        (ApiKey.HEARTBEAT, groups.heartbeat("g", well.member_id, generation + 1), ErrorCode.ILLEGAL_GENERATION),
        (ApiKey.HEARTBEAT, groups.heartbeat("g", "nobody", generation), ErrorCode.UNKNOWN_MEMBER_ID),
    ]
    for key, message, error in refused:
        assert (await ill.ask(key, message)).error_code == error
    assert await well.heartbeat() == ErrorCode.NONE
    assert stage.state == "Stable"
