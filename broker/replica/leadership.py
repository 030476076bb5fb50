"""What a partition's leader knows about its followers, which determines the high watermark and the in-sync replicas.

Pure: offsets, epochs and times come in, decisions go out. Times are `elapsed_ms`: followers must not seem to lag, or to
keep up, because the wall clock jumps. One object is one leadership: it ends with its leader epoch.

- The high watermark is the smallest log end offset of the *maximal ISR*: the ISR that the controller has confirmed,
  together with the one that it was asked for. While a change is in flight, both may be the truth (KAFKA-12686,
  KAFKA-13091).
- A follower may join the ISR once it has everything below the high watermark and everything up to the start of this
  leader epoch: a high watermark from before may still be behind what was committed (KAFKA-7128).
- A follower leaves the ISR when it has not caught up for `replica.lag.time.max.ms`.
- One change of the ISR is in flight at a time. Its answer counts only in the leader epoch and after the partition
  epoch in which it was asked for (KAFKA-14617).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple

from barnabas.protocol.errors import ErrorCode

UNKNOWN_OFFSET: Final = -1
_LONG_AGO: Final = -(1 << 62)

# The controller may still carry it out, or has not considered it: ask again.
_TRANSIENT: Final = frozenset(
    {
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.STALE_BROKER_EPOCH,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
# The controller will not do it now, for a reason that may pass. The ISR stays as it was.
_REFUSED: Final = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})


class Follower:
    """How far a follower has come, as its fetches show."""

    __slots__ = ("broker_epoch", "caught_up_ms", "end_offset", "fetched_ms", "leader_end_offset", "log_start_offset")

    def __init__(self, caught_up_ms: int) -> None:
        self.end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.broker_epoch = -1
        self.caught_up_ms = caught_up_ms  # when it last had everything that the leader had at that time
        self.fetched_ms = _LONG_AGO  # when it last fetched, and where the leader's log ended then
        self.leader_end_offset = UNKNOWN_OFFSET

    def fetched(
        self, offset: int, log_start_offset: int, leader_end_offset: int, broker_epoch: int, now_ms: int
    ) -> None:
        """A fetch from `offset` says that it has everything below."""
        if offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif offset >= self.leader_end_offset:
            # It has what there was at its last fetch, so it was caught up then.
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.end_offset = offset
        self.log_start_offset = log_start_offset
        self.broker_epoch = broker_epoch
        self.fetched_ms = now_ms
        self.leader_end_offset = leader_end_offset

    def is_caught_up(self, leader_end_offset: int, now_ms: int, max_lag_ms: int) -> bool:
        return self.end_offset == leader_end_offset or now_ms - self.caught_up_ms <= max_lag_ms


class IsrChange(NamedTuple):
    """A change of the ISR that the controller is asked for."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]


class Leadership:
    __slots__ = (
        "_broker_id",
        "asked",
        "epoch_start_offset",
        "followers",
        "isr",
        "leader_epoch",
        "maximal_isr",
        "partition_epoch",
        "replicas",
    )

    def __init__(
        self,
        broker_id: int,
        leader_epoch: int,
        epoch_start_offset: int,
        partition_epoch: int,
        replicas: Collection[int],
        isr: Iterable[int],
        now_ms: int,
    ) -> None:
        """`epoch_start_offset` is where the log ended when this leader epoch started."""
        self._broker_id = broker_id
        self.leader_epoch = leader_epoch
        self.epoch_start_offset = epoch_start_offset
        self.partition_epoch = -1
        self.replicas: tuple[int, ...] = ()
        self.followers: dict[int, Follower] = {}
        self.isr: tuple[int, ...] = ()
        self.maximal_isr: frozenset[int] = frozenset()
        self.asked: IsrChange | None = None
        self.update(partition_epoch, replicas, isr, now_ms)

    def update(self, partition_epoch: int, replicas: Collection[int], isr: Iterable[int], now_ms: int) -> None:
        """The controller says who has replicas and which are in sync. That decides the pending change.

        Unless the order only repeats what is known, as a new controller's does: then the change may still be carried
        out, and both ISRs count until the answer comes. An order that was sent twice may be older than the last answer,
        and is ignored.
        """
        if partition_epoch < self.partition_epoch:
            return
        asked = self.asked if partition_epoch == self.partition_epoch else None
        self.partition_epoch = partition_epoch
        self.replicas = tuple(replicas)
        self.isr = tuple(isr)
        known = self.followers
        # A member of the ISR counts as caught up when a leadership starts: it has the whole lag time to prove it.
        self.followers = {
            replica: known.get(replica) or Follower(now_ms if replica in self.isr else _LONG_AGO)
            for replica in self.replicas
            if replica != self._broker_id
        }
        self._settle()
        if asked is not None:
            self.asked = asked
            self.maximal_isr |= frozenset(asked.isr)

    def _settle(self) -> None:
        self.asked = None
        self.maximal_isr = frozenset(self.isr)

    # --- followers ---

    def high_watermark(
        self, leader_end_offset: int, now_ms: int, max_lag_ms: int, is_alive: Callable[[int], bool]
    ) -> int:
        """The offset below which every replica that counts has everything.

        A follower that has caught up but has not joined the ISR yet counts too: otherwise what is committed meanwhile
        would keep it from joining. One that is gone does not: it left the ISR, and will not join.
        """
        lowest = leader_end_offset
        for broker_id, follower in self.followers.items():
            if follower.end_offset < lowest and (
                broker_id in self.maximal_isr
                or (follower.is_caught_up(leader_end_offset, now_ms, max_lag_ms) and is_alive(broker_id))
            ):
                lowest = follower.end_offset
        return lowest

    def low_watermark(self, log_start_offset: int) -> int:
        """The smallest log start offset of all replicas, as DeleteRecords answers it."""
        return min([log_start_offset, *(follower.log_start_offset for follower in self.followers.values())])

    def may_join(self, broker_id: int, high_watermark: int) -> bool:
        """Whether a follower has what every member of the ISR must have."""
        follower = self.followers.get(broker_id)
        return (
            follower is not None
            and self.asked is None
            and broker_id not in self.maximal_isr
            and follower.end_offset >= high_watermark
            and follower.end_offset >= self.epoch_start_offset
        )

    def lagging(self, leader_end_offset: int, now_ms: int, max_lag_ms: int) -> list[int]:
        """The members of the ISR that have not caught up for too long."""
        if self.asked is not None:
            return []
        return [
            broker_id
            for broker_id in self.isr
            if broker_id != self._broker_id
            and not self.followers[broker_id].is_caught_up(leader_end_offset, now_ms, max_lag_ms)
        ]

    # --- changes of the ISR ---

    def ask_for(self, isr: Iterable[int]) -> IsrChange:
        """Record that the controller is asked for this ISR. Until it answers, both this one and the current one
        count."""
        self.asked = IsrChange(self.leader_epoch, self.partition_epoch, tuple(isr))
        self.maximal_isr = frozenset(self.isr) | frozenset(self.asked.isr)
        return self.asked

    def ask_to_expand(self, broker_id: int) -> IsrChange:
        return self.ask_for((*self.isr, broker_id))

    def ask_to_shrink(self, lagging: Collection[int]) -> IsrChange:
        return self.ask_for(broker_id for broker_id in self.isr if broker_id not in lagging)

    def answered(self, change: IsrChange, leader_epoch: int, partition_epoch: int, isr: Iterable[int]) -> bool:
        """The controller has confirmed an ISR. False if the answer is outdated and ignored."""
        if change is not self.asked or leader_epoch != self.leader_epoch or partition_epoch < self.partition_epoch:
            return False
        self.partition_epoch = partition_epoch
        self.isr = tuple(isr)
        self._settle()
        return True

    def refused(self, change: IsrChange, error: ErrorCode) -> bool:
        """The controller has not confirmed it. True if it should be asked again.

        After an error that is neither transient nor a plain refusal this leader is behind the controller: it keeps
        counting both ISRs until LeaderAndIsr tells it which one is true.
        """
        if change is not self.asked:
            return False
        if error in _REFUSED:
            self._settle()
            return False
        return error in _TRANSIENT
