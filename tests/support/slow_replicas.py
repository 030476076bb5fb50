"""A slow follower: what is appended is written, and committed when a test says so, or never."""

from __future__ import annotations

from typing import Final

_ELSEWHERE: Final = 99  # the id of the follower


class SlowReplicas:
    """Partitions that this broker leads; `commit` and `lose` release those who wait."""

    def __init__(self, *partitions):
        for partition in partitions:
            self._lead(partition, partition.leader_epoch)

    def _lead(self, partition, leader_epoch):
        both = (partition._host.broker_id, _ELSEWHERE)
        partition.lead(leader_epoch, 1, both, both)

    def commit(self, partition):
        """The follower fetches from the end of the log: it has everything."""
        end_offset, now_ms = partition.log.end_offset, partition.clock.now_ms()
        partition.leadership.followers[_ELSEWHERE].fetched(end_offset, 0, end_offset, -1, now_ms)
        partition.advance()

    def lose(self, partition, *listeners, told_first=True):
        """The follower leads. Those who wait for a commit are told before or after the coordinators."""
        for first in (True, False):
            if first == told_first:
                partition.follow(_ELSEWHERE, partition.leader_epoch + 1)
            else:
                for listener in listeners:
                    listener.on_not_leader(partition)

    def lead_again(self, partition, *listeners):
        self._lead(partition, partition.leader_epoch + 1)
        self.commit(partition)
        for listener in listeners:
            listener.on_leader(partition)
