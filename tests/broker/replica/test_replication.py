"""Replicas of several brokers: followers fetch, leaders fail, others are elected, and logs agree again."""

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.storage.errors import LogFailure
from tests.broker.replica.cluster import Acks, Cluster, state, stop
from tests.storage.support import batch


@pytest.fixture
async def cluster(tmp_path):
    cluster = Cluster(tmp_path)
    await cluster.controller.elect(1)
    yield cluster
    cluster.close()


def ends(cluster):
    return [node.partition().log.end_offset for node in cluster.nodes.values() if node.is_up]


def bytes_of(node):
    log = node.partition().log
    return b"".join((node.folder / "t-0" / f"{segment.base_offset:020}.log").read_bytes() for segment in log.segments)


class TestFollowing:
    async def test_followers_have_the_same_bytes(self, cluster):
        cluster[1].append(b"a", b"b")
        cluster[1].append(b"c")
        await cluster.settle()
        assert [node.values for node in cluster.nodes.values()] == [[b"a", b"b", b"c"]] * 3
        assert bytes_of(cluster[1]) == bytes_of(cluster[2]) == bytes_of(cluster[3])

    async def test_it_is_committed_when_all_have_it(self, cluster):
        acks = Acks()
        await cluster.cut(1, 3)
        cluster[1].append(b"a", acks=acks)
        await cluster.settle()
        assert (cluster[2].values, cluster[1].committed, acks.acknowledged) == ([b"a"], [], [])
        await cluster.mend()
        assert (cluster[3].values, cluster[1].committed, acks.acknowledged) == ([b"a"], [b"a"], [b"a"])

    async def test_followers_learn_what_is_committed(self, cluster):
        cluster[1].append(b"a")
        await cluster.settle()
        cluster[1].append(b"b")
        await cluster.settle()
        assert cluster[2].committed[:1] == cluster[3].committed[:1] == [b"a"]
        await cluster.pass_time(1)
        assert cluster[2].committed == cluster[3].committed == [b"a", b"b"]

    async def test_large_answers_that_end_within_a_batch(self, tmp_path):
        cluster = Cluster(tmp_path, 2, replica_fetch_max_bytes=300)
        await cluster.controller.elect(1)
        for number in range(20):
            cluster[1].append(b"%d" % number * 50)
        await cluster.settle()
        await cluster.settle()
        assert bytes_of(cluster[1]) == bytes_of(cluster[2])
        cluster.close()

    async def test_one_that_was_away_catches_up(self, cluster):
        await cluster.kill(3)
        cluster[1].append(b"a")
        await cluster.restart(3)
        await cluster.controller.tell([3])
        assert cluster[3].values == [b"a"]

    async def test_one_whose_disk_was_lost_begins_where_the_leader_does(self, cluster):
        cluster[1].append(b"a")
        cluster[1].append(b"b")
        await cluster.settle()
        cluster[1].partition().log.increment_log_start_offset(1)
        await cluster[3].stop_replicas(stop())
        await cluster.controller.tell([3])
        await cluster.settle(backoff=True)
        assert (cluster[3].partition().log.log_start_offset, cluster[3].values) == (1, [b"b"])

    async def test_one_whose_disk_was_lost_begins_within_a_batch_if_the_leader_does(self, cluster):
        cluster[1].append(b"a", b"b", b"c")
        cluster[1].append(b"d")
        await cluster.settle()
        cluster[1].partition().log.increment_log_start_offset(1)
        await cluster[3].stop_replicas(stop())
        await cluster.controller.tell([3])
        await cluster.settle(backoff=True)
        log = cluster[3].partition().log
        assert (log.log_start_offset, log.end_offset, log.high_watermark) == (1, 4, 4)
        assert log.leader_epochs.entries == cluster[1].partition().log.leader_epochs.entries
        assert bytes_of(cluster[3]) == bytes_of(cluster[1])
        await cluster.kill(3)
        await cluster.restart(3)
        await cluster.controller.tell([3])
        log = cluster[3].partition().log
        assert (log.log_start_offset, log.end_offset) == (1, 4)

    async def test_followers_delete_what_the_leader_deletes(self, cluster):
        cluster[1].append(b"a")
        cluster[1].append(b"b")
        await cluster.settle()
        cluster[1].partition().log.increment_log_start_offset(1)
        told = []
        cluster[1].partition().when_deleted(1, told.append)
        assert told == []
        await cluster.settle()
        assert [node.partition().log.log_start_offset for node in cluster.nodes.values()] == [1, 1, 1]
        assert told == [None]
        assert cluster[1].partition().low_watermark() == 1


def stop_one():
    from tests.broker.replica.cluster import stop

    return stop()


class TestElections:
    async def test_the_next_leader_has_what_was_acknowledged(self, cluster):
        acks = Acks()
        cluster[1].append(b"a", acks=acks)
        await cluster.settle()
        await cluster.kill(1)
        await cluster.controller.elect(2, isr=(2, 3))
        cluster[2].append(b"b", acks=acks)
        await cluster.settle()
        assert acks.acknowledged == [b"a", b"b"]
        assert cluster[3].values == [b"a", b"b"]

    async def test_what_only_the_old_leader_had_is_truncated(self, cluster):
        acks = Acks()
        await cluster.cut(1, 2)
        await cluster.cut(1, 3)
        cluster[1].append(b"lost", b"lost too", acks=acks)
        await cluster.controller.elect(2, isr=(2, 3), tell=[2, 3])
        cluster[2].append(b"kept", acks=acks)
        await cluster.settle()
        await cluster.mend()
        assert acks.acknowledged == [b"kept"]
        await cluster.controller.tell([1])
        assert acks.failed == [b"lost", b"lost too"]
        assert [node.values for node in cluster.nodes.values()] == [[b"kept"]] * 3
        assert bytes_of(cluster[1]) == bytes_of(cluster[2])
        assert cluster[1].partition().log.leader_epochs.entries == cluster[2].partition().log.leader_epochs.entries

    async def test_a_high_watermark_that_is_behind_truncates_nothing(self, cluster):
        """KIP-101, first scenario: a follower that restarts must not truncate what was committed before it knew
        that."""
        acks = Acks()
        cluster[1].append(b"a", acks=acks)
        await cluster.settle()
        assert acks.acknowledged == [b"a"]
        cluster[2].partition().log.high_watermark = 0
        await cluster.kill(2)
        await cluster.restart(2)
        await cluster.controller.tell([2])
        assert cluster[2].values == [b"a"]
        await cluster.kill(1)
        await cluster.controller.elect(2, isr=(2, 3))
        assert cluster[2].values == cluster[3].values == [b"a"]

    async def test_logs_that_grew_apart_agree_again(self, tmp_path):
        """KIP-101, second scenario: both crashed, and each wrote something else at the same offset."""
        cluster = Cluster(tmp_path, 2)
        await cluster.controller.elect(1)
        cluster[1].append(b"both")
        await cluster.settle()
        await cluster.cut(1, 2)
        cluster[1].append(b"one")
        await cluster.kill(1)
        await cluster.controller.elect(2, isr=(2,))
        cluster[2].append(b"two")
        await cluster.mend()
        await cluster.restart(1)
        await cluster.controller.tell()
        assert cluster[1].values == cluster[2].values == [b"both", b"two"]
        assert bytes_of(cluster[1]) == bytes_of(cluster[2])
        cluster.close()

    async def test_two_quick_changes_of_the_leader(self, cluster):
        """KIP-279: each of three brokers wrote in an epoch that the others do not know."""
        cluster[1].append(b"all")
        await cluster.settle()
        for one, other in ((1, 2), (1, 3), (2, 3)):
            await cluster.cut(one, other)
        cluster[1].append(b"1a", b"1b", b"1c")
        cluster[1].append(b"1d")
        await cluster.controller.elect(2, isr=(2,), tell=[2])
        cluster[2].append(b"2a")
        cluster[2].append(b"2b")
        await cluster.controller.elect(3, isr=(3,), tell=[3])
        cluster[3].append(b"3a")
        await cluster.controller.elect(1, isr=(1,), tell=[1])  # unclean, and again
        cluster[1].append(b"1e")
        await cluster.mend()
        await cluster.controller.tell()
        await cluster.settle(backoff=True)
        expected = [b"all", b"1a", b"1b", b"1c", b"1d", b"1e"]
        assert [node.values for node in cluster.nodes.values()] == [expected] * 3
        assert bytes_of(cluster[1]) == bytes_of(cluster[2]) == bytes_of(cluster[3])

    async def test_epochs_that_the_other_does_not_know_are_truncated_one_by_one(self, tmp_path):
        """KIP-279: two brokers led in turns, without the other's records."""
        cluster = Cluster(tmp_path, 2)
        await cluster.controller.elect(1)
        cluster[1].append(b"both")
        await cluster.settle()
        await cluster.cut(1, 2)
        for epoch, (leader, count) in enumerate(((1, 1), (2, 3), (1, 1), (2, 1)), 1):
            await cluster.controller.elect(leader, isr=(leader,), tell=[leader])
            for number in range(count):
                cluster[leader].append(b"%d in %d: %d" % (leader, epoch, number))
        await cluster.mend()
        await cluster.controller.tell()
        await cluster.settle(backoff=True)
        assert cluster[1].values == [b"both", b"2 in 2: 0", b"2 in 2: 1", b"2 in 2: 2", b"2 in 4: 0"]
        assert bytes_of(cluster[1]) == bytes_of(cluster[2])
        cluster.close()

    async def test_an_epoch_in_which_nothing_was_written_is_forgotten(self, cluster):
        cluster[1].append(b"a")
        await cluster.settle()
        for other in (2, 3):
            await cluster.cut(1, other)
        await cluster.controller.elect(1, tell=[1])  # nobody else learns about it
        await cluster.controller.elect(2, isr=(2, 3), tell=[2, 3])
        cluster[2].append(b"b")
        await cluster.mend()
        await cluster.controller.tell([1])
        await cluster.settle(backoff=True)
        assert cluster[1].values == [b"a", b"b"]
        assert [entry.epoch for entry in cluster[1].partition().log.leader_epochs.entries] == [0, 2]

    async def test_producers_follow_the_log_after_a_truncation(self, cluster):
        for other in (2, 3):
            await cluster.cut(1, other)

        sent = batch(b"x", producer_id=5, producer_epoch=0, base_sequence=0)
        cluster[1].partition().append_now(sent, 0)
        assert 5 in cluster[1].partition().log.producer_state.producers
        await cluster.controller.elect(2, isr=(2, 3), tell=[2, 3])
        await cluster.mend()
        await cluster.controller.tell([1])
        assert cluster[1].partition().log.producer_state.producers == {}

    @pytest.mark.parametrize("leader", [2, 1])
    async def test_records_sent_in_an_earlier_epoch_are_not_appended(self, cluster, leader):
        """It was on its way when the follower was told to lead, or to follow in another epoch."""
        cluster.hold_answers = True
        cluster[1].append(b"late")
        await cluster.controller.elect(leader, tell=[2])
        cluster.let_answers_go()
        await cluster.settle()
        assert cluster[2].values == []

    async def test_a_zombie_leader_acknowledges_nothing(self, cluster):
        acks = Acks()
        await cluster.controller.elect(2, tell=[2, 3])
        cluster[1].append(b"zombie", acks=acks)
        await cluster.settle()
        assert (acks.acknowledged, cluster[1].committed) == ([], [])

    async def test_a_follower_that_is_ahead_of_its_leader_in_epochs_does_not_count(self, cluster):
        """KIP-320: the leader does not know its new epoch yet, and the followers may know another one."""
        acks = Acks()
        await cluster.controller.elect(1, tell=[2, 3])
        cluster[1].append(b"a", acks=acks)
        await cluster.pass_time(3)
        assert acks.acknowledged == []
        await cluster.controller.tell([1])
        await cluster.pass_time(2)
        assert acks.acknowledged == [b"a"]

    async def test_what_a_follower_knows_to_be_committed_stays_so_under_a_leader_that_does_not(self, cluster):
        cluster[1].append(b"a")
        await cluster.settle()
        assert cluster[1].committed == [b"a"]
        cluster[2].partition().log.high_watermark = 0
        await cluster.cut(2, 3)
        await cluster.controller.elect(2)
        assert cluster[2].committed == []
        await cluster.pass_time(1)
        assert cluster[1].partition().leader_id == 2
        assert cluster[1].committed == [b"a"]

    async def test_high_watermarks_never_decrease(self, cluster):
        seen = dict.fromkeys(cluster.nodes, 0)

        def look():
            for broker_id, node in cluster.nodes.items():
                if node.is_up and node.replicas.find("t", 0) is not None:
                    now = node.partition().log.high_watermark
                    assert now >= seen[broker_id]
                    seen[broker_id] = now

        for number in range(12):
            leader = number % 3 + 1
            await cluster.controller.elect(leader)
            look()
            cluster[leader].append(b"%d" % number)
            look()
            await cluster.settle()
            look()
        await cluster.pass_time(1)
        assert set(ends(cluster)) == {12}
        assert [node.committed for node in cluster.nodes.values()] == [[b"%d" % number for number in range(12)]] * 3


class TestInSyncReplicas:
    async def test_one_that_lags_leaves_and_comes_back(self, cluster):
        acks = Acks()
        await cluster.cut(1, 3)
        cluster[1].append(b"a", acks=acks)
        await cluster.pass_time(20)
        assert (cluster.controller.isr, acks.acknowledged) == ((1, 2, 3), [])
        await cluster.pass_time(30)
        assert (cluster.controller.isr, acks.acknowledged) == ((1, 2), [b"a"])
        cluster[1].append(b"b")
        await cluster.mend()
        await cluster.pass_time(1)
        assert cluster.controller.isr == (1, 2, 3)
        assert cluster[1].partition().leadership.isr == (1, 2, 3)

    async def test_one_that_stops_is_waited_for_only_while_it_is_there(self, cluster):
        """A broker in its shutdown is not in the ISR any more, and follows until it is gone."""
        acks = Acks()
        cluster.controller.errors = [ErrorCode.INELIGIBLE_REPLICA] * 100
        await cluster.controller.elect(1, isr=(1,))
        await cluster.cut(1, 2)
        await cluster.pass_time(1)  # broker 3 has caught up, and may not join
        await cluster.cut(1, 3)
        cluster[1].append(b"a", acks=acks)
        await cluster.settle()
        assert acks.acknowledged == []
        await cluster.kill(2)
        await cluster.kill(3)
        cluster[1].replicas.brokers_changed()
        assert acks.acknowledged == [b"a"]

    async def test_until_the_controller_has_confirmed_it_the_larger_isr_counts(self, cluster):
        """KAFKA-12686: a replica that is about to join may already be a leader, as far as the controller is
        concerned."""
        acks = Acks()
        cluster.controller.is_reachable = False
        await cluster.controller.elect(1, isr=(1, 2))  # broker 3 fetches, and is asked for
        assert cluster[1].partition().leadership.maximal_isr == {1, 2, 3}
        await cluster.cut(1, 3)
        cluster[1].append(b"a", acks=acks)
        await cluster.pass_time(40)
        assert (acks.acknowledged, cluster[1].committed) == ([], [])
        cluster.controller.is_reachable = True
        await cluster.settle(backoff=True)
        assert cluster.controller.isr == (1, 2, 3)
        assert acks.acknowledged == []
        await cluster.mend()
        assert acks.acknowledged == [b"a"]

    async def test_a_shrink_that_is_not_confirmed_acknowledges_nothing(self, cluster):
        acks = Acks()
        cluster.controller.is_reachable = False
        await cluster.cut(1, 3)
        cluster[1].append(b"a", acks=acks)
        await cluster.pass_time(60)
        assert acks.acknowledged == []
        cluster.controller.is_reachable = True
        await cluster.pass_time(1)
        assert acks.acknowledged == [b"a"]

    @pytest.mark.parametrize("error", [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INVALID_UPDATE_VERSION])
    async def test_a_leader_that_is_behind_waits_for_orders(self, cluster, error):
        cluster.controller.errors.append(error)
        await cluster.controller.elect(1, isr=(1, 2))
        await cluster.pass_time(2)
        assert len(cluster.controller.asked) == 1
        await cluster.controller.elect(1, isr=(1, 2))
        await cluster.pass_time(1)
        assert cluster.controller.isr == (1, 2, 3)

    async def test_a_transient_error_is_asked_again(self, cluster):
        cluster.controller.errors += [ErrorCode.NOT_CONTROLLER, ErrorCode.UNKNOWN_SERVER_ERROR]
        await cluster.controller.elect(1, isr=(1, 2))
        await cluster.pass_time(2)
        assert cluster.controller.asked == [(1, 2, 3)] * 3
        assert cluster[1].partition().leadership.isr == (1, 2, 3)

    async def test_a_new_leader_is_joined_only_by_those_who_reached_its_epoch(self, cluster):
        """KAFKA-7128."""
        cluster[1].append(b"a")
        await cluster.settle()
        await cluster.cut(2, 3)
        await cluster.cut(1, 3)
        cluster[1].append(b"b")
        await cluster.settle()
        cluster[2].partition().log.high_watermark = 1
        await cluster.controller.elect(2, isr=(1, 2))
        assert cluster[2].partition().leadership.epoch_start_offset == 2
        leadership = cluster[2].partition().leadership
        leadership.followers[3].end_offset = 1
        assert not leadership.may_join(3, 1)


class TestFailingDisk:
    """A broker whose disk accepts no writes hands over its leaderships, and follows again when there is room."""

    async def order_again(self, cluster, broker_id, isr=(1, 2, 3)):
        epoch = cluster[broker_id].partition().leader_epoch
        order = state(leader_epoch=epoch, replicas=(1, 2, 3), isr=isr, partition_epoch=100)
        answer = await cluster[broker_id].order(order, leaders=(1, 2, 3))
        ((error,),) = [topic.partition_errors for topic in answer.topics]
        return ErrorCode(error.error_code)

    async def test_a_leader_that_cannot_write_says_so(self, cluster):
        cluster[1].append(b"a")
        assert await self.order_again(cluster, 1) is ErrorCode.NONE
        cluster[1].disk.broken = ["/"]
        with pytest.raises(LogFailure):
            cluster[1].append(b"b")
        assert cluster[1].disk_events == 1
        assert await self.order_again(cluster, 1) is ErrorCode.KAFKA_STORAGE_ERROR
        assert await self.order_again(cluster, 1, isr=(1,)) is ErrorCode.NONE  # nobody else could lead
        cluster[1].disk.broken = []
        await cluster.pass_time(1)
        assert cluster[1].disk_events == 2
        assert await self.order_again(cluster, 1) is ErrorCode.NONE
        cluster[1].append(b"b")

    async def test_a_follower_that_cannot_write_says_so_and_waits_until_it_can(self, cluster):
        cluster[3].disk.broken = ["/"]
        cluster[1].append(b"a")
        await cluster.settle()
        assert (cluster[3].disk_events, cluster[3].values) == (1, [])
        assert await self.order_again(cluster, 3) is ErrorCode.KAFKA_STORAGE_ERROR
        tried = len(cluster[3].disk.writes)
        await cluster.pass_time(5)
        assert len(cluster[3].disk.writes) == tried
        cluster[3].disk.broken = []
        await cluster.pass_time(1)
        assert (cluster[3].disk_events, cluster[3].values) == (2, [b"a"])

    async def test_a_partition_that_only_this_broker_has_is_not_handed_over(self, tmp_path):
        alone = Cluster(tmp_path, 1)
        await alone.controller.elect(1)
        alone[1].disk.broken = ["/"]
        with pytest.raises(LogFailure):
            alone[1].append(b"a")
        assert alone[1].disk_events == 0
        alone.close()
