"""broker.replica.truncation: where a follower truncates its log. Logs are drawn as the epochs of their records."""

import pytest

from barnabas.broker.replica.truncation import truncation_offset
from barnabas.storage.checkpoints import EpochEntry
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.leader_epochs import LeaderEpochs


def epochs_of(log):
    """A letter per record, its epoch: "0011" has two records of epoch 0 and two of epoch 1."""
    entries = [EpochEntry(int(epoch), log.index(epoch)) for epoch in sorted(set(log))]
    return LeaderEpochs("", FileSystem(), entries)


def cut(follower, leader):
    """What is left of the follower's log after it has asked the leader as often as the two diverge."""
    while follower:
        last_epoch = int(follower[-1])
        end = epochs_of(leader).end_offset_for(last_epoch, len(leader))
        if end.epoch == last_epoch and end.start_offset >= len(follower):
            break
        follower = follower[: truncation_offset(epochs_of(follower), len(follower), end.epoch, end.start_offset)]
    return follower


@pytest.mark.parametrize(
    ("follower", "leader", "left"),
    [
        ("000", "000", "000"),
        ("000", "00011", "000"),
        ("0001", "00022", "000"),
        ("00011", "000122", "0001"),
        # The leader never had epoch 1, and has less of epoch 0.
        ("000111", "0022", "00"),
        # Two quick changes of leaders: the epoch that the follower was in last is unknown to the new leader.
        ("0001133", "00011222", "00011"),
        ("00112", "00133", "001"),
        ("222", "333", ""),
        ("11", "0022", ""),
    ],
)
def test_the_logs_agree_afterwards_and_nothing_that_agreed_is_truncated(follower, leader, left):
    assert cut(follower, leader) == left
    assert leader.startswith(left)
