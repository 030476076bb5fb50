"""An administrator: creates, grows, deletes and moves topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.client.requests import admin
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsResponse
from barnabas.protocol.messages.create_partitions import CreatePartitionsResponse
from barnabas.protocol.messages.create_topics import CreateTopicsResponse
from barnabas.protocol.messages.delete_topics import DeleteTopicsResponse
from barnabas.protocol.messages.elect_leaders import ElectLeadersResponse
from barnabas.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from barnabas.simulation.clients.client import Client, GivenUp, Lost, Refused, check
from barnabas.simulation.history import History

if TYPE_CHECKING:
    from barnabas.simulation.world import World


class Admin(Client):
    """Does something to a topic from time to time."""

    def __init__(
        self,
        world: World,
        name: str,
        history: History,
        *,
        topics: Sequence[str] = (),
        deletable: Sequence[str] = (),
        replication: int = 1,
        pause: tuple[float, float] = (2.0, 8.0),
        until: float = float("inf"),
        once: bool = False,
        may: Sequence[str] = ("grow", "delete", "create", "reassign", "cancel", "elect", "alter"),
    ) -> None:
        super().__init__(world, name, history)
        self._topics = list(topics)
        self._deletable = list(deletable)
        self._replication = replication
        self._pause = pause
        self._until = until  # what it does later might mend what is broken
        self._once = once  # nor does it touch a topic a second time
        self._may = list(may)

    async def run(self) -> None:
        while not self.stopping and self.loop.time() < self._until:
            await self.sleep(*self._pause)
            what = self.chance.choice(self._may)
            try:
                await self.do(what)
            except (GivenUp, Lost, Refused) as error:
                self.note(f"could not {what}: {error}")

    async def do(self, what: str) -> None:
        if what in ("delete", "create"):
            if self._deletable:
                name = self.chance.choice(self._deletable)
                await (self.delete(name) if what == "delete" else self.create(name, self.chance.randint(1, 2)))
            return
        if what == "create and delete":
            if self._deletable:
                name = self.chance.choice(self._deletable)
                await self.create(name, 1)
                await self.sleep(0, 0.5)
                await self.delete(name)
            return
        if what == "move and delete":
            if self._deletable:
                name = self.chance.choice(self._deletable)
                self._touched(name)
                await self._move_and_delete(name)
            return
        names = [*self._topics, *self._deletable]
        if not names:
            return
        name = self.chance.choice(names)
        self._touched(name)
        await self.refresh([name])
        topic = self.topics.get(name)
        if topic is None:
            return
        index = self.chance.choice(sorted(topic.partitions))
        if what == "grow" and len(topic.partitions) < 6:
            await self.grow(name, len(topic.partitions) + 1)
        elif what == "reassign":
            brokers = sorted(self.brokers)
            await self.reassign(name, index, self.chance.sample(brokers, min(self._replication, len(brokers))))
        elif what == "move and cancel":
            brokers = sorted(self.brokers)
            await self.reassign(name, index, self.chance.sample(brokers, min(self._replication, len(brokers))))
            await self.sleep(0, self.chance.choice((0.001, 0.05)))
            await self.reassign(name, index, None)
        elif what == "there and back":
            await self._there_and_back(name, index)
        elif what == "cancel":
            await self.reassign(name, index, None)
        elif what == "elect":
            await self.elect(name, index)
        elif what == "alter":
            await self.alter(name, "segment.ms", str(self.chance.choice((1000, 10_000, 604_800_000))))

    def _touched(self, name: str) -> None:
        if self._once:
            self._topics = [each for each in self._topics if each != name]
            self._deletable = [each for each in self._deletable if each != name]

    def _deadline(self) -> float:
        return self.loop.time() + 30

    async def create(self, name: str, partitions: int, **configs: str) -> None:
        """Create a topic; it is fine if it is there."""
        new = admin.new_topic(
            name,
            partitions,
            self._replication,
            configs=[(key.replace("_", "."), value) for key, value in configs.items()],
        )
        found = await self.ask_controller(
            admin.create_topics(new),
            7,
            CreateTopicsResponse,
            lambda answer: [each.error_code for each in answer.topics],
            self._deadline(),
        )
        code = found.topics[0].error_code
        if code != ErrorCode.TOPIC_ALREADY_EXISTS:
            check(code, f"{name}: {found.topics[0].error_message}")
            self.note(f"has created {name}")

    async def delete(self, name: str) -> None:
        await self.refresh([name])
        topic = self.topics.get(name)
        if topic is None:
            return
        self.history.deleted[topic.key(0)[0]] = None  # it may happen from now on
        found = await self.ask_controller(
            admin.delete_topics(topic.topic_id),
            6,
            DeleteTopicsResponse,
            lambda answer: [each.error_code for each in answer.responses],
            self._deadline(),
        )
        check(found.responses[0].error_code, name)
        self.note(f"has deleted {topic.key(0)[0]}")

    async def grow(self, name: str, count: int) -> None:
        found = await self.ask_controller(
            admin.create_partitions((name, count)),
            3,
            CreatePartitionsResponse,
            lambda answer: [each.error_code for each in answer.results],
            self._deadline(),
        )
        check(found.results[0].error_code, name)
        self.note(f"has given {name} {count} partitions")

    async def _move_and_delete(self, name: str) -> None:
        """Delete a topic that has just begun to move."""
        await self.refresh([name])
        topic = self.topics.get(name)
        if topic is not None:
            brokers = sorted(self.brokers)
            for index in sorted(topic.partitions):
                await self.reassign(name, index, self.chance.sample(brokers, min(self._replication, len(brokers))))
            await self.delete(name)

    async def _there_and_back(self, name: str, index: int) -> None:
        """Move a partition, and when it may have arrived, back to where it was."""
        brokers = sorted(self.brokers)
        here, there = (self.chance.sample(brokers, min(self._replication, len(brokers))) for _ in range(2))
        for replicas in (here, there, here):
            await self.reassign(name, index, replicas)
            await self.sleep(0.3, 1.5)

    async def reassign(self, name: str, index: int, replicas: Sequence[int] | None) -> None:
        """Without replicas, call off the move that is under way."""
        found = await self.ask_controller(
            admin.alter_partition_reassignments((name, index, replicas)),
            0,
            AlterPartitionReassignmentsResponse,
            lambda answer: [answer.error_code],
            self._deadline(),
        )
        check(found.error_code, name)
        check(found.responses[0].partitions[0].error_code, name)
        self.note(f"moves {name}-{index} to {list(replicas)}" if replicas else f"calls off the move of {name}-{index}")

    async def elect(self, name: str, index: int) -> None:
        found = await self.ask_controller(
            admin.elect_leaders((name, [index])),
            2,
            ElectLeadersResponse,
            lambda answer: [answer.error_code],
            self._deadline(),
        )
        check(found.error_code, name)
        self.note(f"has the preferred leader of {name}-{index} elected")

    async def alter(self, name: str, setting: str, value: str) -> None:
        found = await self.ask(
            self.any_broker(),
            admin.incremental_alter_configs((admin.TOPIC, name, [(admin.SET, setting, value)])),
            1,
            IncrementalAlterConfigsResponse,
        )
        check(found.responses[0].error_code, name)
        self.note(f"has set {setting} of {name} to {value}")
