"""A broker as a member of its cluster: registered, and a candidate for controller, in one session after another.

When a session expires, the registration ends, and so does a controller's term. The broker continues to serve by its
latest orders, opens a new session, and registers again under a new epoch; the controller then tells it everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from barnabas.broker.clock import Clock
from barnabas.broker.cluster.election import Election
from barnabas.broker.cluster.registration import RegistrationRefused, join_cluster, mirror, register
from barnabas.broker.controller.images import BrokerImage
from barnabas.broker.registry.errors import RegistryError
from barnabas.broker.registry.registry import Registry

log = structlog.get_logger()

OpenSession = Callable[[], Awaitable[Registry]]

_RETRY_SECONDS: Final = 1.0


class Membership:
    registry: Registry  # the current session
    broker_epoch: int  # of the current registration; -1: not registered yet

    def __init__(
        self,
        open_session: OpenSession,
        election: Election,
        clock: Clock,
        *,
        session_timeout_ms: int,
        on_session: Callable[[Registry], Awaitable[None]],
    ) -> None:
        """`on_session` is called with each new session, before the broker registers with it."""
        self.broker_epoch = -1
        self._open_session = open_session
        self._election = election
        self._clock = clock
        self._session_timeout_ms = session_timeout_ms
        self._on_session = on_session
        self._cluster_id = ""
        self._is_expired = False  # the newest session, from the start of its renewal
        self._renewing: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()

    async def open(self, proposed_cluster_id: str, *, may_be_new: bool = True) -> str:
        """Open the first session. Returns the cluster's id, which is the proposed one if it is a new cluster.

        RegistrationRefused if it is a new cluster and must not be.
        """
        self.registry = await self._open_session()
        try:
            await mirror(self.registry)
            self._cluster_id = await join_cluster(self.registry, proposed_cluster_id, may_be_new=may_be_new)
            await self._on_session(self.registry)
        except BaseException:
            await self.registry.close()
            raise
        return self._cluster_id

    async def join(self, broker: BrokerImage, directory_id: str) -> None:
        """Register, and take part in elections. When this returns, the cluster has a controller.

        RegistrationRefused if the broker cannot be a member.
        """
        registry = self.registry
        registry.on_expired(lambda: self._expired(broker, directory_id))
        await self._register(registry, broker, directory_id)

    async def leave(self) -> None:
        """End the membership, and with it the session: registration and controllership end at once."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
        await self._election.leave()
        await asyncio.gather(*self._closing, self.registry.close())

    async def _register(self, registry: Registry, broker: BrokerImage, directory_id: str) -> None:
        self.broker_epoch = await register(
            registry,
            broker,
            self._clock,
            directory_id=directory_id,
            session_timeout_ms=self._session_timeout_ms,
        )
        await self._election.start(registry)

    def _expired(self, broker: BrokerImage, directory_id: str) -> None:
        self._is_expired = True
        if self._renewing is not None and not self._renewing.done():
            return  # the next one may expire too, before the broker has registered with it; then another follows
        log.error("the session with the registry has expired; registering again", broker=broker.broker_id)
        # What it lost was its session, not its data.
        again = broker._replace(after_crash=False)
        self._renewing = asyncio.get_running_loop().create_task(self._renew(again, directory_id))

    async def _renew(self, broker: BrokerImage, directory_id: str) -> None:
        await self._election.leave()
        reported = ""
        while True:
            self._is_expired = False
            try:
                await self._rejoin(broker, directory_id)
            except (RegistryError, RegistrationRefused) as error:
                if str(error) != reported:
                    reported = str(error)
                    log.error("cannot register again", broker=broker.broker_id, reason=reported)
            except Exception:
                log.exception("cannot register again", broker=broker.broker_id)
            else:
                if not self._is_expired:
                    return
            waited = asyncio.Event()
            self._clock.call_later(_RETRY_SECONDS, waited.set)
            await waited.wait()

    async def _rejoin(self, broker: BrokerImage, directory_id: str) -> None:
        registry = await self._open_session()
        try:
            await mirror(registry)
            cluster_id = await join_cluster(registry, self._cluster_id, may_be_new=False)
            if cluster_id != self._cluster_id:
                raise RegistrationRefused(f"the registry belongs to another cluster, {cluster_id}")
            registry.on_expired(lambda: self._expired(broker, directory_id))
            await self._on_session(registry)
            await self._register(registry, broker, directory_id)
        except BaseException:
            await registry.close()
            raise
        former, self.registry = self.registry, registry
        # It is over, but still has connections and threads.
        closing = asyncio.get_running_loop().create_task(former.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
