"""LeaderAndIsr, StopReplica and UpdateMetadata, as the controller's own broker gets them: by a call."""

from types import SimpleNamespace

import pytest

from barnabas.broker.handlers import leader_and_isr, stop_replica, update_metadata
from barnabas.broker.metadata.cache import MetadataCache
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from tests.broker.replica import cluster
from tests.broker.replica.cluster import TOPIC_ID, Node, state, stop
from tests.support.manual_clock import ManualClock


@pytest.fixture
async def broker(tmp_path):
    node = Node(1, tmp_path, ManualClock())
    peers = Peers()
    cluster = MetadataCache("cluster", lambda _: {}, {})
    yield SimpleNamespace(replicas=node.replicas, cluster=cluster, peers=peers, node=node)
    node.close()


class Peers:
    def __init__(self):
        self.changes = 0

    def cluster_changed(self):
        self.changes += 1


def metadata(controller_epoch=1, broker_epoch=-1):
    told = UpdateMetadataPartitionState(
        partition_index=0,
        controller_epoch=1,
        leader=1,
        leader_epoch=2,
        isr=[1],
        zk_version=3,
        replicas=[1],
    )
    return UpdateMetadataRequest(
        controller_id=5,
        controller_epoch=controller_epoch,
        broker_epoch=broker_epoch,
        topic_states=[UpdateMetadataTopicState(topic_name="t", topic_id=TOPIC_ID, partition_states=[told])],
        live_brokers=[UpdateMetadataBroker(id=1, endpoints=[])],
    )


async def test_a_partition_comes_and_goes(broker):
    answer = await leader_and_isr.handle(broker, None, cluster.leader_and_isr(state()))
    assert [error.error_code for topic in answer.topics for error in topic.partition_errors] == [0]
    assert broker.replicas.find("t", 0).leadership is not None
    answer = await stop_replica.handle(broker, None, cluster.stop_replica(stop()))
    assert [error.error_code for error in answer.partition_errors] == [0]
    assert broker.replicas.find("t", 0) is None


async def test_metadata_is_what_was_told(broker):
    assert not (await update_metadata.handle(broker, None, metadata())).error_code
    assert broker.cluster.controller_id == 5
    assert broker.cluster.partition("t", 0).leader_epoch == 2
    assert broker.peers.changes == 1


async def test_all_orders_share_the_controllers_epoch(broker):
    broker.node.broker_epoch = 9
    await update_metadata.handle(broker, None, metadata(controller_epoch=4))
    for handle, old in (
        (leader_and_isr.handle, cluster.leader_and_isr(state(), controller_epoch=3)),
        (stop_replica.handle, cluster.stop_replica(stop(), controller_epoch=3)),
        (update_metadata.handle, metadata(controller_epoch=3)),
    ):
        assert (await handle(broker, None, old)).error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    assert (
        await update_metadata.handle(broker, None, metadata(controller_epoch=5, broker_epoch=8))
    ).error_code == ErrorCode.STALE_BROKER_EPOCH
    assert broker.cluster.controller_epoch == 4
    assert broker.peers.changes == 1


async def test_an_order_that_later_ones_have_overtaken_is_refused(broker):
    """The controller gave up waiting for an answer, and repeated it on another connection."""

    def sent(correlation_id):
        return SimpleNamespace(correlation_id=correlation_id)

    assert not (await update_metadata.handle(broker, sent(2), metadata(broker_epoch=9))).error_code
    for handle, old in (
        (leader_and_isr.handle, cluster.leader_and_isr(state(), broker_epoch=9)),
        (stop_replica.handle, cluster.stop_replica(stop(), broker_epoch=9)),
        (update_metadata.handle, metadata(broker_epoch=9)),
    ):
        assert (await handle(broker, sent(1), old)).error_code == ErrorCode.STALE_BROKER_EPOCH
        assert not (await handle(broker, sent(3), old)).error_code
