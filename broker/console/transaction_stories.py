"""The last transactions of an id, in words and as data for a picture: begin, partitions, end, markers.

They are read off the states that the coordinator has written to its log, each with its time. What was refused or went
wrong in between is beside them.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.broker.console.stories import duration
from barnabas.broker.internal_topics import CONSUMER_OFFSETS
from barnabas.broker.transaction.metadata import TransactionMetadata
from barnabas.broker.transaction.shard import TransactionNote, TransactionShard
from barnabas.broker.transaction.states import TransactionState

Json = dict[str, Any]

_TOLD: Final = 10
_MOST_SHOWN: Final = 8
_NOTES: Final = 20
_ONGOING: Final = TransactionState.ONGOING


def transactions_of(shard: TransactionShard, transactional_id: str, now_ms: int) -> list[Json]:
    """The last ones of this id, newest first."""
    states = [each for each in shard.past if each.transactional_id == transactional_id]
    notes = [each for each in shard.notes if each.transactional_id == transactional_id]
    runs = _runs(states)[-_TOLD:]
    told = []
    for number, run in enumerate(runs):
        begin = run[0].last_update_ms
        end = runs[number + 1][0].last_update_ms if number + 1 < len(runs) else now_ms
        told.append(_told(run, [note for note in notes if begin <= note.at_ms <= end], now_ms))
    return told[::-1]


def notes_of(shard: TransactionShard, transactional_id: str) -> list[Json]:
    """What was refused or went wrong, newest first: also outside of transactions."""
    notes = [each._asdict() for each in reversed(shard.notes) if each.transactional_id == transactional_id]
    return notes[:_NOTES]


def _runs(states: list[TransactionMetadata]) -> list[list[TransactionMetadata]]:
    """The states of each transaction, from its beginning to its end; what a producer's start left is in none."""
    runs: list[list[TransactionMetadata]] = []
    is_open = False
    for state in states:
        if state.state == _ONGOING and not is_open:
            runs.append([])
            is_open = True
        if is_open:
            runs[-1].append(state)
            is_open = state.state == _ONGOING or state.state.is_prepared
    return runs


def _told(run: list[TransactionMetadata], notes: list[TransactionNote], now_ms: int) -> Json:
    first, last = run[0], run[-1]
    prepared = next((each for each in run if each.state.is_prepared), None)
    complete = last if last.state not in (_ONGOING,) and not last.state.is_prepared else None
    steps: list[Json] = []
    known: frozenset[Any] = frozenset()
    for state in run:
        if state.state == _ONGOING:
            new = sorted(state.partitions - known)
            known = state.partitions
            what = "begins with" if state is first else "adds"
            steps.append({"at_ms": state.last_update_ms, "kind": "begin", "what": f"{what} {_named(new)}"})
        elif state.state.is_prepared:
            how = "commit" if state.state == TransactionState.PREPARE_COMMIT else "abort"
            what = f"the {how} is decided; markers go to {_count(len(state.partitions))}"
            steps.append({"at_ms": state.last_update_ms, "kind": how, "what": what})
        else:
            steps.append({"at_ms": state.last_update_ms, "kind": "done", "what": "all markers are written"})
    steps += [{"at_ms": note.at_ms, "kind": "note", "what": note.what} for note in notes]
    steps.sort(key=lambda step: (int(step["at_ms"]), step["kind"] != "note"))  # a reason comes before what it led to
    return {
        "began_ms": first.last_update_ms,
        "prepared_ms": None if prepared is None else prepared.last_update_ms,
        "ended_ms": None if complete is None else complete.last_update_ms,
        "now_ms": now_ms,
        "state": last.state.label,
        "producer_id": first.producer_id,
        "producer_epoch": first.producer_epoch,
        "steps": steps,
        "words": _words(first, prepared, complete, known, notes, now_ms),
    }


def _words(
    first: TransactionMetadata,
    prepared: TransactionMetadata | None,
    complete: TransactionMetadata | None,
    partitions: frozenset[Any],
    notes: list[TransactionNote],
    now_ms: int,
) -> list[str]:
    whose = f"producer {first.producer_id} in epoch {first.producer_epoch}"
    offsets = [each for each in partitions if each.topic == CONSUMER_OFFSETS]
    records = len(partitions) - len(offsets)
    parts = [f"records in {_count(records)}"] if records else []
    parts += ["offsets of groups"] if offsets else []
    words = [f"A transaction of {whose}, with {' and '.join(parts) or 'nothing in it'}."]
    began = first.last_update_ms
    if prepared is None:
        left = began + first.timeout_ms - now_ms
        words.append(f"It has been open for {duration(max(now_ms - began, 0))}.")
        words.append(
            f"If nothing ends it, the broker aborts it in {duration(left)}."
            if left > 0
            else "Its time is over: the broker aborts it next."
        )
        return words
    how = "commit" if prepared.state == TransactionState.PREPARE_COMMIT else "abort"
    reason = next((note.what for note in notes if "aborted" in note.what), None)
    words.append(f"After {duration(prepared.last_update_ms - began)} the {how} was decided.")
    if how == "abort" and reason is not None:
        words.append(f"Why: {reason}.")
    if complete is None:
        words.append("Its markers are being written; readers of committed records wait for them.")
    else:
        took = duration(complete.last_update_ms - prepared.last_update_ms)
        words.append(
            f"The markers were written within {took}. Since then it does not hold up readers of committed records."
        )
    return words


def _named(partitions: list[Any]) -> str:
    shown = [
        "offsets of groups" if each.topic == CONSUMER_OFFSETS else f"{each.topic}-{each.partition}"
        for each in partitions[:_MOST_SHOWN]
    ]
    more = f" and {len(partitions) - _MOST_SHOWN} more" if len(partitions) > _MOST_SHOWN else ""
    return ", ".join(dict.fromkeys(shown)) + more


def _count(number: int) -> str:
    return "1 partition" if number == 1 else f"{number} partitions"
