"""Patterns are looked up some topics at a time."""

from tests.broker.group.consumer.harness import group_of
from tests.broker.group.harness import GROUP, topic_id


def lookups_of(group, monkeypatch, looked_at):
    """How many names had been looked at whenever a step of a look-up was left for later."""
    timers, steps = group.coordinator.timers, []
    schedule = timers.schedule

    def noting(key, delay_ms, callback):
        if key == (GROUP, "regex", ""):
            steps.append(len(looked_at))
        schedule(key, delay_ms, callback)

    monkeypatch.setattr(timers, "schedule", noting)
    return steps


def test_others_are_served_between_a_hundred_names_and_the_next(monkeypatch):
    group = group_of(*((f"t{number}", 1) for number in range(250)))
    looked_at = []
    steps = lookups_of(group, monkeypatch, looked_at)
    group.join("a", subscribed_topic_regex="t.*", may_describe=lambda name: looked_at.append(name) or True)
    group.advance(0)
    assert (steps, len(looked_at)) == ([0, 100, 200], 250)
    group.beat("a", owned={})
    assert len(group.owned["a"]) == 250


def test_a_pattern_that_nobody_has_any_more_is_not_noted():
    group = group_of(*((f"t{number}", 1) for number in range(250)))
    looked_at = []

    def may_describe(name):
        looked_at.append(name)
        if len(looked_at) == 150:
            group.leave("a")
        return True

    group.join("a", subscribed_topic_regex="t.*", may_describe=may_describe)
    group.advance(0)
    assert len(looked_at) == 250
    assert group.group.regexes == group.reloaded().group.regexes == {}


def test_a_topic_that_is_created_meanwhile_is_found_by_the_next_look():
    group = group_of(*((f"t{number}", 1) for number in range(250)))
    looked_at = []

    def may_describe(name):
        looked_at.append(name)
        if len(looked_at) == 150:
            group.coordinator.topics.create("tx", 1)
            group.coordinator.shard.consumers.topics_changed({"tx"}, are_new=True)
        return True

    group.join("a", subscribed_topic_regex="t.*", may_describe=may_describe)
    group.advance(10_001)
    group.beat("a", owned={})
    group.beat("a", owned=group.owned["a"])
    group.advance(0)
    group.beat("a", owned=group.owned["a"])
    assert topic_id("tx") in group.group.target["a"]
