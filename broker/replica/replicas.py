"""All partitions that this broker has: found by name or id, made and deleted as the cluster says, written in turns."""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence

import structlog

from broker.clock import Clock
from broker.config import BrokerConfig, TopicConfig
from broker.config.log_config import log_config
from broker.controller.images import PartitionImage, TopicImage
from broker.controller.view import ClusterChange, ClusterView
from broker.replica.partition import Partition
from broker.replica.turns import Job, Turns
from broker.replica.worker import Worker
from storage.config import LogConfig
from storage.errors import LogFailure
from storage.log_directory import LogDirectory, PendingFolderDeletion
from storage.topic_partition import TopicPartition

logger = structlog.get_logger()


class Replicas:
    def __init__(
        self,
        config: BrokerConfig,
        cluster: ClusterView,
        directory: LogDirectory,
        worker: Worker,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        at_end_of_turn: Callable[[], None],
    ) -> None:
        """`at_end_of_turn` has `append_due` called once this turn's callbacks are done."""
        self.worker = worker
        self.clock = clock
        self.directory = directory
        self._config = config
        self._cluster = cluster
        self._at_end_of_turn = at_end_of_turn
        self._topics: dict[str | bytes, list[Partition]] = {}  # by name, and by id too
        self._due: list[Partition] = []
        self._turns = Turns(clock, loop)
        self._folders_to_delete: deque[PendingFolderDeletion] = deque()
        self._stopped = False
        self._set_strays_aside()
        for image in cluster.topics.values():
            self._host(image)
        self._turns.finish()
        cluster.subscribe(self._on_change)

    # --- finding ---

    def find(self, topic: str | bytes, index: int) -> Partition | None:
        """A partition by its topic's name or id."""
        partitions = self._topics.get(topic)
        return partitions[index] if partitions is not None and 0 <= index < len(partitions) else None

    def of_topic(self, topic: str) -> Sequence[Partition]:
        return self._topics.get(topic, ())

    def __iter__(self) -> Iterator[Partition]:
        for name, partitions in self._topics.items():
            if isinstance(name, str):
                yield from partitions

    # --- appends ---

    def append_soon(self, partition: Partition) -> None:
        """Have what is queued for a partition written at the end of this turn of the loop, with that of the others."""
        self._due.append(partition)
        self._at_end_of_turn()

    @property
    def has_due(self) -> bool:
        return bool(self._due)

    def append_due(self) -> None:
        while self._due:  # what an append brings about may have something to append itself
            due, self._due = self._due, []
            now_ms = self.clock.now_ms()
            for partition in due:
                partition.append_queued(now_ms)

    # --- following the cluster ---

    async def made(self, topic: str) -> None:
        """Wait until a topic's partitions are there: making many logs takes more than one turn of the loop."""
        await self._turns.done(topic)

    @property
    def is_working(self) -> bool:
        """Whether appends are due, or logs are being made or removed."""
        return bool(self._due or self._folders_to_delete) or self._turns.are_due

    def stop(self) -> None:
        """Leave logs that are still to be made, and folders that are still to be deleted, to the next start."""
        self._stopped = True
        self._turns.finish()
        while len(self._folders_to_delete) > 1:
            self._folders_to_delete.pop()

    def _on_change(self, change: ClusterChange) -> None:
        for topic in change.topics.values():
            if topic.old is not None and (topic.new is None or topic.new.topic_id != topic.old.topic_id):
                self._drop(topic.old)
            if topic.new is not None:
                self._host(topic.new)

    def _host(self, image: TopicImage) -> None:
        """Have a log for each partition of a topic, with the topic's settings, and lead it."""
        partitions = self._topics.setdefault(image.name, [])
        self._topics[image.topic_id] = partitions
        self._follow(image, partitions)
        if len(partitions) < len(image.partitions):
            self._turns.add(image.name, self._make(image, partitions))

    def _follow(self, image: TopicImage, partitions: list[Partition]) -> None:
        """Bring partitions in line with what the cluster says of their topic now."""
        config = self._log_config(image)
        for partition, state in zip(partitions, image.partitions, strict=False):
            self._lead(partition, config, state)

    def _lead(self, partition: Partition, config: LogConfig, state: PartitionImage) -> None:
        partition.log.config = config
        partition.lead(state.leader_epoch, len(state.replica_nodes), len(state.isr_nodes))

    def _make(self, image: TopicImage, partitions: list[Partition]) -> Job:
        """Make the logs that a topic lacks. Its new partitions can be found when all are there, and not one earlier."""
        config = self._log_config(image)
        topic_id = uuid.UUID(bytes=image.topic_id)
        made: list[Partition] = []
        for index in range(len(partitions), len(image.partitions)):
            name = TopicPartition(image.name, index)
            try:
                log = self.directory.create_log(name, topic_id, config, self.clock.now_ms())
            except LogFailure as failure:
                logger.error("partition could not be made", partition=str(name), error=str(failure))
                break
            made.append(Partition(self, image.name, image.topic_id, index, log))
            self._lead(made[-1], config, image.partitions[index])
            yield
            if self._topics.get(image.topic_id) is not partitions:  # the topic has been deleted meanwhile
                yield from self._remove(made)
                return
            if self._stopped:
                return
        partitions += made
        self._follow(self._cluster.topics[image.name], partitions)

    def _drop(self, image: TopicImage) -> None:
        self._topics.pop(image.topic_id, None)
        partitions = self._topics.pop(image.name, [])
        for partition in partitions:
            partition.delete()
        self._turns.add(image.name, self._remove(partitions))

    def _remove(self, partitions: list[Partition]) -> Job:
        for partition in partitions:
            self._folders_to_delete.append(self.directory.delete_log(partition.log.topic_partition))
            if len(self._folders_to_delete) == 1:
                self._delete_next_folder()
            yield

    def _delete_next_folder(self) -> None:
        """One at a time: other work for the threads, such as a flush that somebody waits for, comes in between."""
        self.worker.run(self._folders_to_delete[0].run, self._folder_deleted)

    def _folder_deleted(self, outcome: Exception | None) -> None:
        if outcome is not None:
            logger.error("folder could not be deleted", path=self._folders_to_delete[0].path, error=str(outcome))
        self._folders_to_delete.popleft()
        if self._folders_to_delete:
            self._delete_next_folder()

    def _log_config(self, image: TopicImage) -> LogConfig:
        return log_config(TopicConfig(image.configs, self._config))

    def reconfigure(self) -> None:
        """The broker's own settings changed, which topics without settings of their own follow."""
        for image in self._cluster.topics.values():
            config = self._log_config(image)
            for partition in self._topics.get(image.name, ()):
                partition.log.config = config

    def _set_strays_aside(self) -> None:
        """Folders of topics that the registry does not know, or knows under another id, are kept, but not used."""
        for name, log in list(self.directory.logs.items()):
            image = self._cluster.topic(name.topic)
            known = image is not None and (log.topic_id is None or log.topic_id.bytes == image.topic_id)
            if image is None or not known or name.partition >= len(image.partitions):
                logger.warning("stray partition set aside", partition=str(name))
                self.directory.set_aside(name)
