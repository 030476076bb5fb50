"""Groups that are described, listed and deleted."""

import pytest

from barnabas.client.requests import groups
from barnabas.protocol.api import ApiKey
from tests.integration.groups.stories import Stories, play

pytestmark = pytest.mark.java

story = Stories()


@story(range(7))
def groups_are_described(side):
    side.stable("A")
    for operations in (False, True)[: 1 + (side.level >= 3)]:
        yield side.describe(side.group, "unknown", side.group, operations=operations)
    answer = side.describe("unknown")
    yield answer.groups[0].error_message
    answer = side.describe(side.group)
    yield answer.groups[0].error_message


@story(range(6))
def groups_are_listed(side):
    t = side.topic()
    side.stable("A")
    name = side.group
    for kind in ("simple", "connect", "empty"):
        side.group = f"{name}-{kind}"
        if kind == "simple":
            side.commit((t, 0, 5))
        elif kind == "connect":
            side.stable("B", protocol_type="connect")
        else:
            side.stable("C")
            side.leave("C")
    side.group = name
    yield side.listed()
    if side.level >= 4:
        for states in (["Stable"], ["stable"], ["Empty", "STABLE"], ["nonsense"], [""], ["Dead"], ["Assigning"]):
            yield side.listed(states)
    if side.level >= 5:
        for types in (["classic"], ["Classic"], ["consumer"], ["share"], ["nonsense"], ["classic", "nonsense"], [""]):
            yield side.listed(types=types)
        yield side.listed(["Stable"], ["classic"])


@story(range(3))
def groups_are_deleted(side):
    t = side.topic()
    side.stable("A")
    yield side.delete()
    yield side.delete(side.group, "unknown", side.group, "")
    yield side.leave("A")
    yield side.commit((t, 0, 1))
    yield side.delete()
    yield side.describe()
    yield side.delete()
    yield side.delete("unknown", "unknown")
    yield side.of(ApiKey.DELETE_GROUPS, groups.delete_groups())


@story(range(3))
def a_group_is_deleted_while_it_rebalances(side):
    side.stable("A")
    side.enter("B")
    side.rebalancing("A", 1)
    yield side.delete()
    side.send_join("A")
    yield side.joined("A")
    yield side.delete()
    yield side.joined("B")


@pytest.mark.parametrize(("tell", "level"), story.all)
def test_both_tell_the_same_story(brokers, tell, level):
    play(brokers, tell, level)
