"""What a controller writes in its term: decisions as transactions, each of which fails if the term is over.

A decision is made from the view and carried out as one transaction. If the tree has changed in between so that it no
longer fits, it is made again from the newer view. When a method returns, the view shows what it did, and the view's
listeners have run. A write that raises RegistryUnavailable may have happened if the registry is another process: the
view shows it when the registry can be reached again, and what is still to be done is then decided afresh. Until then
nothing is decided: a refusal, which is never written and so never found to be wrong, would come from an outdated view.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from barnabas.broker.controller import znodes
from barnabas.broker.controller.results import Decision, Result
from barnabas.broker.controller.view import ClusterView
from barnabas.broker.registry.errors import Conflict, RegistryUnavailable, SessionExpired
from barnabas.broker.registry.registry import Registry
from barnabas.broker.registry.tree_operations import Check, Operation
from barnabas.broker.server.pieces import parts

# ZooKeeper takes transactions of up to a megabyte.
_OPERATIONS_AT_A_TIME: Final = 1000


class Deposed(Exception):
    """Another broker is the controller now, or will be: this one no longer decides anything."""


class Writes:
    def __init__(
        self, registry: Registry, cluster: ClusterView, epoch_version: int, deposed: Callable[[], None]
    ) -> None:
        """`epoch_version` is the version that the node of the controller's epoch got with the election."""
        self._registry = registry
        self._cluster = cluster
        self._still_elected = Check(znodes.CONTROLLER_EPOCH, epoch_version)
        self._deposed = deposed
        self._unsure: dict[str, None] = {}  # nodes that may have changed without the view showing it
        self.ended = False

    async def carry_out(self, decide: Callable[[], Decision[Result]], validate_only: bool = False) -> Sequence[Result]:
        """Carry out a decision; make it again if the tree has changed so that it no longer fits."""
        while True:
            self._check()
            await self._make_sure()
            revision = self._cluster.revision
            decision = decide()
            if validate_only or not decision.operations:
                return decision.results
            try:
                await self.write(decision.operations)
            except RegistryUnavailable:
                self._unsure |= dict.fromkeys(each.path for each in decision.operations)
                raise
            except Conflict:
                if self._cluster.revision == revision:  # it does not fit the tree that it was decided from
                    raise
            else:
                return decision.results

    async def _make_sure(self) -> None:
        while self._unsure:
            path = next(iter(self._unsure))
            try:
                await self._registry.refresh(path)
            except SessionExpired as expired:
                self._deposed()
                raise Deposed from expired
            self._unsure.pop(path, None)
            self._check()

    async def carry_out_in_parts(self, decide: Callable[[], Sequence[Operation]]) -> None:
        """Carry out independent operations, as many as there may be. If one no longer fits, all are decided again."""
        while True:
            self._check()
            revision = self._cluster.revision
            try:
                for some in parts(decide(), _OPERATIONS_AT_A_TIME):
                    await self.write(some)
            except Conflict:
                if self._cluster.revision == revision:
                    raise
                await asyncio.sleep(0)
            else:
                return

    async def write(self, operations: Sequence[Operation]) -> None:
        self._check()
        try:
            await self._registry.multi([self._still_elected, *operations])
        except Conflict as conflict:
            if conflict.path != znodes.CONTROLLER_EPOCH:
                raise
            self._deposed()
            raise Deposed from conflict
        except SessionExpired as expired:
            self._deposed()
            raise Deposed from expired

    def _check(self) -> None:
        if self.ended:
            raise Deposed
