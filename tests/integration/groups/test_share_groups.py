"""Share groups, told by their members' heartbeats and their administrators' requests."""

import random

import pytest

from tests.integration.groups.stories import Stories, play

pytestmark = pytest.mark.java

story = Stories()
BOTH = range(2)  # versions of DescribeShareGroupOffsets; the others have one
ONE = range(1, 2)


@story(ONE)
def one_member(side):
    side.shared_topic()
    yield side.share("A", 0, ["t"])
    side.initialized(t=3)
    yield side.described_shares(operations=True)
    yield side.share("A", 2)
    yield side.described_shares()
    yield side.share("A", 3)
    yield side.share("A", 3, ["t"])
    yield side.listed()
    yield side.listed(types=["share"], states=["stable"])
    yield side.listed(types=["consumer"])
    yield side.describe()
    yield side.described()
    yield side.delete()
    yield side.share("A", -1)
    yield side.described_shares()
    yield side.listed(states=["Empty"])
    yield side.share("A", -1)
    yield side.share("A", 3)
    yield side.delete()
    yield side.described_shares()
    yield side.delete()


@story(ONE)
def members_share_partitions(side):
    side.shared_topic()
    yield side.share("A", 0, ["t"])
    side.initialized(t=3)
    yield side.settled(("A", 2))
    yield side.share("B", 0, ["t"])
    yield side.settled(("A", 3), ("B", 4))
    yield side.share("C", 0, ["t"])
    yield side.settled(("A", 4), ("B", 4), ("C", 5))
    yield side.described_shares()
    yield side.share("D", 0, ["t"])
    yield side.share("B", -1)
    yield side.settled(("A", 5), ("C", 5))
    yield side.share("D", 0, ["t"])
    yield side.described_shares()


@story(ONE)
def epochs(side):
    side.shared_topic()
    yield side.share("A", 0, ["t"])
    side.initialized(t=3)
    for epoch in (1, 0, 3, 2, 1, 4, 3, 2, 3, -1):
        yield side.share("A", epoch)
    yield side.share("A", 0, ["t"])
    yield side.share("A", 0, ["t"])
    yield side.share("A", 0)
    yield side.described_shares()


@story(ONE)
def subscriptions_change(side):
    side.shared_topic()
    side.shared_topic("two", 2)
    yield side.share("A", 0, ["t"])
    side.initialized(t=3)
    yield side.share("A", 2, ["t", "two"])
    side.initialized(t=3, two=2)
    yield side.share("A", 3)
    yield side.share("A", 4)
    yield side.share("A", 4, ["two"])
    yield side.share("A", 5, [])
    yield side.share("A", 6, ["nothing", "two"])
    yield side.share("B", 0, ["t"])
    yield side.share("B", 8)
    yield side.share("A", 7)
    yield side.share("A", 8, ["t"], rack_id="r", group=side.group)
    yield side.described_shares()
    yield side.share_offsets()


@story(ONE)
def topics_come_and_go(side):
    yield side.share("A", 0, ["gone"])
    yield side.share("A", 2)
    yield side.described_shares()


@story(ONE)
def bad_requests(side):
    side.shared_topic()
    yield side.share("A", 0)
    yield side.share("A", 0, [])
    yield side.share("A", -2, ["t"])
    yield side.share("A", 1, ["t"])
    yield side.share("A", -1)
    yield side.share("", 0, ["t"])
    yield side.share(" ", 0, ["t"])
    yield side.share("a" * 36, 0, ["t"])
    yield side.share("a" * 37, 0, ["t"])
    yield side.share("A", 0, ["t"], rack_id="")
    yield side.share("A", 0, ["t"], group="")
    yield side.share("B", 5)
    yield side.described_shares("", "nobody", side.group)


@story(ONE)
def other_kinds(side):
    """The protocols of the other kinds, spoken to a share group, and the other way round."""
    side.shared_topic()
    side.assignable()
    yield side.share("A", 0, ["t"])
    yield side.beat("B", 0, topics=["t"])
    yield side.join("C")
    side.ids["A"] = "A"
    yield side.heartbeat("A", 2)
    yield side.sync("A", 2)
    yield side.leave("A")
    yield side.commit(("t", 0, 5))
    yield side.fetch_groups({side.group: [("t", [0])]})
    yield side.delete_offsets(("t", 0))
    yield side.share("A", -1)
    yield side.beat("B", 0, topics=["t"])
    yield side.join("C")
    yield side.commit(("t", 0, 5))
    yield side.described_shares()
    group = side.group
    side.group = f"{group}-consumer"
    yield side.beat("B", 0, topics=["t"])
    yield side.share("A", 0, ["t"])
    yield side.share("A", 1)
    yield side.described_shares()
    yield side.beat("B", -1)
    yield side.share("A", 0, ["t"])
    yield side.alter_share_offsets(("t", 0, 5))
    yield side.delete_share_offsets("t")
    yield side.share_offsets()
    side.group = f"{group}-offsets"
    yield side.commit(("t", 0, 5))
    yield side.share("A", 0, ["t"])
    yield side.described_shares()


@story(BOTH)
def offsets(side):
    side.shared_topic()
    yield side.share_offsets()
    yield side.share_offsets({"t": [0], "nothing": [0]})
    yield side.share_offsets({})
    yield side.share("A", 0, ["t"])
    side.initialized(t=3)
    yield side.share_offsets()
    yield side.share_offsets({"t": [0, 1]})
    yield side.alter_share_offsets(("t", 0, 5))
    yield side.delete_share_offsets("t")
    yield side.share("A", -1)
    yield side.alter_share_offsets(("t", 0, 0), ("t", 7, 1), ("nothing", 0, 1))
    yield side.share_offsets({"t": [0, 1]})
    yield side.delete_share_offsets("t", "nothing")
    yield side.share_offsets()
    yield side.delete_share_offsets("t")
    yield side.alter_share_offsets(("t", 1, 0))
    yield side.share_offsets()
    yield side.share("A", 0, ["t"])
    side.initialized(t=3)
    yield side.settled(("A", 0))
    yield side.share("A", -1)
    yield side.delete()
    yield side.share_offsets()
    yield side.delete_share_offsets("t")


@story(ONE)
def offsets_of_a_group_that_is_not_there(side):
    side.shared_topic()
    yield side.delete_share_offsets("t")
    yield side.delete_share_offsets("t", group="")
    yield side.alter_share_offsets(("t", 0, 0), group="")
    yield side.alter_share_offsets(("t", 0, 0))
    yield side.described_shares()
    yield side.listed()
    yield side.share_offsets()
    yield side.share("A", 0, ["t"])
    side.initialized(t=3)
    yield side.share("A", 2)
    yield side.share_offsets()


@pytest.mark.parametrize(("tell", "level"), story.all)
def test_share_group(brokers, tell, level):
    play(brokers, tell, level)


@pytest.mark.parametrize("seed", range(6))
def test_any_story(brokers, seed):
    """Members that come, go, change their minds and lie about their epochs; made up, and the same on both sides."""

    def any_story(side):
        side.shared_topic()
        side.shared_topic("two", 2)
        side.share("first", 0, ["t", "two"])
        side.initialized(t=3, two=2)
        side.share("first", -1)
        dice = random.Random(seed)
        epochs = {}
        for _ in range(40):
            who = dice.choice("ABCD")
            what = dice.choice(["join", "beat", "beat", "beat", "beat", "subscribe", "lie", "leave", "look", "admin"])
            topics = dice.choice([["t"], ["two"], ["t", "two"], ["t", "nothing"]])
            epoch = dice.randint(-3, 12)
            if what == "join" or (what == "beat" and who not in epochs):
                answer = side.share(who, 0, topics)
            elif what == "beat":
                answer = side.share(who, epochs[who])
            elif what == "subscribe":
                answer = side.share(who, epochs.get(who, 1), topics)
            elif what == "lie":
                answer = side.share(who, epoch)
            elif what == "leave":
                answer = side.share(who, -1)
            elif what == "look":
                yield side.described_shares()
                yield side.share_offsets()
                continue
            else:
                yield side.alter_share_offsets(("t", epoch % 3, abs(epoch)))
                continue
            yield answer
            if answer.member_epoch > 0:
                epochs[who] = answer.member_epoch
            elif answer.member_epoch < 0:
                epochs.pop(who, None)
        yield side.described_shares()

    any_story.__name__ = f"any-share-{seed}"
    play(brokers, any_story, 1)
