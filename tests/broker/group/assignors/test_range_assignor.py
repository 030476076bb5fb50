from __future__ import annotations

import pytest

from barnabas.broker.group.assignors.range_assignor import assign
from barnabas.broker.group.assignors.spec import GroupSpec, PartitionAssignorError, SubscriptionType
from tests.broker.group.assignors.groups import group, member, topics, written


def test_each_topic_is_divided_into_ranges_alike() -> None:
    spec = group(b=member(0, 1), a=member(0, 1), c=member(0, 1))
    assert written(assign(spec, topics(4, 4))) == {
        "a": {0: (0, 1), 1: (0, 1)},
        "b": {0: (2,), 1: (2,)},
        "c": {0: (3,), 1: (3,)},
    }


def test_static_members_come_first_by_their_instance_ids() -> None:
    spec = group(a=member(0), b=member(0, instance="2"), c=member(0, instance="1"))
    assert written(assign(spec, topics(3))) == {"c": {0: (0,)}, "b": {0: (1,)}, "a": {0: (2,)}}


def test_ids_are_compared_by_their_utf_16_units() -> None:
    # U+1D11E begins with the unit D834, which is less than FF21.
    spec = GroupSpec({"\uff21": member(0), "\U0001d11e": member(0)}, SubscriptionType.HOMOGENEOUS)
    assert written(assign(spec, topics(2))) == {"\U0001d11e": {0: (0,)}, "\uff21": {0: (1,)}}


def test_what_members_own_does_not_matter() -> None:
    spec = group(a=member(0, owned={0: {1}}), b=member(0, owned={0: {0}}))
    assert written(assign(spec, topics(2))) == {"a": {0: (0,)}, "b": {0: (1,)}}


def test_a_topic_is_divided_among_its_subscribers() -> None:
    spec = group(a=member(0), b=member(0, 1), c=member(1), d=member())
    assert written(assign(spec, topics(3, 1))) == {"a": {0: (0, 1)}, "b": {0: (2,), 1: (0,)}, "c": {}, "d": {}}


def test_a_group_without_members() -> None:
    assert assign(GroupSpec({}, SubscriptionType.HOMOGENEOUS), topics(1)) == {}


def test_a_topic_that_does_not_exist_is_refused() -> None:
    with pytest.raises(PartitionAssignorError, match="Member is subscribed to a non-existent topic"):
        assign(group(a=member(0, 1)), topics(1))
