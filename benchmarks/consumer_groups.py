"""Groups of the consumer protocol (KIP-848) under load, on Apache Kafka and Barnabas in turn.

Members are bare: one connection each, with no client library. As clients do, a member sends its next heartbeat at once
when what it owns has changed, and otherwise after the interval that the broker told it.

Most of the time until a group is settled is waiting then, for the assignment interval and for heartbeats, and equally
long on both brokers. So the same is also measured without it: members send their heartbeats together, round by round,
until all is settled, and the time between a join and the next assignment does not count. What is left is the time that
the broker takes.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any, Final

from barnabas.client.requests import admin, groups
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from benchmarks.groups import Member as Connection
from benchmarks.groups import processor_seconds, run, until_coordinated
from tests.support.apache_kafka import LONG_LIVED, ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.side_by_side import Side

MEMBERS: Final = 1000
BEATING: Final = 2000
ESTABLISHED: Final = 100
PARTITIONS: Final = 1000
BEATING_SECONDS: Final = 20.0
TOPIC: Final = "t"
# Before one more joins. Otherwise, who is settled sooner waits longer for the next assignment, which comes at least a
# second after the one before.
STEADY_SECONDS: Final = 1.5
# Short intervals for rebalances. Heartbeats are measured at Kafka's default of 5 s.
INTERVAL_MS: Final = 200
# Without waiting, all members are to join within one interval between assignments, also on a busy machine.
ASSIGNMENT_SECONDS: Final = 4.0
SETTINGS: Final = {
    "node.id": "1",
    "group.consumer.min.heartbeat.interval.ms": str(INTERVAL_MS),
    "group.consumer.heartbeat.interval.ms": str(INTERVAL_MS),
}


class Group:
    """What its members have, and who waits until all partitions are spread over all members, in one epoch."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._size = 0
        self._epochs: Counter[int] = Counter()
        self._owned = 0
        self._owners = 0
        self._settled: asyncio.Future[None] | None = None

    def changed(self, epoch_before: int, epoch: int, owned_before: int, owned: int) -> None:
        self._epochs[epoch_before] -= 1
        self._epochs[epoch] += 1
        self._owned += owned - owned_before
        self._owners += bool(owned) - bool(owned_before)
        if self.is_settled and self._settled is not None and not self._settled.done():
            self._settled.set_result(None)

    @property
    def is_settled(self) -> bool:
        is_spread = self._owned == PARTITIONS and self._owners == min(self._size, PARTITIONS)
        return is_spread and any(count == self._size for epoch, count in self._epochs.items() if epoch > 0)

    def grow_to(self, members: int) -> None:
        self._size = members

    async def settled_with(self, members: int) -> None:
        self.grow_to(members)
        self._settled = asyncio.get_running_loop().create_future()
        await asyncio.wait_for(self._settled, 300)


class Member:
    def __init__(self, connection: Connection, group: Group, number: int) -> None:
        self._connection = connection
        self._group = group
        self._id = f"{group.name}-{number}"
        self._epoch = 0
        self._owned: dict[bytes, list[int]] = {}
        self._is_new = False
        self.is_resting = False

    async def heartbeat(self, **fields: Any) -> tuple[bool, float]:
        """Send one, and take what it brings. Gives whether that is something else, and the interval in seconds."""
        message = groups.consumer_group_heartbeat(self._group.name, self._id, self._epoch, **fields)
        answer = await self._connection.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, message)
        if answer.error_code:
            raise RuntimeError(f"{self._id}: {ErrorCode(answer.error_code).name} {answer.error_message}")
        owned = self._owned
        if answer.assignment is not None:
            owned = {each.topic_id: sorted(each.partitions) for each in answer.assignment.topic_partitions}
        is_new = owned != self._owned
        before, self._owned = self._owned, owned
        epoch_before, self._epoch = self._epoch, answer.member_epoch
        self._group.changed(epoch_before, self._epoch, _count(before), _count(owned))
        return is_new, answer.heartbeat_interval_ms / 1000

    async def live(self) -> None:
        is_new, interval = await self.heartbeat(topics=[TOPIC])
        while not self.is_resting:
            if not is_new:
                await asyncio.sleep(interval)
            is_new, interval = await self.heartbeat(**({"owned": self._owned} if is_new else {}))

    async def step(self) -> None:
        """The next heartbeat, without waiting for its time."""
        fields: dict[str, Any] = {"owned": self._owned} if self._is_new else {}
        self._is_new, _ = await self.heartbeat(**({"topics": [TOPIC]} if self._epoch == 0 else fields))

    async def beat(self, times: int, interval: float, first: float) -> None:
        await asyncio.sleep(first)
        for _ in range(times):
            due = time.perf_counter() + interval
            await self.heartbeat()
            await asyncio.sleep(max(0.0, due - time.perf_counter()))


def _count(owned: dict[bytes, list[int]]) -> int:
    return sum(map(len, owned.values()))


class Crowd:
    """The members of one group, who live until the crowd is dispersed."""

    def __init__(self, port: int, name: str) -> None:
        self.group = Group(name)
        self.members: list[Member] = []
        self._port = port
        self._connections: list[Connection] = []
        self._lives: list[asyncio.Task[None]] = []

    async def join(self, count: int) -> float:
        """Seconds until all is settled again."""
        new = await self._connected(count)
        begin = time.perf_counter()
        self._lives += [asyncio.create_task(member.live()) for member in new]
        await self.group.settled_with(len(self.members))
        return time.perf_counter() - begin

    async def join_without_waiting(self, count: int) -> float:
        """The seconds of that in which the broker has something to do."""
        new = await self._connected(count)
        self.group.grow_to(len(self.members))
        begin = time.perf_counter()
        await asyncio.gather(*(member.step() for member in new))
        seconds = time.perf_counter() - begin
        if len(new) > 1:  # otherwise the group has been assigned with the join
            await asyncio.sleep(ASSIGNMENT_SECONDS - seconds)
        begin = time.perf_counter()
        while not self.group.is_settled:
            await asyncio.gather(*(member.step() for member in self.members))
        return seconds + time.perf_counter() - begin

    async def _connected(self, count: int) -> list[Member]:
        connections = [await Connection.connect(self._port, self.group.name) for _ in range(count)]
        self._connections += connections
        new = [Member(each, self.group, len(self.members) + number) for number, each in enumerate(connections)]
        self.members += new
        return new

    async def rest(self) -> None:
        """Nobody sends heartbeats any more."""
        for member in self.members:
            member.is_resting = True
        await asyncio.gather(*self._lives)

    async def disperse(self) -> None:
        await self.rest()
        for connection in self._connections:
            connection.close()


async def many_join(port: int, pid: int, name: str) -> tuple[float, float]:
    """A thousand members join one group: seconds, and the broker's processor time."""
    crowd = Crowd(port, name)
    used = processor_seconds(pid)
    seconds = await crowd.join(MEMBERS)
    used = processor_seconds(pid) - used
    await crowd.disperse()
    return seconds, used


async def one_joins(port: int, pid: int, name: str) -> tuple[float, float]:
    """One member joins a hundred others: seconds until every partition has its owner again."""
    crowd = Crowd(port, name)
    await crowd.join(ESTABLISHED)
    await asyncio.sleep(STEADY_SECONDS)
    used = processor_seconds(pid)
    seconds = await crowd.join(1)
    used = processor_seconds(pid) - used
    await crowd.disperse()
    return seconds, used


async def many_join_without_waiting(port: int, pid: int, name: str) -> tuple[float, float]:
    crowd = Crowd(port, name)
    assign_rarely(port, name)
    used = processor_seconds(pid)
    seconds = await crowd.join_without_waiting(MEMBERS)
    used = processor_seconds(pid) - used
    await crowd.disperse()
    return seconds, used


async def one_joins_without_waiting(port: int, pid: int, name: str) -> tuple[float, float]:
    crowd = Crowd(port, name)
    assign_rarely(port, name)
    await crowd.join_without_waiting(ESTABLISHED)
    await asyncio.sleep(ASSIGNMENT_SECONDS)
    used = processor_seconds(pid)
    seconds = await crowd.join_without_waiting(1)
    used = processor_seconds(pid) - used
    await crowd.disperse()
    return seconds, used


def assign_rarely(port: int, group: str) -> None:
    setting = (admin.SET, "consumer.assignment.interval.ms", str(int(1000 * ASSIGNMENT_SECONDS)))
    with Wire("127.0.0.1", port) as wire:
        message = admin.incremental_alter_configs((admin.GROUP, group, [setting]))
        (answer,) = wire.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, message, 1).responses
        if answer.error_code:
            raise RuntimeError(f"{group}: {answer.error_message}")


async def many_beat(port: int, pid: int, name: str) -> tuple[float, float]:
    """Two thousand members send a heartbeat every 5 s: how much of a core the broker needs for that."""
    crowd = Crowd(port, name)
    await crowd.join(BEATING)
    await crowd.rest()
    interval = 5.0
    begin, used = time.perf_counter(), processor_seconds(pid)
    times = int(BEATING_SECONDS / interval)
    await asyncio.gather(
        *(member.beat(times, interval, interval * number / BEATING) for number, member in enumerate(crowd.members))
    )
    seconds = time.perf_counter() - begin
    share = (processor_seconds(pid) - used) / seconds
    await crowd.disperse()
    return seconds, share


Work = Callable[[int, int, str], Awaitable[tuple[float, float]]]


async def compared(brokers: dict[str, tuple[int, int]], rounds: int) -> None:
    """The brokers take turns, so that other load on the machine affects both; the first round warms up."""
    works: list[tuple[str, Work, str]] = [
        (f"{MEMBERS:,} members join one group", many_join, "s of processor time"),
        (f"{MEMBERS:,} members join one group, without waiting", many_join_without_waiting, "s of processor time"),
        (f"one member joins {ESTABLISHED} others", one_joins, "s of processor time"),
        (f"one member joins {ESTABLISHED} others, without waiting", one_joins_without_waiting, "s of processor time"),
        (f"{BEATING:,} members with a heartbeat every 5 s", many_beat, "of a core"),
    ]
    for title, work, unit in works:
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in brokers}
        for number in range(1 + rounds):
            for name, (port, pid) in brokers.items():
                result = await work(port, pid, f"{work.__name__}-{number}")
                if number:
                    found[name].append(result)
        print(f"{title} ({PARTITIONS:,} partitions):")
        medians = {
            name: (median(seconds for seconds, _ in each), median(used for _, used in each))
            for name, each in found.items()
        }
        for name, (seconds, used) in medians.items():
            print(f"  {name:<12}  {seconds:6.3f} s  {used:6.3f} {unit}")
        (their_seconds, theirs), (our_seconds, ours) = medians.values()
        print(f"  ratio         {our_seconds / their_seconds:6.2f}    {ours / theirs:6.2f}")


def main(quick: bool = False) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="barnabas-consumer-groups-") as folder,
        ApacheKafka(SETTINGS, jvm_options=LONG_LIVED) as kafka,
        BrokerProcess(Path(folder, "data"), settings=SETTINGS) as barnabas,
    ):
        brokers = {"Apache Kafka": (kafka.port, kafka.pid), "Barnabas": (barnabas.port, barnabas.process.pid)}
        for port, _ in brokers.values():
            until_coordinated(port)
            side = Side(port)
            side.create_topic(TOPIC, PARTITIONS)
            side.close()
        run(lambda: compared(brokers, rounds=1 if quick else 3))
