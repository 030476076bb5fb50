"""The story of a group's rebalances, in words and as data for a picture: why one began, who was late, what moved."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.group.classic.group import Group
from barnabas.broker.group.classic.story import Rebalance
from barnabas.broker.testing.state import assignment_of

if TYPE_CHECKING:
    from barnabas.broker.group.kind import AnyGroup

_TOLD: Final = 10
_MOST_MOVES: Final = 50

Json = dict[str, Any]


def told_of(group: AnyGroup) -> list[Json]:
    """The last ones, newest first. Groups of the consumer protocol have none: nobody there waits for all the others."""
    if not isinstance(group, Group):
        return []
    return [told(rebalance) for rebalance in islice(reversed(group.story.rebalances), _TOLD)]


def told(rebalance: Rebalance) -> Json:
    moves = _moves(rebalance.before, rebalance.after) if rebalance.after else []
    return {
        "began_ms": rebalance.began_ms,
        "joined_ms": rebalance.joined_ms,
        "ended_ms": rebalance.ended_ms,
        "generation": rebalance.generation,
        "words": _words(rebalance, moves),
        "members": [{"member_id": member, "name": _name(rebalance, member)} for member in _members(rebalance)],
        "notes": [{"at_ms": note.at_ms, "member_id": note.member_id, "what": note.what} for note in rebalance.notes],
        "moves": moves[:_MOST_MOVES],
    }


def _members(rebalance: Rebalance) -> list[str]:
    """All who had a part in it, in the order of their appearance."""
    return list(dict.fromkeys([*rebalance.before, *(note.member_id for note in rebalance.notes), *rebalance.after]))


def _name(rebalance: Rebalance, member_id: str) -> str:
    """What its client calls itself. Members of one client differ in the end of their ids only."""
    client = _client(rebalance, member_id)
    same = [each for each in _members(rebalance) if _client(rebalance, each) == client]
    return client if len(same) <= 1 else f"{client}…{member_id[-4:]}"


def _client(rebalance: Rebalance, member_id: str) -> str:
    """An id is the client's name and a UUID."""
    return rebalance.clients.get(member_id) or member_id[:-37] or member_id


def _words(rebalance: Rebalance, moves: list[Json]) -> list[str]:
    reason = rebalance.reason
    for member_id in _members(rebalance):
        reason = reason.replace(member_id, _name(rebalance, member_id))
    words = [f"It began because {reason}."]
    words += [
        f"{_name(rebalance, note.member_id)} is gone: {note.what}."
        for note in rebalance.notes
        if note.what.startswith(("it ", "its ")) and note.member_id not in rebalance.reason
    ]
    if rebalance.joined_ms is None:
        words.append(
            "It waits for members to join." if rebalance.ended_ms is None else "Another began before it ended."
        )
        return words
    waited = _seconds(rebalance.joined_ms - rebalance.began_ms)
    if not rebalance.clients:
        words.append(f"After {waited} nobody was left in the group.")
        return words
    last = max((note for note in rebalance.notes if note.what.startswith("joins")), key=_time_of, default=None)
    late = "" if last is None or len(rebalance.clients) == 1 else f"; {_name(rebalance, last.member_id)} came last"
    count = len(rebalance.clients)
    words.append(f"After {waited} {'its member' if count == 1 else f'all {count} members'} had joined{late}.")
    if rebalance.ended_ms is None:
        words.append(f"It waits for {_leader(rebalance)}, the leader, to say who gets what.")
    elif not rebalance.after:
        words.append("Another began before everybody had its part.")
    else:
        took = _seconds(rebalance.ended_ms - rebalance.joined_ms)
        words.append(f"{_leader(rebalance)} shared out the partitions by {rebalance.protocol} within {took}.")
        words.append(_moved(rebalance, moves))
    return words


def _time_of(note: Any) -> int:
    return int(note.at_ms)


def _leader(rebalance: Rebalance) -> str:
    return _name(rebalance, rebalance.leader_id or "")


def _moved(rebalance: Rebalance, moves: list[Json]) -> str:
    if not moves:
        return "Nothing moved."
    shown = [
        f"{move['topic']}-{move['partition']} "
        + (f"from {_name(rebalance, move['from'])} " if move["from"] else "")
        + (f"to {_name(rebalance, move['to'])}" if move["to"] else "to nobody")
        for move in moves[:5]
    ]
    more = f", and {len(moves) - 5} more" if len(moves) > 5 else ""
    return f"Moved: {', '.join(shown)}{more}."


def _moves(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[Json]:
    old, new = _owners(before), _owners(after)
    return [
        {"topic": topic, "partition": index, "from": old.get((topic, index)), "to": new.get((topic, index))}
        for topic, index in sorted({*old, *new})
        if old.get((topic, index)) != new.get((topic, index))
    ]


def _owners(assigned: Mapping[str, bytes]) -> dict[tuple[str, int], str]:
    return {
        (topic, index): member_id
        for member_id, data in assigned.items()
        for topic, indexes in (assignment_of(data) or {}).items()
        for index in indexes
    }


def _seconds(ms: int) -> str:
    return f"{ms} ms" if ms < 1000 else f"{ms / 1000:.1f} s"
