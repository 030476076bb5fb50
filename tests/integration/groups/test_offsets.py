"""Offsets that are committed, fetched and deleted, by members and by others."""

import pytest

from barnabas.client.requests.groups import subscription
from tests.integration.groups.stories import Stories, play
from tests.support.group_versions import STATIC_MEMBERS

pytestmark = pytest.mark.java

story = Stories()


@story()
def a_consumer_without_a_group_commits(side):
    t = side.topic()
    yield side.fetch((t, [0, 1]))
    yield side.commit((t, 0, 5), (t, 1, 7), metadata="words", leader_epoch=3)
    yield side.commit((t, 2, 0), metadata=None)
    yield side.fetch((t, [0, 1, 2]))
    if side.level >= 2:
        yield side.fetch()
    yield side.describe()
    yield side.listed()
    yield side.commit((t, 0, -1), (t, 1, -5), leader_epoch=-5)
    yield side.fetch((t, [0, 1, 2]))
    yield side.delete()
    yield side.fetch((t, [0, 1, 2]))


@story()
def offsets_that_are_refused(side):
    t, unknown = side.topic(), side.unknown_topic()
    yield side.commit((unknown, 0, 5))
    yield side.commit((t, 0, 5), (t, 3, 5), (t, -1, 5), (unknown, 0, 5))
    yield side.commit((t, 0, 6), metadata="w" * 101)
    yield side.commit((t, 0, 6), (t, 3, 6), metadata="w" * 101)
    yield side.commit((t, 1, 6), metadata="\N{EURO SIGN}" * 50)
    yield side.commit((t, 2, 6), metadata="w" * 100)
    yield side.commit()
    yield side.fetch((t, [0, 1, 2, 3, -1]), (unknown, [0]))
    yield side.commit((t, 0, 1), group="")
    yield side.fetch_groups({"": [(t, [0])]})
    yield side.describe("")
    yield side.delete("")


@story()
def members_commit(side):
    t, unknown = side.topic(), side.unknown_topic()
    yield side.commit((t, 0, 1), member="nobody", generation=0)
    yield side.commit((t, 0, 1), member="nobody")
    yield side.describe()
    side.stable("A")
    yield side.commit((t, 0, 2), who="A", generation=1)
    for fields in (
        {"who": "A", "generation": 0},
        {"who": "A", "generation": 2},
        {"who": "A", "generation": -1},
        {"member": "nobody", "generation": 1},
        {"member": "nobody", "generation": -1},
        {"member": "", "generation": 1},
        {},
        {"who": "A", "generation": 0, "metadata": "w" * 101},
    ):
        yield side.commit((t, 0, 3), (unknown, 0, 3), **fields)
        yield side.commit((unknown, 0, 3), **fields)
        yield side.commit(**fields)
    yield side.fetch((t, [0]))
    yield side.leave("A")
    yield side.commit((t, 0, 4), who="A", generation=1)
    yield side.commit((t, 0, 4), who="A", generation=2)
    yield side.commit((t, 0, 4), member="nobody")
    yield side.commit((t, 0, 5))
    yield side.fetch((t, [0]))


@story(STATIC_MEMBERS)
def static_members_commit(side):
    t = side.topic()
    yield side.commit((t, 0, 1), group_instance_id="a")
    side.stable("A", group_instance_id="a")
    for fields in (
        {"who": "A", "group_instance_id": "b", "generation": 1},
        {"who": "A", "group_instance_id": "a", "generation": -1},
        {"member": "", "group_instance_id": "a", "generation": -1},
        {"member": "nobody", "group_instance_id": "a", "generation": 1},
        {"who": "A", "generation": 1},
    ):
        yield side.commit((t, 0, 3), **fields)


@story()
def members_commit_during_a_rebalance(side):
    t = side.topic()
    side.stable("A", "B")
    side.send_join("A")
    side.rebalancing("B", 2)
    yield side.commit((t, 0, 1), who="B", generation=2)
    yield side.commit((t, 0, 1), generation=-1)
    side.send_join("B")
    yield side.joined("A")
    yield side.joined("B")
    yield side.commit((t, 0, 2), who="B", generation=3)
    yield side.commit((t, 0, 2), who="B", generation=2)
    yield side.fetch((t, [0]))


@story(range(2, 5))
def a_client_says_how_long_its_offsets_are_kept(side):
    t = side.topic()
    yield side.commit((t, 0, 1), retention_time_ms=3_600_000)
    yield side.commit((t, 1, 1), retention_time_ms=0)
    yield side.commit((t, 2, 1), retention_time_ms=-5)
    yield side.fetch((t, [0, 1, 2]))


@story(range(8, 11))
def offsets_of_several_groups(side):
    t = side.topic()
    side.commit((t, 0, 5))
    side.commit((t, 1, 6), group=f"{side.group}-2")
    groups = {side.group: [(t, [0, 1])], f"{side.group}-2": None, f"{side.group}-unknown": None, "": [(t, [0])]}
    yield side.fetch_groups(groups)
    yield side.fetch_groups({})
    yield side.fetch_groups({side.group: []})
    yield side.fetch_groups({f"{side.group}-unknown": [(t, [0]), (side.unknown_topic(), [0, 1])]})


@story(range(7, 11))
def offsets_that_must_be_stable(side):
    t = side.topic()
    side.commit((t, 0, 5))
    yield side.fetch((t, [0, 1]), require_stable=True)
    yield side.fetch(require_stable=True)


@story(range(1, 8))
def offsets_of_nothing(side):
    yield side.fetch_groups({side.group: []})
    if side.level >= 2:
        yield side.fetch()
    yield side.fetch(("unknown", [0]), ("unknown", [0, 0]))


@story()
def offsets_of_a_deleted_topic(side):
    name = f"doomed-{side.level}"
    t = side.topic(name)
    yield side.commit((t, 0, 5))
    side.delete_topic(name)
    yield side.commit((t, 0, 6))


@story(range(1))
def offsets_are_deleted(side):
    side.topic()
    yield side.delete_offsets(("t", 0))
    yield side.delete_offsets(("t", 0), group="")
    yield side.delete_offsets(("unknown", 0))
    side.commit(("t", 0, 5), ("t", 1, 6))
    yield side.delete_offsets(("t", 0), ("t", 2), ("t", 3), ("unknown", 0))
    yield side.fetch(("t", [0, 1]))
    yield side.delete_offsets(("t", 1))
    yield side.describe()
    yield side.listed()
    yield side.delete_offsets(("t", 1))
    yield side.delete()


@story(range(1))
def offsets_of_a_group_with_members_are_deleted(side):
    side.topic("t")
    side.topic("other")
    side.stable("A", protocols=(("range", subscription("t")),))
    side.commit(("t", 0, 5), ("other", 0, 6), who="A", generation=1)
    yield side.delete_offsets(("t", 0), ("t", 1), ("other", 0), ("other", 1), ("unknown", 0))
    yield side.fetch(("t", [0]), ("other", [0]))
    side.send_join("A", protocols=(("range", subscription("other")),))
    yield side.joined("A")
    yield side.delete_offsets(("t", 0), ("other", 0))
    yield side.delete_offsets()


@story(range(1))
def offsets_of_other_groups_with_members_are_deleted(side):
    side.topic("t")
    side.stable("A", protocol_type="connect")
    side.commit(("t", 0, 5), who="A", generation=1)
    yield side.delete_offsets(("t", 0))
    yield side.leave("A")
    yield side.delete_offsets(("t", 0))


@story(range(1))
def offsets_of_consumers_with_an_invalid_subscription_are_deleted(side):
    side.topic("t")
    side.stable("A", protocols=(("range", b"\0"),))
    side.commit(("t", 0, 5), who="A", generation=1)
    yield side.delete_offsets(("t", 0))


@pytest.mark.parametrize(("tell", "level"), story.all)
def test_both_tell_the_same_story(brokers, tell, level):
    play(brokers, tell, level)
