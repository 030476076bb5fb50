"""broker.controller.leader_selection: who leads next."""

from barnabas.broker.controller.images import NO_LEADER, PartitionImage
from barnabas.broker.controller.leader_selection import (
    for_reassignment,
    for_shutdown,
    preferred,
    without_dead_replicas,
    without_failed_replicas,
)


def partition(leader=1, isr=(1, 2, 3), replicas=(1, 2, 3), epoch=7):
    return PartitionImage(0, replicas, leader, epoch, isr)


def outcome(image):
    return image and (image.leader_id, image.leader_epoch, image.isr_nodes)


def test_nothing_changes_while_everybody_lives():
    assert without_dead_replicas(partition(), {1, 2, 3}, unclean=False) is None


def test_a_dead_leader_is_followed_by_the_next_replica_in_sync():
    assert outcome(without_dead_replicas(partition(), {2, 3}, unclean=False)) == (2, 8, (2, 3))
    assert outcome(without_dead_replicas(partition(isr=(1, 3)), {2, 3}, unclean=False)) == (3, 8, (3,))


def test_a_dead_follower_leaves_the_isr_and_the_leader_stays():
    assert outcome(without_dead_replicas(partition(), {1, 3}, unclean=False)) == (1, 8, (1, 3))


def test_the_last_in_sync_stays_in_the_isr_when_it_dies():
    assert outcome(without_dead_replicas(partition(isr=(1,)), {2, 3}, unclean=False)) == (NO_LEADER, 8, (1,))


def test_all_of_the_isr_stay_in_it_when_all_of_them_die():
    assert outcome(without_dead_replicas(partition(isr=(1, 2)), {3}, unclean=False)) == (NO_LEADER, 8, (1, 2))


def test_a_partition_without_a_leader_stays_so_until_one_of_its_isr_is_back():
    waiting = partition(leader=NO_LEADER, isr=(1,))
    assert without_dead_replicas(waiting, {2, 3}, unclean=False) is None
    assert outcome(without_dead_replicas(waiting, {1, 2, 3}, unclean=False)) == (1, 8, (1,))


def test_an_unclean_election_takes_any_live_replica():
    assert outcome(without_dead_replicas(partition(isr=(1,)), {3}, unclean=True)) == (3, 8, (3,))
    assert outcome(without_dead_replicas(partition(isr=(1, 2)), {2, 3}, unclean=True)) == (2, 8, (2,))
    assert outcome(without_dead_replicas(partition(isr=(1,)), set(), unclean=True)) == (NO_LEADER, 8, (1,))


def test_a_replica_that_is_stopping_does_not_take_over():
    died = without_dead_replicas(partition(), {2, 3}, unclean=False, shutting_down={2})
    assert outcome(died) == (3, 8, (2, 3))


def test_the_preferred_leader_is_the_first_replica_if_it_is_in_sync():
    assert outcome(preferred(partition(leader=2), {1, 2, 3})) == (1, 8, (1, 2, 3))
    assert preferred(partition(leader=2, isr=(2, 3)), {1, 2, 3}) is None
    assert preferred(partition(leader=2), {2, 3}) is None


def test_a_reassigned_partition_is_led_by_one_of_its_new_replicas():
    moving = partition(replicas=(4, 5, 1, 2), isr=(1, 2, 5))
    assert outcome(for_reassignment(moving, (4, 5), {1, 2, 4, 5})) == (5, 8, (1, 2, 5))
    assert for_reassignment(moving, (4,), {1, 2, 4, 5}) is None


def test_a_leader_that_stops_hands_over():
    assert outcome(for_shutdown(partition(), 1, {1, 2, 3}, {1})) == (2, 8, (2, 3))
    assert outcome(for_shutdown(partition(), 1, {1, 2, 3}, {1, 2})) == (3, 8, (3,))


def test_a_leader_that_cannot_be_replaced_stays():
    assert for_shutdown(partition(isr=(1,)), 1, {1, 2, 3}, {1}) is None


def test_a_follower_that_stops_leaves_the_isr():
    assert outcome(for_shutdown(partition(), 3, {1, 2, 3}, {3})) == (1, 8, (1, 2))
    assert for_shutdown(partition(isr=(1, 2)), 3, {1, 2, 3}, {3}) is None


def test_the_last_in_sync_stays_in_the_isr_though_it_stops():
    """It lost its registration meanwhile: it leads no more, and no longer counts as one that is shutting down."""
    assert for_shutdown(partition(leader=-1, isr=(3,)), 3, {1, 2}, ()) is None
    assert for_shutdown(partition(leader=-1, isr=(3,)), 3, {1, 2}, {3}) is None


def test_a_leader_whose_disk_fails_is_replaced():
    assert outcome(without_failed_replicas(partition(), [1], {1, 2, 3}, ())) == (2, 8, (2, 3))
    assert outcome(without_failed_replicas(partition(), [1], {1, 2, 3}, {2})) == (3, 8, (2, 3))
    assert outcome(without_failed_replicas(partition(), [1, 2], {1, 2, 3}, ())) == (3, 8, (3,))


def test_a_leader_whose_disk_fails_stays_if_nobody_else_is_in_sync_and_alive():
    assert without_failed_replicas(partition(isr=(1,)), [1], {1, 2, 3}, ()) is None
    assert without_failed_replicas(partition(isr=(1, 2)), [1], {1, 3}, ()) is None
    assert without_failed_replicas(partition(), [1, 2, 3], {1, 2, 3}, ()) is None


def test_a_follower_whose_disk_fails_leaves_the_isr():
    assert outcome(without_failed_replicas(partition(), [3], {1, 2, 3}, ())) == (1, 8, (1, 2))
    assert without_failed_replicas(partition(isr=(1, 2)), [3], {1, 2, 3}, ()) is None
    assert without_failed_replicas(partition(leader=NO_LEADER), [3], {2, 3}, ()) is None
