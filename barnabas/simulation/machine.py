"""A machine of the simulation: a host, a disk, a clock, and a broker's process that may die and come back."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.broker import Broker
from barnabas.broker.config import BrokerConfig
from barnabas.broker.registry.errors import RegistryUnavailable
from barnabas.broker.registry.registry import Registry
from barnabas.simulation.clock import SimulatedClock
from barnabas.simulation.disk import Disk, Mount
from barnabas.simulation.loop import ProcessLoop
from barnabas.simulation.network import SimulatedNetwork
from barnabas.simulation.registry import HOST

if TYPE_CHECKING:
    from barnabas.simulation.world import World

PORT: Final = 9092
NETWORK: Final = "10.0.0."  # of the brokers

# How long work on a thread takes: at least, and at most so much more; where the disk is slow, so many times as long.
_WORK: Final = (0.0001, 0.002)
_SLOWER: Final = 300


class Machine:
    def __init__(self, world: World, broker_id: int, settings: dict[str, str]) -> None:
        self.world = world
        self.broker_id = broker_id
        self.name = f"broker {broker_id}"
        self.host = f"{NETWORK}{broker_id}"
        self.settings = settings
        self.disk = Disk(os.path.join(world.folder, str(broker_id)))
        self.chance = world.scheduler.random("machine", broker_id)
        self.clock_rate = 1.0
        self.clock_ahead_ms = 0
        self.starts = 0
        self.loop: ProcessLoop | None = None
        self.broker: Broker | None = None  # while its process runs, from its first moment
        self.is_serving = False  # it has started and has not begun to stop
        self._mount: Mount | None = None

    @property
    def is_running(self) -> bool:
        return self.loop is not None

    # --- starting ---

    def start(self) -> None:
        """Start the process. If the broker gives up, the process ends, and is started again after a while."""
        if self.loop is not None:
            return
        world = self.world
        world.fabric.power_returned(self.host)
        self.starts += 1
        loop = self.loop = world.scheduler.process(self.name)
        mount = self._mount = Mount(self.disk, self.chance)
        mount.stall = self._stall
        loop.file_system = mount
        loop.work_time = self._work_time
        self.clock = SimulatedClock(loop, self.clock_rate)
        self.clock.ahead_ms = self.clock_ahead_ms
        config = BrokerConfig(
            {
                "broker.id": str(self.broker_id),
                "listeners": f"PLAINTEXT://{self.host}:{PORT}",
                "log.dirs": self.disk.root,
                "zookeeper.session.timeout.ms": str(int(world.registry.session_timeout * 1000)),
                **self.settings,
            }
        )
        network = SimulatedNetwork(world.fabric, loop, self.host)
        self.broker = Broker(
            config, partial(self._open_registry, loop), network, clock=self.clock, loop=loop, file_system=mount
        )
        self.broker.server.is_from_broker = lambda connection: connection.peer[0].startswith(NETWORK)
        world.happened(self.name, "starts")
        loop.create_task(self._serve(self.broker, loop))

    async def _open_registry(self, loop: ProcessLoop) -> Registry:
        """A session with the registry, if that can be reached within a session's timeout."""
        fabric = self.world.fabric
        end = loop.time() + self.world.registry.session_timeout
        while True:
            await asyncio.sleep(2 * fabric.link(self.host, HOST).delay)
            if not fabric.link(self.host, HOST).cuts and not fabric.link(HOST, self.host).cuts:
                return self.world.registry.connect(self.name, self.host, loop)
            if loop.time() > end:
                raise RegistryUnavailable("the registry is out of reach")
            await asyncio.sleep(0.5)

    async def _serve(self, broker: Broker, loop: ProcessLoop) -> None:
        try:
            await broker.start()
        except Exception as error:
            self.world.happened(self.name, f"cannot start: {type(error).__name__}: {error}")
            self.world.later(0, lambda: self._gone(loop, "ends"))
            self.world.later(2.0, self.start)
            return
        self.is_serving = True
        self.world.happened(self.name, "serves")

    # --- what happens to it ---

    def stop(self, then: Callable[[], None] | None = None) -> None:
        """Stop in order, as on SIGTERM."""
        loop, broker = self.loop, self.broker
        if loop is None or broker is None or not self.is_serving:
            return
        self.is_serving = False
        self.world.happened(self.name, "is asked to stop")

        async def stop() -> None:
            await broker.stop()
            self.world.happened(self.name, "has stopped")
            self.world.later(0, lambda: self._gone(loop, None, then))

        loop.create_task(stop())

    def kill(self) -> None:
        """The process dies at once. The system and its files live on."""
        if self.loop is not None:
            self._gone(self.loop, "is killed")

    def lose_power(self) -> None:
        """The machine is off, and what was not synced may be lost."""
        loop = self.loop
        if loop is not None:
            self.world.fabric.power_failed(loop, self.host)
            self._dead(loop)
        lost = self.disk.lose_power(self.chance)
        self.world.happened(self.name, f"loses power, and {lost}")

    def _gone(self, loop: ProcessLoop, how: str | None, then: Callable[[], None] | None = None) -> None:
        if loop is not self.loop:
            return
        if how is not None:
            self.world.happened(self.name, how)
        self.world.fabric.process_died(loop)
        self._dead(loop)
        if then is not None:
            then()

    def _dead(self, loop: ProcessLoop) -> None:
        loop.kill()
        self.world.buried.append(self.broker)
        self.loop = self.broker = None
        self.is_serving = False
        if self._mount is not None:
            self._mount.unplug()
            self._mount = None

    def pause(self) -> ProcessLoop | None:
        if self.loop is not None:
            self.loop.pause()
        return self.loop

    def _stall(self, seconds: float) -> None:
        """A write to a slow disk holds up the whole process."""
        loop = self.loop
        if loop is not None:
            loop.pause()
            self.world.later(seconds, loop.resume)

    def _work_time(self) -> tuple[float, float]:
        least, more = _WORK
        slower = _SLOWER if self.disk.is_slow else 1
        return (least + more * self.chance.random()) * slower, 0.0001

    def close(self) -> None:
        if self.loop is not None:
            self._dead(self.loop)

    def state(self) -> dict[str, Any]:
        return {"running": self.is_running, "serving": self.is_serving}
