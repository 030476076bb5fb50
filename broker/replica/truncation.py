"""Where a follower truncates its log when its leader says that the two diverge.

Never at the high watermark: a follower's may be behind what was committed, and truncating there loses records
(KIP-101). The leader names its largest epoch up to the follower's last one, and where that epoch ends. A follower that
does not know this epoch truncates at the end of its own largest epoch below it and asks again: after two quick changes
of leaders the logs may diverge more than once (KIP-279).
"""

from __future__ import annotations

from barnabas.storage.leader_epochs import NO_EPOCH, LeaderEpochs


def truncation_offset(epochs: LeaderEpochs, log_end_offset: int, leader_epoch: int, leader_end_offset: int) -> int:
    """The offset to truncate at, given the leader's epoch and its end. What is left may still diverge further down."""
    own = epochs.end_offset_for(leader_epoch, log_end_offset)
    if own.epoch == NO_EPOCH:
        return min(leader_end_offset, log_end_offset)
    if own.epoch != leader_epoch:
        return min(own.start_offset, log_end_offset)
    return min(own.start_offset, leader_end_offset, log_end_offset)
