"""Reconciliation: the steps of a member from what it has to what the target gives it.

A member first lets go of what the target takes from it, and says so in a heartbeat; only then does it move to the
target's epoch. It gets a partition as soon as no other member has it. So no partition ever has two owners.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from barnabas.broker.group.consumer.member import Assigned, ConsumerMember, MemberState

Target = Mapping[bytes, frozenset[int]]
# The partitions that a member says it owns; None if it does not say.
Owned = Mapping[bytes, frozenset[int]] | None


def reconcile(
    member: ConsumerMember,
    target_epoch: int,
    target: Target,
    subscribed: Collection[bytes],
    is_owned: Callable[[bytes, int], bool],
    owned: Owned,
    *,
    subscription_changed: bool,
) -> ConsumerMember:
    """The member's next state; the same one if it cannot go on yet.

    `is_owned` tells of a partition whether some member has it or is letting go of it.
    """
    match member.state:
        case MemberState.STABLE if member.epoch == target_epoch:
            return _without_unsubscribed(member, subscribed, owned) if subscription_changed else member
        case MemberState.UNREVOKED_PARTITIONS if _still_owns(member.revoking, owned):
            return _without_unsubscribed(member, subscribed, owned) if subscription_changed else member
        case _:
            return _towards(member, target_epoch, target, subscribed, is_owned, owned)


def _still_owns(revoking: Assigned, owned: Owned) -> bool:
    """Whether the member has said that it owns any of these partitions, or nothing at all."""
    if owned is None:
        return True
    return any(index in revoking.get(topic_id, ()) for topic_id, indexes in owned.items() for index in indexes)


def _without_unsubscribed(member: ConsumerMember, subscribed: Collection[bytes], owned: Owned) -> ConsumerMember:
    """Take away topics that it no longer reads, before there is a new target."""
    dropped = {topic_id: indexes for topic_id, indexes in member.assigned.items() if topic_id not in subscribed}
    if not dropped:
        return member
    assigned = {topic_id: indexes for topic_id, indexes in member.assigned.items() if topic_id not in dropped}
    revoking = {**member.revoking, **{t: {**member.revoking.get(t, {}), **dropped[t]} for t in dropped}}
    if _still_owns(revoking, owned):
        return member.moved_to(member.epoch, MemberState.UNREVOKED_PARTITIONS, assigned, revoking)
    return member.moved_to(member.epoch, member.state, assigned, member.revoking)


def _towards(
    member: ConsumerMember,
    target_epoch: int,
    target: Target,
    subscribed: Collection[bytes],
    is_owned: Callable[[bytes, int], bool],
    owned: Owned,
) -> ConsumerMember:
    assigned: dict[bytes, dict[int, int]] = {}
    revoking: dict[bytes, dict[int, int]] = {}
    gained: dict[bytes, list[int]] = {}
    waits = False
    for topic_id in dict.fromkeys([*target, *member.assigned]):
        wanted = target.get(topic_id, frozenset()) if topic_id in subscribed else frozenset()
        had = member.assigned.get(topic_id, {})
        kept = {index: epoch for index, epoch in had.items() if index in wanted}
        lost = {index: epoch for index, epoch in had.items() if index not in wanted}
        if kept:
            assigned[topic_id] = kept
        if lost:
            revoking[topic_id] = lost
        for index in sorted(wanted.difference(had)):
            # What it was letting go of itself is free for it.
            if is_owned(topic_id, index) and index not in member.revoking.get(topic_id, ()):
                waits = True
            else:
                gained.setdefault(topic_id, []).append(index)
    if revoking and _still_owns(revoking, owned):
        return member.moved_to(member.epoch, MemberState.UNREVOKED_PARTITIONS, assigned, revoking)
    for topic_id, indexes in gained.items():
        assigned.setdefault(topic_id, {}).update(dict.fromkeys(indexes, target_epoch))
    state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
    return member.moved_to(target_epoch, state, assigned, {})
