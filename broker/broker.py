"""The broker: its parts, put together, started and stopped in order."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import structlog

from broker.apis import served_by
from broker.clock import Clock
from broker.config import BrokerConfig, new_topic_config
from broker.controller.controller import Controller
from broker.controller.create_topics import NewTopic
from broker.controller.images import BrokerImage, Endpoint
from broker.controller.view import ClusterView
from broker.registry.embedded import EmbeddedRegistry
from broker.registry.errors import RegistryError
from broker.server.server import Server
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersion

log = structlog.get_logger()


class CannotStart(Exception):
    """Why this broker does not start, in a sentence for whoever started it."""


class Broker:
    def __init__(self, config: BrokerConfig, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self.config = config
        self.clock = clock
        self.server = Server(config, served_by(self), clock, loop)
        self.advertised_apis: list[ApiVersion] = [api.advertised for api in self.server.dispatcher.apis.values()]
        self.registry: EmbeddedRegistry
        self.cluster: ClusterView
        self.controller: Controller
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        directory = Path(self.config.data_dirs[0])
        try:
            os.makedirs(directory, exist_ok=True)
            self.registry = EmbeddedRegistry.open(directory / "registry.db")
        except (OSError, RegistryError) as error:
            raise CannotStart(f"cannot use the data directory {directory}: {error}") from error
        self.cluster = ClusterView(self.registry)
        self.controller = Controller(
            self.registry,
            self.cluster,
            self.config,
            validate_configs=lambda configs: new_topic_config(configs, self.config),
            random_bytes=os.urandom,
        )
        try:
            self.server.bind()
        except OSError as error:
            await self.registry.close()
            raise CannotStart(f"cannot listen: {error}") from error
        await self.controller.start(self._image(), timestamp=self.clock.now_ms(), clean=True)
        self.server.start()

    async def stop(self) -> None:
        await self.server.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.registry.close()
        log.info("stopped")

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something in the background; its failure is logged, and its end awaited when the broker stops."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("background work failed", exc_info=task.exception())

    async def auto_create_topics(self, names: list[str]) -> dict[str, ErrorCode]:
        """Create topics that a client named, as large as num.partitions says. Returns those that could not be."""
        results = await self.controller.create_topics([NewTopic(name) for name in names])
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
