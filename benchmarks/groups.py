"""Consumer groups under load: large groups, many groups, heartbeats, rebalance time, loading offsets.

Members are bare: one connection each, with no client library. They join, sync and send heartbeats as clients do,
except that they do not wait for their next heartbeat when a rebalance is measured.
"""

from __future__ import annotations

import asyncio
import struct
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any, Final

import psutil
import uvloop

from barnabas.broker.coordinator.key_hash import partition_of
from barnabas.client.requests import groups, lookup
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.frames import decode_answer, request_frame
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.schema import Message
from tests.support.apache_kafka import LONG_LIVED, ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.group_versions import version_at
from tests.support.side_by_side import Side

NEWEST: Final = 9
LARGE_GROUP: Final = 1000
GROUPS: Final = 200
MEMBERS_PER_GROUP: Final = 5
HEARTBEAT_SECONDS: Final = 3.0
INITIAL_DELAY_MS: Final = 3000
REBALANCES: Final = 50
OFFSETS: Final = 1_000_000
PARTITIONS: Final = 100
ASSIGNMENT: Final = groups.assignment(("t", [0, 1, 2]))


class Member(asyncio.Protocol):
    """A member of a group, with its own connection and one request in flight at a time."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.member_id = ""
        self.generation = -1
        self._received = bytearray()
        self._answer: asyncio.Future[bytes] | None = None
        self._transport: asyncio.Transport

    @classmethod
    async def connect(cls, port: int, group: str) -> Member:
        _, member = await asyncio.get_running_loop().create_connection(lambda: cls(group), "127.0.0.1", port)
        return member

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) >= 4:
            (size,) = struct.unpack_from(">i", self._received)
            if len(self._received) == 4 + size and self._answer is not None:
                answer, self._answer = self._answer, None
                answer.set_result(bytes(self._received[4:]))
                self._received.clear()

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None:
            self._answer.set_exception(ConnectionError("the broker closed the connection"))

    def close(self) -> None:
        self._transport.close()

    async def exchange(self, frame: bytes) -> bytes:
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(frame)
        return await self._answer

    async def ask(self, key: ApiKey, message: Message) -> Any:
        version = version_at(key, NEWEST)
        return decode_answer(await self.exchange(request_frame(key, message, version)), key, version)

    async def join(self) -> Any:
        """Join, with an id if there is one, until the next generation includes this member."""
        while True:
            message = groups.join_group(self.group, self.member_id, session_timeout_ms=600_000)
            answer = await self.ask(ApiKey.JOIN_GROUP, message)
            self.member_id = answer.member_id
            if answer.error_code == ErrorCode.NONE:
                self.generation = answer.generation_id
                return answer
            if answer.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                raise RuntimeError(f"{self.group}: {ErrorCode(answer.error_code).name}")

    async def join_and_sync(self) -> None:
        """Sync until there is an assignment; take part in a rebalance that starts meanwhile."""
        while True:
            joined = await self.join()
            given = {member.member_id: ASSIGNMENT for member in joined.members}
            message = groups.sync_group(
                self.group,
                self.member_id,
                self.generation,
                given,
                protocol_type="consumer",
                protocol_name="range",
            )
            answer = await self.ask(ApiKey.SYNC_GROUP, message)
            if answer.error_code == ErrorCode.NONE:
                return
            if answer.error_code != ErrorCode.REBALANCE_IN_PROGRESS:
                raise RuntimeError(f"{self.group}: {ErrorCode(answer.error_code).name}")

    def heartbeat_frame(self) -> bytes:
        version = version_at(ApiKey.HEARTBEAT, NEWEST)
        message = groups.heartbeat(self.group, self.member_id, self.generation)
        return request_frame(ApiKey.HEARTBEAT, message, version)

    async def rebalance(self) -> None:
        """Send heartbeats until one reports a rebalance, and take part in it."""
        message = groups.heartbeat(self.group, self.member_id, self.generation)
        while (await self.ask(ApiKey.HEARTBEAT, message)).error_code != ErrorCode.REBALANCE_IN_PROGRESS:
            pass
        await self.join_and_sync()

    async def leave(self) -> None:
        message = groups.leave_group(version_at(ApiKey.LEAVE_GROUP, NEWEST), self.group, self.member_id)
        await self.ask(ApiKey.LEAVE_GROUP, message)
        self.close()


async def timed(work: Awaitable[object]) -> float:
    started = time.perf_counter()
    await work
    return time.perf_counter() - started


async def connected(port: int, groups: list[str]) -> list[Member]:
    """One member per named group, connected one at a time because accept queues are short."""
    return [await Member.connect(port, group) for group in groups]


def until_coordinated(port: int) -> None:
    """Make a broker create the topic for groups. Nothing announces when it is ready, so poll."""
    with Wire("127.0.0.1", port) as wire:
        while wire.ask(ApiKey.FIND_COORDINATOR, lookup.find_coordinator(0, "g"), 0).error_code:
            pass
        one_a_partition = list({partition_of(name, 50): name for name in map(str, range(1000))}.values())
        while any(
            group.error_code
            for group in wire.ask(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest(groups=one_a_partition), 0).groups
        ):
            pass


def processor_seconds(pid: int) -> float:
    used = psutil.Process(pid).cpu_times()
    return float(used.user + used.system)


# --- many members ---


async def many_members(broker: BrokerProcess) -> None:
    pid = broker.process.pid
    large = await connected(broker.port, ["large"] * LARGE_GROUP)
    used = processor_seconds(pid)
    seconds = await timed(asyncio.gather(*(member.join_and_sync() for member in large)))
    used = processor_seconds(pid) - used
    print(f"{LARGE_GROUP} members join one group, which waits {INITIAL_DELAY_MS / 1000:.0f} s for more:")
    print(f"  the last has its assignment after {seconds:.2f} s; the broker was busy for {used:.2f} s of that")

    async def leave_and_rebalance() -> None:
        await large.pop().leave()
        await asyncio.gather(*(member.rebalance() for member in large))

    used = processor_seconds(pid)
    seconds = await timed(leave_and_rebalance())
    used = processor_seconds(pid) - used
    print(f"  one leaves, and the others are rebalanced in {seconds:.2f} s; the broker was busy for {used:.2f} s")

    names = [f"small-{number}" for number in range(GROUPS) for _ in range(MEMBERS_PER_GROUP)]
    small = await connected(broker.port, names)
    await asyncio.gather(*(member.join_and_sync() for member in small))
    leaders = small[::MEMBERS_PER_GROUP]
    others = [member for index, member in enumerate(small) if index % MEMBERS_PER_GROUP]
    # Every group gets one more member, so that all of them rebalance.
    late = await connected(broker.port, names[::MEMBERS_PER_GROUP])
    used = processor_seconds(pid)
    seconds = await timed(
        asyncio.gather(
            *(member.join_and_sync() for member in late), *(member.rebalance() for member in [*leaders, *others])
        )
    )
    used = processor_seconds(pid) - used
    print(f"{GROUPS} groups of {MEMBERS_PER_GROUP} members get one more each, all at once:")
    print(f"  all are stable again after {seconds:.2f} s; the broker was busy for {used:.2f} s of that")
    await heartbeats(pid, [*large, *small])
    for member in [*large, *small, *late]:
        member.close()


async def heartbeats(pid: int, members: list[Member]) -> None:
    """Every member sends a heartbeat at this interval, evenly spread, three times."""
    frames = [member.heartbeat_frame() for member in members]
    started, used = time.perf_counter(), processor_seconds(pid)

    async def beat(index: int) -> None:
        for turn in range(3):
            due = started + (turn + index / len(members)) * HEARTBEAT_SECONDS
            await asyncio.sleep(due - time.perf_counter())
            await members[index].exchange(frames[index])

    await asyncio.gather(*(beat(index) for index in range(len(members))))
    share = (processor_seconds(pid) - used) / (time.perf_counter() - started)
    print(f"{len(members)} members with a heartbeat every {HEARTBEAT_SECONDS:.0f} s:")
    print(f"  the broker is busy for {share:.1%} of a core")


# --- a rebalance ---


async def second_member(port: int) -> list[float]:
    """Seconds from a second member's JoinGroup to both members' assignments, repeatedly."""
    seconds = []
    for number in range(REBALANCES):
        first, second = await connected(port, [f"pair-{number}"] * 2)
        await first.join_and_sync()
        seconds.append(await timed(asyncio.gather(second.join_and_sync(), first.rebalance())))
        await first.leave()
        await second.leave()
    return seconds


async def compared(ports: dict[str, int]) -> None:
    """The brokers take turns, so that other load on the machine affects both; the first round warms up."""
    found: dict[str, list[float]] = {}
    for _ in range(3):
        for name, port in ports.items():
            found[name] = await second_member(port)
    print("From the second member's join to both members' assignments, without a delay:")
    for name, seconds in found.items():
        print(f"  {name:<12}  median {median(seconds) * 1000:6.2f} ms  best {min(seconds) * 1000:6.2f} ms")


# --- loading ---


def load(folder: Path, count: int) -> None:
    settings = {"auto.create.topics.enable": "false"}
    broker = BrokerProcess(folder, settings=settings)
    with broker:
        until_coordinated(broker.port)
        side = Side(broker.port)
        side.create_topic("t", PARTITIONS)
        with Wire("127.0.0.1", broker.port) as wire:
            for group in range(count // PARTITIONS):
                offsets = [("t", partition, group + partition) for partition in range(PARTITIONS)]
                wire.ask(ApiKey.OFFSET_COMMIT, groups.offset_commit(f"group-{group}", *offsets), NEWEST)
        side.close()
    size = sum(path.stat().st_size for path in folder.glob("__consumer_offsets-*/*.log"))
    with broker:
        started = time.perf_counter()
        until_coordinated(broker.port)
        seconds = time.perf_counter() - started
        used = processor_seconds(broker.process.pid)
        memory = psutil.Process(broker.process.pid).memory_info().rss
    print(f"{count:,} committed offsets of {count // PARTITIONS:,} groups, {size / 2**20:.0f} MiB:")
    print(f"  loaded {seconds:.2f} s after the ready line; {used:.2f} s of processor time since the start;", end=" ")
    print(f"{memory / 2**20:.0f} MiB of memory")


def run(work: Callable[[], Awaitable[None]]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work())  # type: ignore[arg-type]


def main(quick: bool = False) -> None:
    with tempfile.TemporaryDirectory(prefix="barnabas-groups-") as folder:
        patient = {"group.initial.rebalance.delay.ms": str(INITIAL_DELAY_MS)}
        with BrokerProcess(Path(folder, "members"), settings=patient) as broker:
            until_coordinated(broker.port)
            run(lambda: many_members(broker))
        at_once = {"group.initial.rebalance.delay.ms": "0"}
        with (
            ApacheKafka(at_once, jvm_options=LONG_LIVED) as kafka,
            BrokerProcess(Path(folder, "pairs"), settings=at_once) as broker,
        ):
            ports = {"Apache Kafka": kafka.port, "Barnabas": broker.port}
            for port in ports.values():
                until_coordinated(port)
            run(lambda: compared(ports))
        load(Path(folder, "offsets"), OFFSETS // 10 if quick else OFFSETS)


if __name__ == "__main__":
    main()
