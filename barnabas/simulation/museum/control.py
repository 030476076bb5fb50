"""Mistakes in the election of controllers, and in what they write."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.broker.cluster.election import Election
from barnabas.broker.cluster.term import Term
from barnabas.broker.cluster.writes import Deposed, Writes
from barnabas.broker.registry.errors import RegistryUnavailable, SessionExpired
from barnabas.broker.registry.tree_operations import Operation
from barnabas.simulation.museum.exhibit import Exhibit, Replacement


def _writes_unchecked() -> list[Replacement]:
    async def write(self: Writes, operations: Sequence[Operation]) -> None:
        self._check()
        try:
            await self._registry.multi(operations)
        except SessionExpired as expired:
            self._deposed()
            raise Deposed from expired

    return [Replacement(Writes, "write", write)]


KAFKA_6082 = Exhibit(
    "kafka-6082",
    "a deposed controller still writes",
    "KAFKA-6082, KAFKA-5642",
    """
A controller may be deposed without knowing it yet: its node in the registry was deleted, and the news is on its way.
What it decides in that time it decides from old facts, and it overwrites what its successor has decided. So every
write carries a check of the version of the controller's epoch, and the registry refuses it.
""",
    _writes_unchecked,
    seed=6,
    weather="hearsay",
)


def _never_begins() -> list[Replacement]:
    async def begin(self: Term) -> None:
        try:
            await self._writes.carry_out_in_parts(self._remove_leftover_configs)
            await self._look_after()
        except RegistryUnavailable:
            return  # and nobody tries again
        if not self._writes.ended:
            self._background.start(self._tend())
            self._rebalancing.start()

    return [Replacement(Term, "begin", begin)]


KAFKA_13407 = Exhibit(
    "kafka-13407",
    "an elected controller never begins",
    "KAFKA-13407",
    """
A broker wins the election, and the registry is out of reach when it wants to write its first decisions. If it gives
up quietly and keeps its node, no other broker can be elected: partitions stay without leaders until somebody deletes
the node. It must try again, or resign.
""",
    _never_begins,
    seed=1,
    weather="succession",
)


def _believes_still() -> list[Replacement]:
    leave, run_once = Election.leave, Election._run_once

    async def leave_with_its_term(self: Election) -> None:
        term, self.term = self.term, None
        await leave(self)
        self.term = term

    async def _run_once(self: Election) -> None:
        if self.term is not None and self._registry is not None:
            await self._try(self._registry)  # and if it is elected, it is the controller already, as it believes
        else:
            await run_once(self)

    return [
        Replacement(Election, "leave", leave_with_its_term),
        Replacement(Election, "_run_once", _run_once),
        Replacement(Election, "_on_term_end", lambda self: self._looking.set()),
    ]


KAFKA_4229 = Exhibit(
    "kafka-4229",
    "a controller whose session was lost believes that it still is the controller",
    "KAFKA-4229",
    """
A controller loses its session, gets a new one and is elected again. If it has not ended its first term, it believes
that there is nothing to begin: it holds the node, so that nobody else is elected, and follows a tree of a session that
is no more. Partitions stay without leaders.
""",
    _believes_still,
    seed=3,
    weather="interregnum",
)


EXHIBITS = [KAFKA_6082, KAFKA_13407, KAFKA_4229]
