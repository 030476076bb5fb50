"""Members "a" to "o" and topics 0 to 15 are in the same order here and in Java's hash tables."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.broker.group.assignors.spec import GroupSpec, PartitionAssignorError, SubscriptionType
from barnabas.broker.group.assignors.uniform import assign
from tests.broker.group.assignors.groups import RandomGroup, group, member, outcome, rounds, sizes, topics, written
from tests.support.effort import examples

RANDOM = st.integers(0, 2**32).map(Random)


def test_members_that_own_nothing_get_equal_shares_and_the_last_have_one_more() -> None:
    spec = group(a=member(0, 1), b=member(0, 1), c=member(0, 1))
    assert written(assign(spec, topics(3, 4))) == {
        "a": {0: (0, 1)},
        "b": {0: (2,), 1: (0,)},
        "c": {1: (1, 2, 3)},
    }


def test_a_newcomer_gets_what_the_others_have_too_much() -> None:
    spec = group(a=member(0, owned={0: {0, 1, 2}}), b=member(0, owned={0: {3, 4, 5}}), c=member(0))
    assert written(assign(spec, topics(6))) == {"a": {0: (0, 1)}, "b": {0: (3, 4)}, "c": {0: (2, 5)}}


def test_when_a_member_has_left_the_others_keep_theirs() -> None:
    spec = group(a=member(0, owned={0: {0, 1}}), c=member(0, owned={0: {4, 5}}))
    assert written(assign(spec, topics(6))) == {"a": {0: (0, 1, 2)}, "c": {0: (3, 4, 5)}}


def test_who_has_one_more_than_the_others_keeps_it() -> None:
    spec = group(a=member(0, owned={0: {0}}), b=member(0, owned={0: {1, 2}}))
    assert written(assign(spec, topics(3))) == {"a": {0: (0,)}, "b": {0: (1, 2)}}


def test_a_partition_that_is_added_goes_to_whom_it_makes_even() -> None:
    spec = group(a=member(0, owned={0: {0, 1}}), b=member(0, owned={0: {2}}))
    assert written(assign(spec, topics(4))) == {"a": {0: (0, 1)}, "b": {0: (2, 3)}}


def test_a_topic_that_nobody_subscribes_to_any_more_is_let_go() -> None:
    spec = group(a=member(1, owned={0: {0, 1}, 1: {0}}), b=member(1, owned={0: {2}}))
    assert written(assign(spec, topics(3, 2))) == {"a": {1: (0,)}, "b": {1: (1,)}}


def test_more_members_than_partitions() -> None:
    spec = group(a=member(0), b=member(0), c=member(0, owned={0: {0}}))
    assert written(assign(spec, topics(1))) == {"a": {}, "b": {}, "c": {0: (0,)}}


def test_members_get_only_what_they_subscribe_to() -> None:
    spec = group(a=member(0), b=member(0, 1), c=member(1))
    assert written(assign(spec, topics(3, 3))) == {"a": {0: (0, 2)}, "b": {0: (1,), 1: (2,)}, "c": {1: (0, 1)}}


def test_partitions_move_to_a_member_that_has_begun_to_subscribe() -> None:
    spec = group(a=member(0, owned={0: {0, 1, 2, 3}}), b=member(0, 1), c=member(1, owned={1: {0, 1}}))
    assert written(assign(spec, topics(4, 2))) == {"a": {0: (0, 1)}, "b": {0: (2, 3)}, "c": {1: (0, 1)}}


def test_a_member_keeps_what_only_it_can_have() -> None:
    spec = group(a=member(0, owned={0: {0, 1, 2, 3, 4}}), b=member(1), c=member(1, owned={1: {0, 1}}))
    assert written(assign(spec, topics(5, 2))) == {"a": {0: (0, 1, 2, 3, 4)}, "b": {1: (1,)}, "c": {1: (0,)}}


def test_members_without_subscriptions_get_nothing() -> None:
    assert written(assign(group(a=member(owned={0: {0}}), b=member()), topics(1))) == {"a": {}, "b": {}}
    assert written(assign(group(a=member(0), b=member()), topics(1))) == {"a": {0: (0,)}, "b": {}}


def test_a_group_without_members() -> None:
    assert assign(GroupSpec({}, SubscriptionType.HOMOGENEOUS), topics(1)) == {}


@pytest.mark.parametrize("other", [member(0, 1), member(0)])
def test_a_topic_that_does_not_exist_is_refused(other) -> None:
    missing = "subscribed to topic AAAAAAAAAAAAAAAAAAAAAQ which doesn't exist"
    with pytest.raises(PartitionAssignorError, match=missing):
        assign(group(a=member(0, 1), b=other), topics(1))


@given(RANDOM)
@settings(max_examples=examples(100), deadline=None)
def test_every_partition_goes_to_one_member_that_subscribes_to_it(random: Random) -> None:
    for each in rounds(random, 4):
        if isinstance(each.result, PartitionAssignorError):
            continue
        assert each.result.keys() == each.spec.members.keys()
        given_away = Counter(
            (topic_id, partition)
            for by_topic in each.result.values()
            for topic_id, partitions in by_topic.items()
            for partition in partitions
        )
        subscribed = {id for member in each.spec.members.values() for id in member.topic_ids}
        assert given_away == {(id, partition): 1 for id in subscribed for partition in range(each.topics[id].count)}
        for member_id, by_topic in each.result.items():
            assert by_topic.keys() <= each.spec.members[member_id].topic_ids


@given(RANDOM)
@settings(max_examples=examples(100), deadline=None)
def test_a_homogeneous_group_is_even_and_nobody_loses_more_than_that_takes(random: Random) -> None:
    for each in rounds(random, 4):
        result, members = each.result, each.spec.members
        if each.assignor != "uniform" or each.spec.subscription_type is SubscriptionType.HETEROGENEOUS:
            continue
        if isinstance(result, PartitionAssignorError):
            continue
        counts = sizes(result).values()
        assert max(counts) - min(counts) <= 1
        kept = sum(
            len(owned.intersection(result[member_id].get(id, ())))
            for member_id, member in members.items()
            for id, owned in member.owned.items()
        )
        quota, extras = divmod(sum(counts), len(members))
        owned = [sum(len(member.owned.get(id, ())) for id in member.topic_ids) for member in members.values()]
        assert kept == sum(min(size, quota) for size in owned) + min(extras, sum(size > quota for size in owned))


@given(RANDOM)
@settings(max_examples=examples(50), deadline=None)
def test_a_homogeneous_group_that_has_not_changed_stays_as_it_is(random: Random) -> None:
    made_up = RandomGroup(random, SubscriptionType.HOMOGENEOUS)
    result = assign(made_up.spec(), made_up.topics)
    made_up.adopt(result)
    assert assign(made_up.spec(), made_up.topics) == result


@given(RANDOM)
@settings(max_examples=examples(50), deadline=None)
def test_who_keeps_everything_in_a_homogeneous_group_has_the_very_same(random: Random) -> None:
    """So that a thousand members need not be compared when one more joins."""
    made_up = RandomGroup(random, SubscriptionType.HOMOGENEOUS)
    made_up.adopt(assign(made_up.spec(), made_up.topics))
    made_up.change()
    spec = made_up.spec()
    result = assign(spec, made_up.topics)
    if any(each.topic_ids for each in spec.members.values()):
        for member_id, by_topic in result.items():
            owned = spec.members[member_id].owned
            assert by_topic is owned or by_topic != owned


@pytest.mark.parametrize("seed", range(20))
def test_in_a_heterogeneous_group_no_partition_has_a_better_place(seed: int) -> None:
    made_up = RandomGroup(Random(seed), SubscriptionType.HETEROGENEOUS)
    for _ in range(3):
        result = assign(made_up.spec(), made_up.topics)
        counts = sizes(result)
        for owner, by_topic in result.items():
            for topic_id in by_topic:
                for other, spec in made_up.spec().members.items():
                    assert topic_id not in spec.topic_ids or counts[owner] - counts[other] <= 1
        made_up.adopt(result)
        made_up.change()


@given(RANDOM)
@settings(max_examples=examples(50), deadline=None)
def test_the_order_of_topics_and_subscriptions_does_not_matter(random: Random) -> None:
    for each in rounds(random, 3):
        reversed_topics = dict(reversed(each.topics.items()))
        again = outcome(each.assignor, each.spec, reversed_topics)
        assert again == each.result or str(again) == str(each.result)
