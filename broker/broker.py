"""The broker: its parts, put together, started and stopped in order."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Coroutine, Sequence
from functools import cache
from typing import Any, Final

import structlog

from broker.apis import served_by
from broker.clock import Clock
from broker.config import BrokerConfig, ConfigError, TopicConfig, new_topic_config
from broker.config.log_config import log_config
from broker.controller.controller import Controller
from broker.controller.create_partitions import NewPartitions
from broker.controller.create_topics import NewTopic
from broker.controller.decisions import TopicResult
from broker.controller.images import BrokerImage, Endpoint
from broker.controller.view import ClusterChange, ClusterView
from broker.group.coordinator import GroupCoordinator
from broker.internal_topics import new_topic
from broker.registry.embedded import EmbeddedRegistry
from broker.registry.errors import RegistryError
from broker.replica.compaction import Compaction
from broker.replica.fetch_sessions import FetchSessions
from broker.replica.housekeeping import Housekeeping
from broker.replica.replicas import Replicas
from broker.replica.worker import Worker
from broker.server.server import Server
from broker.transaction.admission import Admission
from broker.transaction.coordinator import TransactionCoordinator
from broker.transaction.markers import TransactionMarkers
from broker.transaction.producer_ids import ProducerIds
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersion
from storage.config import LogConfig
from storage.errors import StorageError
from storage.filesystem import FileSystem
from storage.log_directory import LogDirectory

log = structlog.get_logger()

# Syncs and deletions wait for the disk, not for each other.
_WORKER_THREADS: Final = 4


class CannotStart(Exception):
    """Why this broker does not start, in a sentence for whoever started it."""


class Broker:
    """One broker of a cluster. Its parts exist from `start` to `stop`."""

    config: BrokerConfig
    clock: Clock
    server: Server
    worker: Worker
    registry: EmbeddedRegistry
    cluster: ClusterView
    controller: Controller
    replicas: Replicas
    fetch_sessions: FetchSessions
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    admission: Admission
    transaction_markers: TransactionMarkers
    producer_ids: ProducerIds

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        *,
        server_clock: Clock | None = None,
        file_system: FileSystem | None = None,
        durable: bool = True,
    ) -> None:
        """`server_clock` is for connections, where they are not to follow `clock`.

        Without `durable` the registry survives this process, but not the machine: for data that nobody wants then.
        """
        self.config = config
        self.clock = clock
        self.server = Server(config, served_by(self), server_clock or clock, loop)
        self.advertised_apis: list[ApiVersion] = [api.advertised for api in self.server.dispatcher.apis.values()]
        self._loop = loop
        self._file_system = file_system
        self._durable = durable
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Come up in the order in which the parts need each other; clients are let in last."""
        await self._open(self.config.data_dirs[0])
        self.server.start()

    async def _open(self, folder: str) -> None:
        try:
            os.makedirs(folder, exist_ok=True)
            self.registry = EmbeddedRegistry.open(os.path.join(folder, "registry.db"), durable=self._durable)
        except (OSError, RegistryError) as error:
            raise CannotStart(f"cannot use the data directory {folder}: {error}") from error
        try:
            await self._open_parts(folder)
        except BaseException:
            await self.registry.close()
            raise

    async def _open_parts(self, folder: str) -> None:
        self.cluster = ClusterView(self.registry)
        self._follow_settings()
        try:
            directory = LogDirectory(
                folder,
                node_id=self.config.node_id,
                cluster_id=self.cluster.cluster_id,
                config_of=cache(self._log_config_of),  # once a topic, however many partitions it has
                now_ms=self.clock.now_ms(),
                file_system=self._file_system,
            )
        except (OSError, StorageError) as error:
            raise CannotStart(f"cannot use the data directory {folder}: {error}") from error
        try:
            if not self.server.listeners:
                self.server.bind()
        except OSError as error:
            directory.close()
            raise CannotStart(f"cannot listen: {error}") from error
        self.controller = Controller(
            self.registry,
            self.cluster,
            self.config,
            validate_configs=lambda configs: new_topic_config(configs, self.config),
            random_bytes=os.urandom,
        )
        await self.controller.start(
            self._image(),
            new_cluster_id=directory.properties.cluster_id,
            timestamp=self.clock.now_ms(),
            clean=directory.was_clean,
        )
        self.worker = Worker(self._loop, _WORKER_THREADS)
        self.replicas = Replicas(
            self.config, self.cluster, directory, self.worker, self.clock, self._loop, self.server.at_end_of_turn
        )
        self.server.append = self._append
        self.fetch_sessions = FetchSessions(
            lambda: self.config.max_incremental_fetch_session_cache_slots, lambda: random.randrange(1, 2**31)
        )
        self.cluster.subscribe(self._on_change)
        self.producer_ids = ProducerIds(self.registry, self.config.node_id)
        self.groups = GroupCoordinator(self.config, self.replicas, self.controller, self.cluster, self.clock)
        self.transaction_markers = TransactionMarkers(self.replicas, self.groups)
        self.transactions = TransactionCoordinator(
            self.config,
            self.replicas,
            self.controller,
            self.cluster,
            self.clock,
            self.producer_ids,
            self.transaction_markers,
            self.server.at_end_of_turn,
            self.spawn,
        )
        self.admission = Admission(self.config, self.clock, self.transactions)
        self.groups.start()
        self.transactions.start()
        self._housekeeping = Housekeeping(self.config, self.replicas)
        self._housekeeping.start()
        self._compaction = Compaction(self.config, self.replicas)
        self._compaction.start()

    async def stop(self) -> None:
        """Go down in the opposite order: nothing is acknowledged any more when the logs are closed."""
        await self.server.stop()
        await self._close_parts()
        self.replicas.directory.close()
        await self.registry.close()
        log.info("stopped")

    async def reopen(self, change: Callable[[], None]) -> None:
        """Let go of the data as a crash would, let `change` put other data in its place, and go on with that.

        Clients are disconnected. They find the same broker at the same address again, with that data.
        """
        await self.server.disconnect()
        await self._close_parts()
        self.replicas.directory.abandon()
        await self.registry.close()
        change()
        await self._open(self.config.data_dirs[0])
        self.server.start()

    async def _close_parts(self) -> None:
        """Have all who work on the data end."""
        self._housekeeping.stop()
        self._compaction.stop()
        self.groups.stop()
        self.transactions.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.replicas.stop()
        await self.worker.stop()

    def _append(self) -> None:
        """Write what a turn of the loop has to append. A transaction takes several steps, one written after another."""
        while self.transactions.has_asked or self.replicas.has_due:
            self.transactions.carry_out()
            self.replicas.append_due()

    def _on_change(self, change: ClusterChange) -> None:
        if change.broker_configs:
            self._follow_settings()
            self.replicas.reconfigure()

    def _follow_settings(self) -> None:
        """Let the settings hold that were altered at run-time, now or before this start.

        They were checked when they were altered. If they have come to contradict what the file says since then, the
        broker goes on without them.
        """
        cluster_wide, this_broker = (self.cluster.broker_configs(whose) for whose in (None, self.config.node_id))
        try:
            self.config.set_dynamic(cluster_wide, this_broker)
        except ConfigError as error:
            log.error("altered settings have no effect", problems=error.problems)

    def _log_config_of(self, topic: str) -> LogConfig:
        image = self.cluster.topic(topic)
        return log_config(TopicConfig(image.configs if image is not None else {}, self.config))

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something in the background; its failure is logged, and its end awaited when the broker stops."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("background work failed", exc_info=task.exception())

    async def create_topics(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> Sequence[TopicResult]:
        """Create topics. Those that could be are ready to be written to."""
        results = await self.controller.create_topics(topics, validate_only=validate_only)
        await self._made(results)
        return results

    async def create_partitions(
        self, topics: Sequence[NewPartitions], *, validate_only: bool = False
    ) -> Sequence[TopicResult]:
        """Give topics more partitions, which are ready to be written to."""
        results = await self.controller.create_partitions(topics, validate_only=validate_only)
        await self._made(results)
        return results

    async def _made(self, results: Sequence[TopicResult]) -> None:
        for result in results:
            if not result.error_code:
                await self.replicas.made(result.name or "")

    async def auto_create_topics(self, names: list[str]) -> dict[str, ErrorCode]:
        """Create topics that a client named, as large as num.partitions says. Returns those that could not be."""
        results = await self.create_topics([new_topic(name, self.config) for name in names])
        return {result.name or "": result.error_code for result in results if result.error_code != ErrorCode.NONE}

    def _image(self) -> BrokerImage:
        endpoints = tuple(
            Endpoint(
                listener.name,
                listener.config.security_protocol,
                listener.config.advertised_host or listener.host,
                listener.config.advertised_port or listener.port,
            )
            for listener in self.server.listeners
        )
        return BrokerImage(self.config.node_id, endpoints, self.config.broker_rack)
