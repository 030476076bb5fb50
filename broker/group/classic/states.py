"""The states of a group and their transitions."""

from __future__ import annotations

from enum import Enum
from typing import Final


class GroupState(Enum):
    """Values are the names that answers carry."""

    EMPTY = "Empty"
    """No members. There may be offsets: the group lives on until they expire.
    Join: the first rebalance begins. Sync, heartbeat: UNKNOWN_MEMBER_ID. Commit without a member: taken.
    """

    PREPARING_REBALANCE = "PreparingRebalance"
    """Waits for all members to join (again), up to the longest rebalance timeout among them.
    Join: parked. Sync, heartbeat: REBALANCE_IN_PROGRESS. Leave: may complete it. Commit of the last generation: taken.
    """

    COMPLETING_REBALANCE = "CompletingRebalance"
    """A new generation exists; waits for its leader to send the assignment.
    Sync: parked, the leader's completes it. Join with something new: back to preparing. Commit: REBALANCE_IN_PROGRESS.
    """

    STABLE = "Stable"
    """Every member has its assignment.
    Sync: answered with it. Join of the leader, or with something new: a rebalance begins; else answered as it is.
    """

    DEAD = "Dead"
    """Gone; clients get an error and look for the coordinator again."""


_MAY_FOLLOW: Final[dict[GroupState, frozenset[GroupState]]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset({GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.STABLE}),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
    GroupState.DEAD: frozenset(GroupState),
}


def may_follow(after: GroupState, before: GroupState) -> bool:
    return before in _MAY_FOLLOW[after]
