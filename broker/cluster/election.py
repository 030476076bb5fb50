"""The election of the controller: the broker that creates /controller, together with a raised /controller_epoch, wins.

Each broker watches /controller. When it is gone, all of them try, and one succeeds. A controller that seems to have
died may be replaced before its session ends (cluster.vigil): the raised epoch fences it if it lives. A broker that was
elected starts a term, and ends it as soon as it learns that the node is no longer its own. If a term cannot start, the
broker resigns: a controller that does nothing would keep the others from being elected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

import structlog

from barnabas.broker.clock import Clock
from barnabas.broker.cluster.term import Term
from barnabas.broker.cluster.writes import Deposed
from barnabas.broker.controller import znodes
from barnabas.broker.registry.errors import Conflict, RegistryError, RegistryUnavailable, SessionExpired
from barnabas.broker.registry.registry import Change, Registry
from barnabas.broker.registry.tree_operations import Check, Create, Delete, Operation, Set

log = structlog.get_logger()

_RETRY_SECONDS: Final = 1.0


class Elected(NamedTuple):
    """The epoch that an election started, and the version of the epoch's node at that point."""

    epoch: int
    version: int


MakeTerm = Callable[[Registry, Elected, Callable[[], None]], Awaitable[Term]]
"""Makes a term, given what to call when it is over; its `begin` is still to be called."""


class Election:
    """A broker's part in elections. It lasts as long as the broker, over as many sessions as it needs."""

    term: Term | None  # while this broker is the controller

    def __init__(self, broker_id: int, clock: Clock, make_term: MakeTerm) -> None:
        self.term = None
        self._broker_id = broker_id
        self._clock = clock
        self._make_term = make_term
        self._registry: Registry | None = None
        self._unwatch: Callable[[], None] | None = None
        self._elected: Elected | None = None
        self._running: asyncio.Task[None] | None = None
        self._looking = asyncio.Event()
        self._to_replace: int | None = None  # the broker to be replaced as controller

    async def start(self, registry: Registry) -> None:
        """Take part in elections with a new session. Returns when there is a controller: this broker or another.

        Raises whatever keeps this broker's own first term from starting.
        """
        await self.leave()
        self._registry = registry
        self._unwatch = registry.watch(znodes.CONTROLLER, self._on_change)
        try:
            await self._run_once()
        except BaseException:
            await self.leave()
            raise
        self._running = asyncio.get_running_loop().create_task(self._keep_running())

    def replace(self, broker_id: int) -> None:
        """Replace this broker as controller, if it still is the controller by then."""
        self._to_replace = broker_id
        self._looking.set()

    async def leave(self) -> None:
        """Stop taking part: the session is over, or the broker stops. The node goes with the session."""
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = None
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
            self._running = None
        self._end_term()
        self._elected = self._to_replace = None

    def _end_term(self) -> None:
        term, self.term = self.term, None
        if term is not None:
            term.end()
            log.info("no longer the controller", broker=self._broker_id, epoch=term.epoch)

    def _on_change(self, changes: Sequence[Change]) -> None:
        if self.term is not None and not self._is_mine(changes[-1]):
            self._end_term()
        self._looking.set()

    def _is_mine(self, change: Change) -> bool:
        return change.node is not None and znodes.read_controller(change.node) == self._broker_id

    async def _keep_running(self) -> None:
        while True:
            await self._looking.wait()
            self._looking.clear()
            try:
                await self._run_once()
            except SessionExpired:
                return
            except Exception as error:
                known = isinstance(error, RegistryError)
                log.error("this broker cannot be the controller now", reason=str(error), exc_info=not known)
                await self._pause()
                self._looking.set()

    async def _run_once(self) -> None:
        """Try to be elected, if there is no controller; start a term if this broker won."""
        registry = self._registry
        to_replace, self._to_replace = self._to_replace, None
        if registry is None or self.term is not None:
            return
        if self._elected is None or not self._still_elected(registry, self._elected):
            self._elected = await self._try(registry, to_replace)
        elected = self._elected
        if elected is None:
            return
        log.info("elected as the controller", broker=self._broker_id, epoch=elected.epoch)
        try:
            await self._begin_term(registry, elected)
        except Deposed:  # another was elected before this term could start
            self._end_term()
            self._elected = None
            self._looking.set()
        except BaseException:
            await self._resign(registry, elected)
            raise

    async def _begin_term(self, registry: Registry, elected: Elected) -> None:
        term = await self._make_term(registry, elected, self._on_term_end)
        self.term = term
        if not self._still_elected(registry, elected):  # what happened before there was a term has not ended it
            raise Deposed
        await term.begin()
        if not term.is_active:
            self._end_term()
            self._looking.set()

    def _on_term_end(self) -> None:
        self.term = None
        self._looking.set()

    async def _try(self, registry: Registry, to_replace: int | None = None) -> Elected | None:
        """The election of this broker, if there is no controller or it is the one to be replaced."""
        while True:
            former = registry.find(znodes.CONTROLLER)
            if former is not None and znodes.read_controller(former) != to_replace:
                return None
            node = registry.find(znodes.CONTROLLER_EPOCH)
            epoch = 1 if node is None else znodes.read_controller_epoch(node) + 1
            data = znodes.write_controller_epoch(epoch)
            elected = Elected(epoch, 0 if node is None else node.version + 1)
            operations: list[Operation] = [
                *([] if former is None else [Delete(znodes.CONTROLLER)]),
                Create(
                    znodes.CONTROLLER, znodes.write_controller(self._broker_id, self._clock.now_ms()), ephemeral=True
                ),
                Create(znodes.CONTROLLER_EPOCH, data)
                if node is None
                else Set(znodes.CONTROLLER_EPOCH, data, node.version),
            ]
            try:
                await registry.multi(operations)
            except Conflict:
                # The registry now shows what was in the way. Do not replace a controller that has been elected
                # meanwhile.
                to_replace = None
                await registry.refresh(znodes.CONTROLLER)
                await registry.refresh(znodes.CONTROLLER_EPOCH)
            except RegistryUnavailable:
                if not await self._happened(registry, elected):
                    raise
                return elected
            else:
                return elected

    async def _happened(self, registry: Registry, elected: Elected) -> bool:
        """Whether an election happened whose answer got lost. The node was not there before, so one of ours is new."""
        while True:
            try:
                await registry.refresh(znodes.CONTROLLER)
                await registry.refresh(znodes.CONTROLLER_EPOCH)
            except RegistryUnavailable:
                await self._pause()
            else:
                return self._still_elected(registry, elected)

    def _still_elected(self, registry: Registry, elected: Elected) -> bool:
        node, epoch = registry.find(znodes.CONTROLLER), registry.find(znodes.CONTROLLER_EPOCH)
        mine = node is not None and znodes.read_controller(node) == self._broker_id
        return mine and epoch is not None and epoch.version == elected.version

    async def _resign(self, registry: Registry, elected: Elected) -> None:
        self._end_term()
        self._elected = None
        try:
            await registry.multi([Check(znodes.CONTROLLER_EPOCH, elected.version), Delete(znodes.CONTROLLER)])
        except RegistryError as error:
            log.warning("the controller could not resign", reason=str(error))

    async def _pause(self) -> None:
        waited = asyncio.Event()
        self._clock.call_later(_RETRY_SECONDS, waited.set)
        await waited.wait()
