"""The same history, checked by the simulation's checker, so that both checkers cover both kinds of runs.

Clients of real processes know less than simulated ones (no positions, no epochs, not where a group's offset was when
they began), and `tests/support/history.py` checks more (logs with aborted records, what a group left out). Each catches
mistakes of the other.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from typing import Any

from tests.support.history import Event, History, Kind, Logs, What


def second_opinion(history: History, committed: Logs, *, acks: int = -1) -> list[str]:
    """What the simulation's checker finds; nothing where there is no simulation."""
    if importlib.util.find_spec("barnabas.simulation") is None:
        return []
    from barnabas.simulation.checker import check

    return [f"{found.kind}: {found.what}" for found in check(as_simulated(history, committed, acks))]


def as_simulated(history: History, committed: Logs, acks: int) -> Any:
    from barnabas.simulation import history as simulated

    made = simulated.History(final={("", p): tuple(sorted(log.items())) for p, log in committed.items()})
    transactions: dict[str, Any] = {}
    late = history.latecomers(committed)
    for value, sent in history.sends.items():
        kind, answer = history.kinds[sent.who], history.acknowledged.get(value)
        transaction = None
        if sent.transaction:
            if sent.transaction not in transactions:
                known = history.transactions[sent.transaction]
                outcome = "committed" if known.is_committed else "unknown" if known.may_be_committed else "aborted"
                transactions[sent.transaction] = simulated.Transaction(
                    sent.who, len(transactions), sent.at, outcome=outcome
                )
            transaction = transactions[sent.transaction]
        made.sends.append(
            simulated.Send(
                client=sent.who,
                key=("", sent.partition),
                values=(value,),
                began=sent.at,
                acks=acks if kind is Kind.PLAIN else -1,
                idempotent=kind is not Kind.PLAIN,
                incarnation=int(value in late),
                transaction=transaction,
                ended=answer.at if answer else 0.0,
                outcome=simulated.Outcome.OK if answer else simulated.Outcome.UNKNOWN,
                offset=answer.offset if answer else -1,
            )
        )
    made.transactions.extend(transactions.values())
    _add_reads(history, made, simulated)
    return made


def _add_reads(history: History, made: Any, simulated: Any) -> None:
    """A read counts as a poll from where the one before it ended."""
    assignments: Counter[str] = Counter()
    assigned_at: dict[str, float] = {}
    ends: dict[tuple[str, int, int], int] = {}
    for event in history.events:
        if event.what is What.ASSIGNED:
            assignments[event.who] += 1
            assigned_at[event.who] = event.at
        elif event.what is What.OFFSET_COMMITTED:
            group = history.groups[event.who]
            made.commits.append(
                simulated.Commit(
                    group, ("", event.partition), event.offset, event.who, event.at, event.at, simulated.Outcome.OK
                )
            )
        elif event.what is What.READ:
            reader = (event.who, assignments[event.who], event.partition)
            if reader not in ends:
                _add_beginning(history, made, simulated, event, assigned_at.get(event.who, event.at))
            made.polls.append(
                simulated.Poll(
                    client=event.who,
                    key=("", event.partition),
                    position=ends.get(reader, event.offset),
                    records=((event.offset, event.value),),
                    next_position=event.offset + 1,
                    at=event.at,
                    assignment=assignments[event.who],
                    committed_only=True,
                )
            )
            ends[reader] = event.offset + 1


def _add_beginning(history: History, made: Any, simulated: Any, event: Event, assigned_at: float) -> None:
    """Where a member begins is at or after what its group has committed."""
    made.commits_seen.append(
        simulated.CommitSeen(
            history.groups[event.who], ("", event.partition), event.offset, event.who, assigned_at, event.at
        )
    )
