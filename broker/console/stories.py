"""The story of a group's rebalances, in words and as data for a picture: why one began, who was late, what moved.

In a classic group, everybody joins and waits for the last one, and a leader among them shares out the partitions. In a
group of the consumer protocol the broker does that, and each member lets go of what it loses and takes what it gets in
its own time. Both are told in the same form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.group.classic.group import Group
from barnabas.broker.group.classic.story import Note, Rebalance
from barnabas.broker.group.consumer.story import Change, Partitions
from barnabas.broker.testing.state import assignment_of

if TYPE_CHECKING:
    from barnabas.broker.group.kind import AnyGroup
    from barnabas.broker.group.shard import GroupShard

_TOLD: Final = 10
_MOST_MOVES: Final = 50
_MOST_MEMBERS: Final = 50
_MOST_PAIRS: Final = 10  # of members between which partitions moved
_MOST_TOPICS: Final = 5

Json = dict[str, Any]
Owners = dict[tuple[str, int], str]

# What a note is drawn as.
_KINDS: Final = {
    "joins": "join",
    "joins again": "join",
    "asks for its part": "sync",
    "is asked to let go": "revoke",
    "has let go": "join",
    "waits for what others have": "join",
    "has its part": "sync",
}


def told_of(shard: GroupShard, group: AnyGroup, topic_names: Mapping[bytes, str]) -> list[Json]:
    """The last ones, newest first."""
    if isinstance(group, Group):
        return [told(rebalance) for rebalance in islice(reversed(group.story.rebalances), _TOLD)]
    changes = shard.consumers.stories.of(group.group_id)
    return [told_change(change, topic_names) for change in islice(reversed(changes), _TOLD)]


class _Names:
    """What members are called: as their clients call themselves. Those of one client differ by the end of their ids."""

    def __init__(self, members: Iterable[str], clients: Mapping[str, str]) -> None:
        self.members = list(dict.fromkeys(members))
        # The id of a classic member is the client's name and a UUID.
        self._clients = {each: clients.get(each) or each[:-37] or each for each in self.members}
        self._counts = Counter(self._clients.values())

    def __call__(self, member_id: str) -> str:
        client = self._clients.get(member_id) or member_id
        return client if self._counts[client] <= 1 else f"{client}…{member_id[-4:]}"

    def in_text(self, text: str) -> str:
        for member_id in self.members:
            text = text.replace(member_id, self(member_id))
        return text

    def described(self) -> list[Json]:
        return [{"member_id": each, "name": self(each)} for each in self.members[:_MOST_MEMBERS]]


def _told(
    names: _Names,
    words: list[str],
    notes: list[Note],
    moves: list[Json],
    *,
    times: tuple[int, int | None, int | None],
    title: str,
    phases: tuple[str, str],
) -> Json:
    began_ms, middle_ms, ended_ms = times
    return {
        "title": title,
        "phases": phases,
        "began_ms": began_ms,
        "joined_ms": middle_ms,
        "ended_ms": ended_ms,
        "words": words,
        "members": names.described(),
        "notes": [
            {
                "at_ms": note.at_ms,
                "member_id": note.member_id,
                "what": note.what,
                "kind": _KINDS.get(note.what, "gone"),
            }
            for note in notes
        ],
        "moves": moves[:_MOST_MOVES],
    }


# --- the classic protocol ---


def told(rebalance: Rebalance) -> Json:
    members = [*rebalance.before, *(note.member_id for note in rebalance.notes), *rebalance.after]
    names = _Names(members, rebalance.clients)
    moves = _moves(_owners(rebalance.before), _owners(rebalance.after)) if rebalance.after else []
    return _told(
        names,
        _words(rebalance, names, moves),
        rebalance.notes,
        moves,
        times=(rebalance.began_ms, rebalance.joined_ms, rebalance.ended_ms),
        title="Rebalance" if rebalance.generation is None else f"To generation {rebalance.generation}",
        phases=("PreparingRebalance: members join", "CompletingRebalance: the leader assigns"),
    )


def _words(rebalance: Rebalance, names: _Names, moves: list[Json]) -> list[str]:
    words = [f"It began because {names.in_text(rebalance.reason)}."]
    words += [
        f"{names(note.member_id)} is gone: {note.what}."
        for note in rebalance.notes
        if note.what.startswith(("it ", "its ")) and note.member_id not in rebalance.reason
    ]
    if rebalance.joined_ms is None:
        words.append(
            "It waits for members to join." if rebalance.ended_ms is None else "Another began before it ended."
        )
        return words
    waited = duration(rebalance.joined_ms - rebalance.began_ms)
    if not rebalance.clients:
        words.append(f"After {waited} nobody was left in the group.")
        return words
    last = max((note for note in rebalance.notes if note.what.startswith("joins")), key=_time_of, default=None)
    late = "" if last is None or len(rebalance.clients) == 1 else f"; {names(last.member_id)} came last"
    count = len(rebalance.clients)
    words.append(f"After {waited} {_everybody(count)} had joined{late}.")
    leader = names(rebalance.leader_id or "")
    if rebalance.ended_ms is None:
        words.append(f"It waits for {leader}, the leader, to say who gets what.")
    elif not rebalance.after:
        words.append("Another began before every member had its partitions.")
    else:
        took = duration(rebalance.ended_ms - rebalance.joined_ms)
        words.append(f"{took} later {leader}, the leader, had assigned the partitions with {rebalance.protocol}.")
        words.append(_moved(names, moves))
    return words


def _everybody(count: int) -> str:
    return "its member" if count == 1 else "both members" if count == 2 else f"all {count} members"


def _time_of(note: Note) -> int:
    return note.at_ms


def _owners(assigned: Mapping[str, bytes]) -> Owners:
    return {
        (topic, index): member_id
        for member_id, data in assigned.items()
        for topic, indexes in (assignment_of(data) or {}).items()
        for index in indexes
    }


# --- the consumer protocol ---


def told_change(change: Change, topic_names: Mapping[bytes, str]) -> Json:
    members = [*change.before, *(note.member_id for note in change.notes), *change.after]
    names = _Names(members, change.clients)
    is_over = change.assigned_ms is not None
    moves = _moves(_named(change.before, topic_names), _named(change.after, topic_names)) if is_over else []
    return _told(
        names,
        _change_words(change, names, moves),
        change.notes,
        moves,
        times=(change.began_ms, change.assigned_ms, change.ended_ms),
        title=f"To epoch {change.epoch}",
        phases=("Assigning", "Reconciling: members let go and take over"),
    )


def _change_words(change: Change, names: _Names, moves: list[Json]) -> list[str]:
    words = [f"It began because {names.in_text(change.reason)}."]
    if change.assigned_ms is None:
        if change.ended_ms is None:
            words.append("The broker assigns partitions with the next heartbeat.")
        else:
            words.append("Nobody was left in the group." if not change.after else "Another began before it ended.")
        return words
    waited = change.assigned_ms - change.began_ms
    when = f"After {duration(waited)} the" if waited else "The"
    words.append(f"{when} broker assigned the partitions with {change.assignor}.")
    for note in change.notes:
        if note.what == "is asked to let go":
            freed = next(
                (each for each in change.notes if each.member_id == note.member_id and each.what == "has let go"), None
            )
            heard = duration(max(note.at_ms - change.began_ms, 0))
            done = "it has not done so yet" if freed is None else f"it did within {duration(freed.at_ms - note.at_ms)}"
            words.append(f"{names(note.member_id)} heard after {heard} that it must let go of partitions; {done}.")
    if change.ended_ms is None:
        waiting = ", ".join(names(each) for each in islice(change.awaited, 5))
        words.append(f"It waits for {waiting}." if waiting else "It goes on.")
    elif change.awaited:
        words.append("Another began before every member had its partitions.")
    else:
        words.append(f"After {duration(change.ended_ms - change.began_ms)} every member had its partitions.")
    words.append(_moved(names, moves))
    return words


def _named(assigned: Mapping[str, Partitions], topic_names: Mapping[bytes, str]) -> Owners:
    return {
        (topic_names.get(topic_id) or topic_id.hex(), index): member_id
        for member_id, partitions in assigned.items()
        for topic_id, indexes in partitions.items()
        for index in indexes
    }


# --- both ---


def _moved(names: _Names, moves: list[Json]) -> str:
    """Who got what from whom: "from a to b: orders 0-2, 5"."""
    if not moves:
        return "Nothing moved."
    found: dict[tuple[str | None, str | None], dict[str, list[int]]] = {}
    for move in moves:
        found.setdefault((move["from"], move["to"]), {}).setdefault(move["topic"], []).append(move["partition"])
    shown = [
        (f"from {names(old)} " if old else "")
        + (f"to {names(new)}" if new else "to nobody")
        + f": {', '.join(f'{topic} {_ranges(indexes)}' for topic, indexes in islice(topics.items(), _MOST_TOPICS))}"
        + (f" and {len(topics) - _MOST_TOPICS} more topics" if len(topics) > _MOST_TOPICS else "")
        for (old, new), topics in islice(found.items(), _MOST_PAIRS)
    ]
    more = f"; and {len(found) - _MOST_PAIRS} more moves between members" if len(found) > _MOST_PAIRS else ""
    return f"Moved {'; '.join(shown)}{more}."


def _ranges(indexes: list[int]) -> str:
    """Numbers in order, as people write them: "0-2, 5"."""
    runs: list[list[int]] = []
    for index in indexes:
        if runs and index == runs[-1][-1] + 1:
            runs[-1][1:] = [index]
        else:
            runs.append([index])
    return ", ".join("-".join(map(str, run)) for run in runs)


def _moves(old: Owners, new: Owners) -> list[Json]:
    return [
        {"topic": topic, "partition": index, "from": old.get((topic, index)), "to": new.get((topic, index))}
        for topic, index in sorted({*old, *new})
        if old.get((topic, index)) != new.get((topic, index))
    ]


def duration(ms: int) -> str:
    """As people say it: 20 ms, 1.9 s, 9 min 12 s, 2 h 5 min."""
    if ms < 1000:
        return f"{ms} ms"
    if ms < 59_950:
        return f"{ms / 1000:.1f} s"
    minutes, seconds = divmod(round(ms / 1000), 60)
    hours, minutes = divmod(minutes, 60)
    large, small = (f"{hours} h", f"{minutes} min") if hours else (f"{minutes} min", f"{seconds} s")
    return large if small.startswith("0 ") else f"{large} {small}"
