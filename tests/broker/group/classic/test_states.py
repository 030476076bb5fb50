import pytest

from barnabas.broker.group.classic.group import Group
from barnabas.broker.group.classic.states import GroupState, may_follow

# Kafka's own table: for each state, those that it may be reached from.
REACHED_FROM = {
    "Empty": {"PreparingRebalance"},
    "PreparingRebalance": {"Empty", "CompletingRebalance", "Stable"},
    "CompletingRebalance": {"PreparingRebalance"},
    "Stable": {"CompletingRebalance"},
    "Dead": {"Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"},
}


@pytest.mark.parametrize("after", GroupState)
@pytest.mark.parametrize("before", GroupState)
def test_which_state_may_follow_which(before, after):
    assert may_follow(after, before) == (before.value in REACHED_FROM[after.value])


def test_a_transition_that_is_not_in_the_table_is_refused():
    with pytest.raises(ValueError, match="cannot go from Empty to Stable"):
        Group("g", 0).transition_to(GroupState.STABLE, 0)
