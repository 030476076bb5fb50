"""Which replica a consumer should read from."""

import pytest

from barnabas.broker.replica.replica_selector import RACK_AWARE, ReplicaView, rack_aware, selector

LEADER = ReplicaView(10, 0, 1, "north")
BEHIND = ReplicaView(8, 100, 2, "south")
AHEAD = ReplicaView(9, 50, 3, "south")
FRESH = ReplicaView(9, 60, 4, "south")
NO_RACK = ReplicaView(10, 90, 5, None)


@pytest.mark.parametrize(
    ("rack", "followers", "selected"),
    [
        ("south", [BEHIND, AHEAD], AHEAD),
        ("south", [AHEAD, FRESH, BEHIND], FRESH),
        ("north", [BEHIND, AHEAD], LEADER),
        ("west", [BEHIND, AHEAD, NO_RACK], LEADER),
        ("", [NO_RACK], LEADER),
        ("south", [], LEADER),
    ],
)
def test_one_in_the_clients_rack_that_is_furthest_ahead(rack, followers, selected):
    assert rack_aware(rack, LEADER, followers) is selected


def test_without_a_selector_consumers_read_from_the_leader():
    assert selector(RACK_AWARE) is rack_aware
    assert selector(None) is None
