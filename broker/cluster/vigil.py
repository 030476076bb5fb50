"""Which brokers have died, judged by their connections, which tell sooner than their sessions.

When a process dies, nobody listens on its ports: its connections end, and new ones are refused. The controller watches
all brokers that way, and the others watch the controller. A broker that was there before and is refused twice is
*suspected*, until it is reached again or its registration is gone.

That is no proof, and need not be: it has no consequence that an administrator could not cause for a live broker. Others
take over a suspect's leaderships, as before a controlled shutdown, and a suspected controller is replaced. Epochs fence
a suspect that lives, as they fence any deposed leader and controller. A host that is lost or cut off refuses no
connection; then the session decides.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import structlog

from barnabas.broker.clock import Clock
from barnabas.broker.controller import znodes
from barnabas.broker.controller.images import BrokerImage, Endpoint
from barnabas.broker.network import Network
from barnabas.broker.registry.registry import Change, Registry

log = structlog.get_logger()

# One refusal may be a listener that is being opened again.
_REFUSALS: Final = 2
_NEXT_REFUSAL_SECONDS: Final = 0.1
# How soon to try again a broker that cannot be reached, or that closes a connection at once: what listens there may be
# a proxy with nobody behind it.
_LOOK_AGAIN_SECONDS: Final = 1.0
_MOMENT_SECONDS: Final = 0.1


class Vigil:
    def __init__(
        self,
        broker_id: int,
        listener: str,
        network: Network,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        on_change: Callable[[int], None],
    ) -> None:
        """`listener` is the one between brokers. `on_change` is called when a broker becomes suspected, or is no
        longer."""
        self._broker_id = broker_id
        self._listener = listener
        self._network = network
        self._clock = clock
        self._loop = loop
        self._on_change = on_change
        self._registry: Registry | None = None
        self._unwatch: list[Callable[[], None]] = []
        self._watched: dict[int, _Watched] = {}

    @property
    def suspects(self) -> Mapping[int, int]:
        """Those that are suspected, each with the epoch of its registration."""
        return {broker_id: each.epoch for broker_id, each in self._watched.items() if each.is_suspected}

    def follow(self, registry: Registry) -> None:
        """Watch the brokers that this session shows. What is known about them from a former session stays known."""
        self._leave()
        self._registry = registry
        self._unwatch = [registry.watch(path, self._on_tree) for path in (znodes.BROKER_IDS, znodes.CONTROLLER)]
        self._look()

    def stop(self) -> None:
        self._leave()
        for each in self._watched.values():
            each.stop()
        self._watched.clear()

    def _leave(self) -> None:
        for unwatch in self._unwatch:
            unwatch()
        self._unwatch = []

    def _on_tree(self, changes: Sequence[Change]) -> None:
        self._look()

    def _look(self) -> None:
        """Watch exactly the brokers that should be watched."""
        try:
            wanted = self._wanted()
        except znodes.MalformedNode as error:
            log.warning("cannot find out which brokers to watch", reason=str(error))
            return
        for broker_id, each in list(self._watched.items()):
            if broker_id not in wanted or wanted[broker_id].epoch != each.epoch:
                del self._watched[broker_id]
                each.stop()
        for broker_id, broker in wanted.items():
            endpoint = next((each for each in broker.endpoints if each.name == self._listener), None)
            if broker_id not in self._watched and endpoint is not None:
                self._watched[broker_id] = _Watched(self, broker, endpoint)

    def _wanted(self) -> dict[int, BrokerImage]:
        registry = self._registry
        assert registry is not None
        controller = registry.find(znodes.CONTROLLER)
        if controller is None:
            # The watched brokers stay watched: one of them may be the next controller's suspect.
            return {broker_id: image for broker_id in self._watched if (image := self._image(registry, broker_id))}
        controller_id = znodes.read_controller(controller)
        if controller_id != self._broker_id:
            image = self._image(registry, controller_id)
            return {} if image is None else {controller_id: image}
        others = [znodes.read_broker_id(name) for name in registry.children(znodes.BROKER_IDS)]
        found = {broker_id: self._image(registry, broker_id) for broker_id in others if broker_id != self._broker_id}
        return {broker_id: image for broker_id, image in found.items() if image is not None}

    def _image(self, registry: Registry, broker_id: int) -> BrokerImage | None:
        node = registry.find(znodes.broker_path(broker_id))
        return None if node is None else znodes.read_broker(broker_id, node)

    # --- for those who watch ---

    def watch_over(self, watched: _Watched) -> asyncio.Task[None]:
        return self._loop.create_task(watched.run(self._network, self._loop, self._clock))

    def changed(self, broker: BrokerImage, is_suspected: bool) -> None:
        if is_suspected:
            log.warning("a broker refuses connections: it seems to have died", broker=broker.broker_id)
        else:
            log.info("a broker that seemed to have died answers", broker=broker.broker_id)
        self._on_change(broker.broker_id)


class _Watched:
    """One registration of one broker."""

    def __init__(self, vigil: Vigil, broker: BrokerImage, endpoint: Endpoint) -> None:
        self.epoch = broker.epoch
        self.is_suspected = False
        self._vigil = vigil
        self._broker = broker
        self._endpoint = endpoint
        self._was_reached = False
        self._refusals = 0
        self._task = vigil.watch_over(self)

    def stop(self) -> None:
        self._task.cancel()

    async def run(self, network: Network, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        while True:
            try:
                sock = await network.connect(self._endpoint.host, self._endpoint.port)
            except OSError as error:
                self._not_reached(isinstance(error, ConnectionRefusedError))
                soon = self._refusals and not self.is_suspected
                await _pause(loop, clock, _NEXT_REFUSAL_SECONDS if soon else _LOOK_AGAIN_SECONDS)
                continue
            since = clock.monotonic()
            try:
                self._reached()
                await _end_of(sock, loop)
            finally:
                loop.remove_reader(sock)
                sock.close()
            if clock.monotonic() - since < _MOMENT_SECONDS:
                await _pause(loop, clock, _LOOK_AGAIN_SECONDS)

    def _reached(self) -> None:
        self._was_reached = True
        self._refusals = 0
        if self.is_suspected:
            self.is_suspected = False
            self._vigil.changed(self._broker, False)

    def _not_reached(self, refused: bool) -> None:
        if not refused or not self._was_reached:
            self._refusals = 0
            return
        self._refusals += 1
        if self._refusals >= _REFUSALS and not self.is_suspected:
            self.is_suspected = True
            self._vigil.changed(self._broker, True)


async def _end_of(sock: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
    """Wait until the other side has closed a connection, on which it never says anything."""
    ended = loop.create_future()

    def look() -> None:
        try:
            said = sock.recv(1)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            said = b""
        if not said and not ended.done():
            ended.set_result(None)

    loop.add_reader(sock, look)
    await ended


async def _pause(loop: asyncio.AbstractEventLoop, clock: Clock, seconds: float) -> None:
    over = loop.create_future()
    timer = clock.call_later(seconds, lambda: None if over.done() else over.set_result(None))
    try:
        await over
    finally:
        timer.cancel()
