"""Mistakes of leaders and followers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.broker.handlers import fetching
from barnabas.broker.replica import follower, isr_changes
from barnabas.broker.replica.fetchers import Fetchers
from barnabas.broker.replica.follower import Follower
from barnabas.broker.replica.isr_changes import IsrChanges
from barnabas.broker.replica.leadership import Leadership
from barnabas.broker.replica.partition import Partition
from barnabas.protocol.errors import ErrorCode
from barnabas.simulation.museum.exhibit import Exhibit, Replacement
from barnabas.storage import log_loader, recovery
from barnabas.storage.leader_epochs import LeaderEpochs


def _cuts_at_high_watermark() -> list[Replacement]:
    original = Fetchers.follow

    def follow(self: Fetchers, partition: Partition) -> None:
        original(self, partition)
        if partition.log.high_watermark < partition.log.end_offset:
            self._followers[partition].truncate_to(partition.log.high_watermark)

    return [
        Replacement(Fetchers, "follow", follow),
        Replacement(fetching.Fetch, "_diverged", lambda self, partition, wanted: None),
    ]


KIP_101 = Exhibit(
    "kip-101",
    "a follower cuts its log at its high watermark",
    "KIP-101, KAFKA-1211, KAFKA-3410",
    """
A follower learns of the high watermark one fetch after the leader does. If it starts to follow somebody in between and
cuts its log at the high watermark that it knows, it throws away a record that was committed and acknowledged. That is
fetched again a moment later; but if its leader dies in that moment, the follower is elected, because it is in sync,
and the record is gone everywhere. Kafka did that until 0.11. Since then a follower asks its leader where the leader's
log ends in the follower's last epoch, and cuts there.
""",
    _cuts_at_high_watermark,
    seed=1,
    weather="handovers",
)


def _asks_once() -> list[Replacement]:
    def truncation_offset(epochs: Any, log_end_offset: int, leader_epoch: int, leader_end_offset: int) -> int:
        return min(leader_end_offset, log_end_offset)

    def truncate_to_leader(self: Follower, epoch: int, end_offset: int) -> None:
        log = self.partition.log
        self.truncate_to(truncation_offset(log.leader_epochs, log.end_offset, epoch, end_offset))
        asked[self.partition] = self.leader_epoch

    asked: dict[Partition, int] = {}

    def last_epoch(self: Follower) -> int:
        if asked.get(self.partition) == self.leader_epoch:
            return -1
        return self.partition.log.leader_epochs.latest_epoch

    return [
        Replacement(follower, "truncation_offset", truncation_offset),
        Replacement(Follower, "truncate_to_leader", truncate_to_leader),
        Replacement(Follower, "last_epoch", property(last_epoch)),
    ]


KIP_279 = Exhibit(
    "kip-279",
    "a follower asks once where its log diverges",
    "KIP-279, KAFKA-6361",
    """
After two quick changes of leaders, a follower may have records of an epoch that its leader has never heard of. The
leader then answers for an older epoch, and the end of that one in the leader's log may lie behind records of the
unknown epoch in the follower's. A follower that cuts at this end and asks no more keeps records that no leader has. It
must cut at the end of its own largest epoch below the one in the answer, and ask again until the two agree.
""",
    _asks_once,
    seed=6,
    weather="carousel",
)


def _no_epoch_checks() -> list[Replacement]:
    return [
        Replacement(Partition, "check_leader_epoch", lambda self, epoch: ErrorCode.NONE),
        Replacement(fetching.Fetch, "_diverged", lambda self, partition, wanted: None),
    ]


KIP_320 = Exhibit(
    "kip-320",
    "nobody asks which leader epoch a fetch is meant for",
    "KIP-320, KAFKA-7395",
    """
A fetch that was sent to the leader of one epoch may be answered by the same broker in a later one, or by a broker that
has been deposed and does not know yet. Without the epoch in the request nobody notices: a follower whose log has
another branch is counted as having what the leader has, and a consumer reads what is cut later.
""",
    _no_epoch_checks,
    seed=1,
    weather="storm",
)


def _joins_early() -> list[Replacement]:
    def may_join(self: Leadership, broker_id: int, high_watermark: int) -> bool:
        found = self.followers.get(broker_id)
        return (
            found is not None
            and self.asked is None
            and broker_id not in self.maximal_isr
            and found.end_offset >= high_watermark
        )

    return [Replacement(Leadership, "may_join", may_join)]


KAFKA_7128 = Exhibit(
    "kafka-7128",
    "a follower joins the ISR before it has reached the start of the leader's epoch",
    "KAFKA-7128",
    """
A new leader's high watermark may be behind what the leader before it had committed. A follower that has come as far as
that high watermark, and is let into the ISR, may lack committed records. If the leader dies now, the follower may be
elected, and those records are gone. It must also have reached the offset at which the leader's epoch began.
""",
    _joins_early,
    seed=12,
    weather="handovers",
)


def _counts_the_old_isr() -> list[Replacement]:
    def high_watermark(
        self: Leadership, leader_end_offset: int, now_ms: int, max_lag_ms: int, is_alive: Callable[[int], bool]
    ) -> int:
        joining = () if self.asked is None else [each for each in self.asked.isr if each not in self.isr]
        lowest = leader_end_offset
        for broker_id, each in self.followers.items():
            caught_up = broker_id not in joining and each.is_caught_up(leader_end_offset, now_ms, max_lag_ms)
            if broker_id in self.isr or (caught_up and is_alive(broker_id)):
                lowest = min(lowest, each.end_offset)
        return lowest

    return [Replacement(Leadership, "high_watermark", high_watermark)]


KAFKA_12686 = Exhibit(
    "kafka-12686",
    "the high watermark moves by the old ISR while a larger one is asked for",
    "KAFKA-12686, KAFKA-13091",
    """
A leader asks the controller to let a follower into the ISR. The controller may have agreed long before the leader
hears of it, and may elect that follower at any time. A leader that commits records meanwhile without waiting for the
new member loses them with that election. While a change is in flight, both the old and the new ISR count.
""",
    _counts_the_old_isr,
    seed=28,
    weather="carousel",
)


def _takes_late_answers() -> list[Replacement]:
    original = IsrChanges._answered

    def _answered(self: IsrChanges, asked: Any, answer: Any) -> bool:
        partition = asked.partition
        current = partition.leadership
        if answer is None or answer.error_code or current is None or current is asked.leadership:
            return original(self, asked, answer)
        current.isr = tuple(answer.isr)
        current.partition_epoch = answer.partition_epoch
        current._settle()
        partition.advance()
        return False

    return [
        Replacement(IsrChanges, "_answered", _answered),
        Replacement(isr_changes, "_still_wanted", lambda asked: True),
    ]


KAFKA_14617 = Exhibit(
    "kafka-14617",
    "a late answer of the controller is applied in a newer epoch",
    "KAFKA-14617, KAFKA-12677",
    """
The answer to AlterPartition says which replicas are in sync. If it comes so late that the leader has been deposed and
elected again meanwhile, it speaks of another time: the ISR may have another member by now, for whom the leader must
wait before it commits.
""",
    _takes_late_answers,
    seed=1,
    weather="afterthoughts",
)


def _forgets_who_waits() -> list[Replacement]:
    original = Leadership.answered

    def answered(self: Leadership, *arguments: Any) -> bool:
        original(self, *arguments)
        return False  # so that nobody has a look at the high watermark

    return [Replacement(Leadership, "answered", answered)]


KAFKA_8571 = Exhibit(
    "kafka-8571",
    "the ISR shrinks, and nobody looks at what waits",
    "KAFKA-8571",
    """
When a follower leaves the ISR, records may be committed that only waited for it. If the leader does not look at its
high watermark then, whoever waits for such a record waits until something else happens to move it, and if this leader
is the only one left, that may never be.
""",
    _forgets_who_waits,
    seed=1,
    weather="solitude",
)


def _believes_the_checkpoint() -> list[Replacement]:
    replace, recover = LeaderEpochs.replace, recovery.recover_segment

    def replace_and_not_sync(self: LeaderEpochs, entries: Any) -> None:
        replace(self, entries)
        self.unsynced = []

    def recover_segment(segment: Any, interval: int, state: Any, epochs: Any, min_offset: int) -> int:
        return recover(segment, interval, state, list(epochs), min_offset)

    return [
        Replacement(LeaderEpochs, "replace", replace_and_not_sync),
        Replacement(log_loader, "_epochs_in", lambda segments: []),
        Replacement(log_loader, "recover_segment", recover_segment),
    ]


KAFKA_16541 = Exhibit(
    "kafka-16541",
    "a log forgets its leader epochs with the power",
    "KAFKA-16541",
    """
A file beside each log says where leader epochs began in it. If it is written and not synced, a loss of power may leave
it empty. A broker that believes it then does not know the epochs of its own records: it cannot tell its leader, or its
followers, where their logs diverge. The log itself knows better, and is read after such a stop.
""",
    _believes_the_checkpoint,
    seed=1,
    weather="outages",
)

EXHIBITS = [KIP_101, KIP_279, KIP_320, KAFKA_7128, KAFKA_12686, KAFKA_14617, KAFKA_8571, KAFKA_16541]
