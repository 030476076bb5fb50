"""How a broker carries out the controller's orders: LeaderAndIsr and StopReplica."""

import uuid

import pytest

from barnabas.broker.controller.images import TopicImage
from barnabas.broker.controller.orders import EPOCH_DURING_DELETE
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.log_directory import LogDirectory
from tests.broker.replica.cluster import TOPIC_ID, Node, leader_and_isr, state, stop
from tests.storage.support import batch
from tests.support.file_systems import NO_SPACE
from tests.support.manual_clock import ManualClock

OTHER_ID = uuid.UUID(int=8).bytes


@pytest.fixture
async def node(tmp_path):
    node = Node(1, tmp_path, ManualClock())
    yield node
    node.close()


class Listener:
    def __init__(self):
        self.heard = []

    def on_leader(self, partition):
        self.heard.append(("leads", partition.index, partition.leader_epoch))

    def on_not_leader(self, partition):
        self.heard.append(("deleted" if partition.deleted else "follows", partition.index, partition.leader_epoch))


def errors(answer):
    assert not answer.error_code
    if hasattr(answer, "topics"):
        return [error.error_code for topic in answer.topics for error in topic.partition_errors]
    return [error.error_code for error in answer.partition_errors]


def indexes(node, topic="t"):
    return [partition.index for partition in node.replicas.of_topic(topic)]


def folders(node):
    return sorted(path.name for path in node.folder.iterdir() if path.is_dir() and not path.name.endswith("-delete"))


class TestRoles:
    async def test_any_of_a_topics_partitions_may_be_here(self, node):
        answer = await node.order(state(4), state(1, leader=2, replicas=(2, 1)))
        assert errors(answer) == [0, 0]
        assert indexes(node) == [1, 4]
        assert [node.replicas.find("t", index) is None for index in range(-1, 6)] == [True, True, False] + [
            True
        ] * 2 + [
            False,
            True,
        ]
        assert node.replicas.find(TOPIC_ID, 4) is node.partition("t", 4)
        assert [partition.index for partition in node.replicas] == [1, 4]
        assert folders(node) == ["t-1", "t-4"]

    async def test_a_leader_and_a_follower(self, node):
        await node.order(state(0, leader_epoch=3, replicas=(1, 2)), state(1, leader=2, leader_epoch=5, replicas=(2, 1)))
        leads, follows = node.partition("t", 0), node.partition("t", 1)
        assert (leads.leadership.isr, leads.leader_id, leads.leader_epoch) == ((1, 2), 1, 3)
        assert (follows.leadership, follows.leader_id, follows.leader_epoch) == (None, 2, 5)

    async def test_an_order_that_is_not_for_this_broker(self, node):
        assert errors(await node.order(state(replicas=(2, 3), leader=2))) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert folders(node) == []

    async def test_listeners_are_called_once_per_new_epoch(self, node):
        listener = Listener()
        node.replicas.subscribe_roles(listener)
        await node.order(state(leader_epoch=0, replicas=(1, 2)))
        await node.order(state(leader_epoch=0, replicas=(1, 2), isr=(1,), partition_epoch=1))
        await node.order(state(leader_epoch=1, replicas=(1, 2), partition_epoch=2))
        await node.order(state(leader_epoch=2, leader=2, replicas=(1, 2), partition_epoch=3))
        await node.order(state(leader_epoch=3, leader=1, replicas=(1, 2), partition_epoch=4))
        await node.stop_replicas(stop())
        assert listener.heard == [
            ("leads", 0, 0),
            ("leads", 0, 1),
            ("follows", 0, 2),
            ("leads", 0, 3),
            ("deleted", 0, 3),
        ]

    async def test_a_listener_that_fails_does_not_affect_the_others(self, node):
        class Bad:
            def on_leader(self, partition):
                raise ZeroDivisionError

        listener = Listener()
        node.replicas.subscribe_roles(Bad())
        node.replicas.subscribe_roles(listener)
        assert errors(await node.order(state())) == [0]
        assert listener.heard == [("leads", 0, 0)]

    async def test_new_partitions_can_be_found_when_their_listeners_are_told(self, node):
        class Looks(Listener):
            def on_leader(self, partition):
                self.heard.append(node.replicas.find("t", partition.index) is partition)

        listener = Looks()
        node.replicas.subscribe_roles(listener)
        await node.order(*(state(index) for index in range(100)))
        assert listener.heard == [True] * 100


class TestEpochs:
    async def test_a_deposed_controller_is_not_obeyed(self, node):
        await node.order(state(), controller_epoch=5)
        assert (await node.order(state(leader_epoch=9), controller_epoch=4)).error_code == 11
        assert (await node.stop_replicas(stop(), controller_epoch=4)).error_code == ErrorCode.STALE_CONTROLLER_EPOCH
        assert node.partition().leader_epoch == 0

    async def test_orders_for_an_earlier_registration_of_this_broker_are_refused(self, node):
        """KAFKA-7235. A newer epoch than its own is fine, and so is none (KAFKA-9839)."""
        node.broker_epoch = 7
        assert (await node.order(state(), broker_epoch=6)).error_code == ErrorCode.STALE_BROKER_EPOCH
        assert (await node.stop_replicas(stop(), broker_epoch=6)).error_code == ErrorCode.STALE_BROKER_EPOCH
        for epoch in (7, 8, -1):
            assert errors(await node.order(state(), broker_epoch=epoch)) == [0]

    async def test_an_older_leader_epoch_or_partition_epoch_is_not_followed(self, node):
        await node.order(state(leader_epoch=4, partition_epoch=6, replicas=(1, 2)))
        for old in (state(leader_epoch=3, partition_epoch=9), state(leader_epoch=4, partition_epoch=5)):
            assert errors(await node.order(old)) == [ErrorCode.STALE_CONTROLLER_EPOCH]
        assert node.partition().leadership.replicas == (1, 2)
        assert errors(await node.order(state(leader_epoch=4, partition_epoch=6, replicas=(1, 2)))) == [0]

    async def test_a_stop_from_before_the_current_leader_is_not_followed(self, node):
        """KAFKA-9539."""
        await node.order(state(leader_epoch=4))
        assert errors(await node.stop_replicas(stop(leader_epoch=3))) == [ErrorCode.FENCED_LEADER_EPOCH]
        assert node.partition()
        assert errors(await node.stop_replicas(stop(leader_epoch=EPOCH_DURING_DELETE))) == [0]
        assert node.replicas.find("t", 0) is None

    async def test_an_order_from_before_a_partition_was_moved_away_is_not_followed(self, node):
        """It was sent twice, and its second copy comes late."""
        await node.order(state(leader_epoch=4))
        await node.stop_replicas(stop(leader_epoch=5))
        assert errors(await node.order(state(leader_epoch=4))) == [ErrorCode.STALE_CONTROLLER_EPOCH]
        assert node.replicas.find("t", 0) is None
        assert errors(await node.order(state(leader_epoch=6))) == [0]  # it has been moved back
        await node.stop_replicas(stop(leader_epoch=EPOCH_DURING_DELETE))
        assert errors(await node.order(state(leader_epoch=6))) == [ErrorCode.STALE_CONTROLLER_EPOCH]

    async def test_the_deletion_of_an_earlier_topic_of_this_name_is_not_followed(self, node):
        """It was sent twice, over connections of which one was stuck; the broker knows that the topic is there."""
        await node.order(state())
        node.cluster.topics[TOPIC_ID] = TopicImage("t", TOPIC_ID, (), {}, 0)
        again = await node.stop_replicas(stop(leader_epoch=EPOCH_DURING_DELETE))
        assert errors(again) == [ErrorCode.FENCED_LEADER_EPOCH]
        assert node.partition()
        assert folders(node) == ["t-0"]


class TestStopping:
    async def test_a_deleted_partition_goes_with_its_folder(self, node):
        await node.order(state(0), state(1))
        assert errors(await node.stop_replicas(stop(0))) == [0]
        assert (indexes(node), folders(node), node.forgotten) == ([1], ["t-1"], [])
        await node.stop_replicas(stop(1))
        assert (indexes(node), folders(node), node.forgotten) == ([], [], [TOPIC_ID])
        assert node.replicas.find(TOPIC_ID, 1) is None

    async def test_a_stopped_one_keeps_its_folder_and_does_nothing(self, node):
        await node.order(state())
        await node.stop_replicas(stop(delete=False))
        assert (node.partition().leadership, node.partition().leader_id) == (None, -1)
        assert folders(node) == ["t-0"]

    async def test_one_without_a_role_is_deleted_too(self, node):
        await node.order(state())
        node.close()
        node.open()
        assert indexes(node) == []
        await node.stop_replicas(stop())
        assert (folders(node), node.forgotten) == ([], [TOPIC_ID])

    async def test_a_partition_that_is_being_created_is_deleted_afterwards(self, node, monkeypatch):
        monkeypatch.setattr("barnabas.broker.replica.turns._SECONDS_PER_TURN", 0)

        node.replicas.take_roles(leader_and_isr(*(state(index) for index in range(50))))
        await node.stop_replicas(*(stop(index) for index in range(50)))
        assert (indexes(node), folders(node), node.forgotten) == ([], [], [TOPIC_ID])

    async def test_stopping_an_unknown_partition_is_not_an_error(self, node):
        assert errors(await node.stop_replicas(stop())) == [0]


class TestTopicIds:
    async def test_another_topic_of_the_same_name_is_refused(self, node):
        await node.order(state())
        node.partition().append_now(batch(b"a"), 0)
        assert errors(await node.order(state(leader_epoch=5), topic_id=OTHER_ID)) == [ErrorCode.INCONSISTENT_TOPIC_ID]
        assert node.partition().log.end_offset == 1

    async def test_one_whose_deletion_is_noted_makes_room(self, node):
        await node.order(state(0), state(1))
        node.partition().append_now(batch(b"a"), 0)
        node.deleted.add(TOPIC_ID)
        assert errors(await node.order(state(), topic_id=OTHER_ID)) == [0]
        assert (indexes(node), node.partition().log.end_offset, node.forgotten) == ([0], 0, [TOPIC_ID])
        assert node.replicas.find(TOPIC_ID, 0) is None
        assert folders(node) == ["t-0"]

    @pytest.mark.parametrize("noted", [True, False])
    async def test_a_folder_from_before_the_start(self, node, noted):
        await node.order(state())
        node.partition().append_now(batch(b"a"), 0)
        node.close()
        node.open()
        if noted:
            node.deleted.add(TOPIC_ID)
        answer = errors(await node.order(state(), topic_id=OTHER_ID))
        if noted:
            assert (answer, node.partition().log.end_offset, node.forgotten) == ([0], 0, [TOPIC_ID])
        else:
            assert answer == [ErrorCode.INCONSISTENT_TOPIC_ID]
            assert node.directory.logs[TopicPartition("t", 0)].end_offset == 1

    async def test_a_start_deletes_what_is_noted(self, node):
        await node.order(state())
        node.close()
        node.deleted.add(TOPIC_ID)
        node.open()
        assert folders(node) == []


class TestFailures:
    async def test_a_log_that_cannot_be_created_is_retried(self, node, monkeypatch):
        def full(*_):
            raise NO_SPACE

        with monkeypatch.context() as patch:
            patch.setattr(LogDirectory, "create_log", full)
            answer = await node.order(state(0, leader_epoch=2), state(1))
            assert errors(answer) == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
            assert [entry.name for entry in node.set_aside.entries()] == ["t-0"]
            assert "No space" in node.replicas.failure("t")
            assert indexes(node) == []
        node.clock.advance(1)
        assert indexes(node) == [0, 1]
        assert node.partition().leader_epoch == 2
        assert (node.set_aside.entries(), node.replicas.failure("t")) == ([], None)

    async def test_it_is_retried_although_an_order_for_another_partition_was_carried_out(self, node, monkeypatch):
        def full(*_):
            raise NO_SPACE

        with monkeypatch.context() as patch:
            patch.setattr(LogDirectory, "create_log", full)
            await node.order(state(0))
        await node.order(state(1))
        assert indexes(node) == [1]
        node.clock.advance(5)
        assert indexes(node) == [0, 1]

    async def test_it_is_not_created_if_it_was_stopped_meanwhile(self, node, monkeypatch):
        def full(*_):
            raise NO_SPACE

        with monkeypatch.context() as patch:
            patch.setattr(LogDirectory, "create_log", full)
            await node.order(state())
        await node.stop_replicas(stop())
        node.clock.advance(5)
        assert (indexes(node), folders(node), node.set_aside.entries()) == ([], [], [])

    async def test_strays_are_kept_and_not_used(self, node):
        await node.order(state(0), state(1))
        node.close()
        node.open()
        await node.order(state(0))
        node.replicas.set_aside_strays(lambda name, topic_id: name.partition == 0)
        assert [name.partition(".")[0] for name in folders(node)] == ["t-0", "t-1"]
        assert folders(node)[1].endswith("-stray")
        assert indexes(node) == [0]

    async def test_a_partition_that_was_moved_away_while_this_broker_was_gone(self, node):
        await node.order(state(0), state(1))
        moved = node.partition("t", 1)
        node.replicas.set_aside_strays(lambda name, topic_id: name.partition == 0)
        assert moved.deleted
        assert indexes(node) == [0]
        assert folders(node)[1].endswith("-stray")

    async def test_a_topic_that_was_deleted_while_this_broker_was_gone(self, node):
        await node.order(state(0), state(1))
        gone = node.partition("t")
        node.deleted.add(gone.topic_id)
        node.replicas.set_aside_strays(lambda name, topic_id: False)
        await node.replicas.made("t")
        assert gone.deleted
        assert not any(name.endswith("-stray") for name in folders(node))
        assert node.replicas.find("t", 0) is None
