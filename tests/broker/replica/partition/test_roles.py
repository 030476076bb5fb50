"""A partition that its broker leads, alone or before followers, or that follows another broker."""

import pytest

from barnabas.broker.replica.errors import NotLeader
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.config import LogConfig
from barnabas.storage.write import AppendResult
from tests.broker.replica.partition.fakes import FLUSH_EACH, Reader, visible
from tests.storage.support import batch


class TestLeading:
    def test_all_that_a_single_replica_has_is_committed(self, make):
        partition, appends = make()
        appends.turn(it=batch())
        partition.log.high_watermark = 0
        partition.lead(1)
        assert partition.log.high_watermark == 1

    def test_a_new_epoch_starts_at_the_end_of_the_log(self, make):
        partition, appends = make()
        appends.turn(it=batch(b"a", b"b"))
        partition.lead(5)
        appends.turn(more=batch(b"c"))
        assert partition.log.leader_epochs.epoch_of(1) == 0
        assert partition.log.leader_epochs.epoch_of(2) == 5

    def test_what_waits_for_the_disk_is_not_committed_by_a_change_of_settings(self, make, worker):
        partition, appends = make(FLUSH_EACH)
        reader = Reader()
        partition.waiters[reader] = None
        appends.turn(it=batch(b"a"))
        partition.lead(0)
        assert visible(partition) == []
        worker.work()
        assert visible(partition) == [b"a"]
        assert len(reader.news) == 1

    @pytest.mark.parametrize(
        ("epoch", "error"),
        [
            (-1, ErrorCode.NONE),
            (3, ErrorCode.NONE),
            (2, ErrorCode.FENCED_LEADER_EPOCH),
            (4, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ],
    )
    def test_a_client_may_expect_another_epoch(self, make, epoch, error):
        partition, _ = make()
        partition.lead(3)
        assert partition.check_leader_epoch(epoch) == error

    @pytest.mark.parametrize(
        ("min_insync_replicas", "count", "in_sync", "enough"),
        [(1, 1, 1, True), (2, 3, 2, True), (2, 3, 1, False), (2, 1, 1, True), (3, 2, 1, False)],
    )
    def test_whether_enough_replicas_are_in_sync(self, make, min_insync_replicas, count, in_sync, enough):
        partition, _ = make(LogConfig(min_insync_replicas=min_insync_replicas))
        partition.lead(0, 1, range(count), range(in_sync))
        assert partition.has_enough_replicas() == enough


class TestFollowers:
    """A leader, here broker 0, with followers 1 and 2."""

    @pytest.fixture
    def led(self, make, clock):
        partition, appends = make(LogConfig(min_insync_replicas=2))
        partition.lead(0, 1, (0, 1, 2), (0, 1, 2))

        def fetched(broker_id, offset):
            end = partition.log.end_offset
            partition.leadership.followers[broker_id].fetched(offset, 0, end, 1, clock.now_ms())
            partition.advance()

        return partition, appends, fetched

    def test_a_write_is_reported_at_once_and_committed_when_all_in_sync_have_it(self, led):
        partition, appends, fetched = led
        committed = []
        appends.turn(it=batch(b"a"))
        assert appends.results["it"] == AppendResult(0, 0)
        partition.when_committed(1, committed.append)
        assert visible(partition) == []
        fetched(1, 1)
        assert (visible(partition), committed) == ([], [])
        fetched(2, 1)
        assert (visible(partition), committed) == ([b"a"], [None])

    def test_readers_are_woken_by_commits_and_followers_by_writes(self, led):
        partition, appends, fetched = led
        consumer, follower = Reader(), Reader()
        partition.waiters[consumer] = None
        partition.append_waiters[follower] = None
        appends.turn(it=batch(b"a"))
        size = partition.log.size
        assert (consumer.news, follower.news) == ([], [size])
        fetched(1, 1)
        fetched(2, 1)
        assert (consumer.news, follower.news) == ([size], [size])

    def test_a_batch_that_was_sent_again_does_not_wait_for_later_ones(self, led):
        partition, appends, fetched = led
        appends.turn(first=batch(b"a"), second=batch(b"b"))
        committed = []
        partition.when_committed(2, lambda _: committed.append(2))
        partition.when_committed(1, lambda _: committed.append(1))
        fetched(1, 1)
        fetched(2, 1)
        assert committed == [1]

    def test_a_cancelled_wait_is_not_notified(self, led):
        partition, appends, fetched = led
        appends.turn(it=batch(b"a"))
        committed = []
        for _ in range(1000):
            partition.when_committed(1, committed.append).cancel()
        assert len(partition._commits.waits) < 200
        fetched(1, 1)
        fetched(2, 1)
        assert committed == []

    def test_a_smaller_isr_commits_what_it_has(self, led):
        """Nobody would ask again otherwise (KAFKA-8571)."""
        partition, appends, fetched = led
        appends.turn(it=batch(b"a"))
        committed = []
        partition.when_committed(1, committed.append)
        fetched(1, 1)
        partition.clock.advance(31)
        partition.lead(0, 2, (0, 1, 2), (0, 1))
        assert committed == [None]

    def test_waiting_appends_learn_about_another_leader(self, led):
        partition, appends, _ = led
        committed = []
        readers = [Reader(), Reader()]
        partition.waiters[readers[0]] = partition.append_waiters[readers[1]] = None
        appends.turn(it=batch(b"a"))
        partition.when_committed(1, committed.append)
        partition.follow(1, 1)
        assert [type(failure) for failure in committed] == [NotLeader]
        assert [reader.news[-1] for reader in readers] == [0, 0]
        assert (partition.leadership, partition.leader_id, partition.leader_epoch) == (None, 1, 1)
        partition.when_committed(1, committed.append)
        assert [type(failure) for failure in committed] == [NotLeader, NotLeader]

    def test_a_new_epoch_of_the_same_leader_changes_nothing_for_those_who_wait(self, led):
        partition, appends, fetched = led
        committed = []
        appends.turn(it=batch(b"a"))
        partition.when_committed(1, committed.append)
        partition.lead(1, 2, (0, 1, 2), (0, 1, 2))
        assert committed == []
        fetched(1, 1)
        fetched(2, 1)
        assert committed == [None]

    def test_nothing_is_appended_where_another_broker_leads(self, led):
        partition, appends, _ = led
        appends.queue("it", batch(b"a"))
        partition.follow(1, 1)
        appends.turn(later=batch(b"b"))
        assert [type(result) for result in appends.results.values()] == [NotLeader, NotLeader]
        assert isinstance(partition.append_now(batch(b"c"), 0), NotLeader)
        assert partition.log.end_offset == 0
        assert not partition.has_enough_replicas()

    def test_what_is_not_on_the_leaders_disk_is_not_committed_by_followers(self, make, worker, clock):
        partition, appends = make(FLUSH_EACH)
        partition.lead(0, 1, (0, 1), (0, 1))
        appends.turn(it=batch(b"a"))
        partition.leadership.followers[1].fetched(1, 0, 1, 1, clock.now_ms())
        partition.advance()
        assert visible(partition) == []
        worker.work()
        assert visible(partition) == [b"a"]

    def test_losing_leadership_while_the_disk_is_written(self, make, worker):
        partition, appends = make(FLUSH_EACH)
        appends.turn(it=batch(b"a"))
        partition.follow(1, 1)
        assert isinstance(appends.results["it"], NotLeader)
        worker.work()
        assert visible(partition) == []


class TestFollowing:
    """What a fetcher gives to a partition that broker 1 leads."""

    @pytest.fixture
    def follows(self, make):
        partition, _ = make()
        partition.follow(1, 4)
        return partition

    def fetched(self, partition, value, high_watermark, log_start_offset=0):
        records = batch(value, base_offset=partition.log.end_offset, partition_leader_epoch=4)
        partition.append_fetched(records, high_watermark, log_start_offset)

    def test_it_is_committed_as_far_as_the_leader_says(self, follows):
        self.fetched(follows, b"a", 0)
        self.fetched(follows, b"b", 1)
        assert (follows.log.end_offset, visible(follows)) == (2, [b"a"])
        follows.append_fetched(memoryview(b""), 2, 0)
        assert visible(follows) == [b"a", b"b"]

    def test_the_high_watermark_stays_within_its_own_log_and_never_decreases(self, follows):
        self.fetched(follows, b"a", 100)
        assert follows.log.high_watermark == 1
        follows.append_fetched(memoryview(b""), 0, 0)
        assert follows.log.high_watermark == 1

    def test_the_log_starts_where_the_leaders_does(self, follows):
        self.fetched(follows, b"a", 0)
        self.fetched(follows, b"b", 1, log_start_offset=2)
        assert follows.log.log_start_offset == 1  # as far as it is committed here
        follows.append_fetched(memoryview(b""), 2, 2)
        assert follows.log.log_start_offset == 2

    def test_readers_are_told_what_is_committed(self, follows):
        reader = Reader()
        follows.waiters[reader] = None
        self.fetched(follows, b"a", 0)
        assert reader.news == []
        follows.append_fetched(memoryview(b""), 1, 0)
        assert reader.news == [follows.log.size]
        follows.log_was_cut()
        assert reader.news[1:] == [0]

    def test_where_each_batch_must_be_on_disk_more_is_fetched_when_it_is(self, make, replicas, worker):
        """The next fetch tells the leader that it is safe here."""
        partition, _ = make(FLUSH_EACH)
        partition.follow(1, 4)
        self.fetched(partition, b"a", 0)
        assert partition.waits_for_disk
        assert replicas.on_disk == []
        worker.work()
        assert not partition.waits_for_disk
        assert replicas.on_disk == [partition]

    def test_a_log_that_was_truncated_while_the_disk_was_written(self, make, worker):
        partition, _ = make(FLUSH_EACH)
        partition.follow(1, 4)
        self.fetched(partition, b"a", 0)
        partition.log.truncate_to(0, 0)
        partition.log_was_cut()
        assert not partition.waits_for_disk
        worker.work()
        assert partition.log.recovery_point == 0

    def test_it_leads_with_what_it_has(self, follows):
        self.fetched(follows, b"a", 0)
        follows.lead(5, 1, (0, 1), (0, 1))
        assert (visible(follows), follows.leadership.epoch_start_offset) == ([], 1)
        assert follows.is_behind_its_epoch
        follows.follower_fetched(1, 1, 0, 1)
        assert (visible(follows), follows.is_behind_its_epoch) == ([b"a"], False)
