import asyncio
import gc
import weakref

from barnabas.broker.controller import znodes
from barnabas.broker.controller.cluster_image import ClusterChange
from barnabas.broker.controller.images import NO_LEADER, PartitionImage
from barnabas.broker.controller.view import ClusterView
from barnabas.broker.registry.tree_operations import Create, Delete, Set
from tests.broker.controller.cluster import TIMESTAMP, Cluster, broker_data, topic_id_of, topic_operations
from tests.broker.registry.memory import MemoryRegistry


def delete_operations(name: str, partitions: int) -> list[Delete]:
    below = [
        Delete(path)
        for index in range(partitions)
        for path in (znodes.state_path(name, index), znodes.partition_path(name, index))
    ]
    return [*below, *map(Delete, (znodes.partitions_path(name), znodes.topic_path(name), f"/config/topics/{name}"))]


def test_an_empty_tree() -> None:
    view = ClusterView(MemoryRegistry())
    assert not view.topics
    assert not view.brokers
    assert view.controller_id == -1
    assert view.controller_epoch == 0
    assert view.cluster_id is None
    assert view.broker_configs(1) == {}
    assert view.broker_configs(None) == {}


def test_topics_that_existed_before() -> None:
    view = Cluster(brokers=(1, 2), topics={"t": [(1, 2), (2, 1)], "__consumer_offsets": [(1,)]}).view
    topic = view.topic("t")
    assert topic is not None
    assert topic.topic_id == topic_id_of("t")
    assert topic.partitions == (
        PartitionImage(0, (1, 2), 1, 0, (1, 2), partition_epoch=0),
        PartitionImage(1, (2, 1), 2, 0, (2, 1), partition_epoch=0),
    )
    assert not topic.is_internal
    assert view.topics["__consumer_offsets"].is_internal
    assert view.topic_by_id(topic_id_of("t")) is topic
    assert view.partition("t", 1) is topic.partitions[1]
    assert view.partition("t", 2) is None
    assert view.partition("t", -1) is None
    assert view.partition("u", 0) is None
    assert view.topic_by_id(bytes(16)) is None


def test_topics_come_and_go() -> None:
    cluster = Cluster()
    cluster.registry.apply(topic_operations("t", [(1,), (1,)], {"retention.ms": "7"}))
    topic = cluster.view.topics["t"]
    assert [partition.leader_id for partition in topic.partitions] == [1, 1]
    assert topic.configs == {"retention.ms": "7"}
    assert cluster.view.topic_by_id(topic_id_of("t")) is topic

    cluster.registry.apply(delete_operations("t", 2))
    assert cluster.view.topic("t") is None
    assert cluster.view.topic_by_id(topic_id_of("t")) is None


def test_a_partition_changes_and_the_others_stay() -> None:
    cluster = Cluster(brokers=(1, 2), topics={"t": [(1, 2), (1, 2)], "u": [(1,)]})
    before, other = cluster.view.topics["t"], cluster.view.topics["u"]
    moved = PartitionImage(1, (1, 2), leader_id=2, leader_epoch=1, isr_nodes=(2,))
    cluster.registry.apply([Set(znodes.state_path("t", 1), znodes.write_state(moved, 1))])
    after = cluster.view.topics["t"]
    assert after is not before
    assert after.partitions[0] is before.partitions[0]
    assert after.partitions[1] == moved._replace(partition_epoch=1)
    assert cluster.view.topic_by_id(after.topic_id) is after
    assert cluster.view.topics["u"] is other


def test_settings_of_a_topic_change() -> None:
    cluster = Cluster(topics={"t": [(1,)]})
    before = cluster.view.topics["t"]
    cluster.registry.apply([Set(znodes.topic_config_path("t"), znodes.write_configs({"retention.ms": "9"}))])
    assert cluster.view.topics["t"].configs == {"retention.ms": "9"}
    assert before.configs == {}


def test_a_topic_that_shows_before_its_partitions_states() -> None:
    # ZooKeeper may report a transaction's nodes one by one.
    cluster = Cluster()
    seen: list[list[int] | None] = []
    for operation in topic_operations("t", [(1,), (1,)]):
        cluster.registry.apply([operation])
        topic = cluster.view.topic("t")
        seen.append([partition.leader_id for partition in topic.partitions] if topic else None)
    no_leader = [NO_LEADER, NO_LEADER]
    assert seen == [None, no_leader, no_leader, no_leader, [1, NO_LEADER], [1, NO_LEADER], [1, 1]]


def test_a_state_that_shows_before_the_new_assignment() -> None:
    cluster = Cluster(topics={"t": [(1,)]})
    added = PartitionImage(1, (1,), 1, 0, (1,))
    cluster.registry.apply([Create(znodes.partition_path("t", 1))])
    cluster.registry.apply([Create(znodes.state_path("t", 1), znodes.write_state(added, 1))])
    assert cluster.view.partition("t", 1) is None
    partitions = [*cluster.view.topics["t"].partitions, added]
    cluster.registry.apply([Set(znodes.topic_path("t"), znodes.write_topic(topic_id_of("t"), partitions))])
    assert cluster.view.partition("t", 1) == added._replace(partition_epoch=0)


def test_brokers_and_the_controller() -> None:
    cluster = Cluster(brokers=(1,), topics={"t": [(1, 2)]})
    partition = cluster.view.topics["t"].partitions[0]
    assert list(cluster.view.brokers) == [1]
    assert cluster.view.offline_replicas(partition) == [2]
    cluster.registry.apply(
        [
            Create(znodes.broker_path(2), broker_data(2), ephemeral=True),
            Create(znodes.CONTROLLER, znodes.write_controller(2, TIMESTAMP), ephemeral=True),
            Set(znodes.CONTROLLER_EPOCH, b"8"),
            Create(znodes.CLUSTER_ID, znodes.write_cluster_id("me")),
        ]
    )
    view = cluster.view
    assert list(view.brokers) == [1, 2]
    assert view.brokers[2].endpoints[0].port == 9092
    assert (view.controller_id, view.controller_epoch, view.cluster_id) == (2, 8, "me")
    assert view.offline_replicas(partition) == []
    cluster.registry.apply([Delete(znodes.broker_path(1)), Delete(znodes.CONTROLLER)])
    assert list(view.brokers) == [2]
    assert view.controller_id == -1


def test_settings_of_brokers() -> None:
    cluster = Cluster()
    cluster.registry.apply([Create(znodes.broker_config_path(1), znodes.write_configs({"a": "1"}))])
    cluster.registry.apply([Create(znodes.broker_config_path(None), znodes.write_configs({"b": "2"}))])
    assert cluster.view.broker_configs(1) == {"a": "1"}
    assert cluster.view.broker_configs(None) == {"b": "2"}
    assert cluster.view.broker_configs(2) == {}
    assert set(cluster.view.configured_brokers()) == {1, None}


def test_listeners_are_called_once_per_transaction() -> None:
    cluster = Cluster(topics={"gone": [(1,)], "same": [(1,)]})
    heard: list[ClusterChange] = []
    shown: list[bool] = []
    cluster.view.subscribe(heard.append)
    cluster.view.subscribe(lambda change: shown.append("new" in cluster.view.topics))
    gone = cluster.view.topics["gone"]
    cluster.registry.apply([*topic_operations("new", [(1,), (1,)]), *delete_operations("gone", 1)])
    assert len(heard) == 1
    assert heard[0].topics == {"new": (None, cluster.view.topics["new"]), "gone": (gone, None)}
    assert (heard[0].brokers, heard[0].broker_configs) == (False, False)
    assert shown == [True]

    cluster.registry.apply([Create(znodes.broker_config_path(1), znodes.write_configs({}))])
    cluster.registry.apply([Set(znodes.CONTROLLER_EPOCH, b"2")])
    assert [(change.brokers, change.broker_configs) for change in heard[1:]] == [(False, True), (True, False)]
    assert not heard[1].topics


def test_a_topic_that_is_deleted_and_created_in_one_transaction() -> None:
    cluster = Cluster(topics={"t": [(1,)]})
    heard: list[ClusterChange] = []
    cluster.view.subscribe(heard.append)
    partitions = [PartitionImage(0, (1,), 1, 0, (1,))]
    again = topic_operations("t", [(1,)])
    again[1] = Create(znodes.topic_path("t"), znodes.write_topic(b"another id 16 b.", partitions))
    cluster.registry.apply([*delete_operations("t", 1), *again])
    old, new = heard[0].topics["t"]
    assert old is not None
    assert new is not None
    assert (old.topic_id, new.topic_id) == (topic_id_of("t"), b"another id 16 b.")
    assert cluster.view.topic_by_id(old.topic_id) is None


def test_listeners_are_called_only_for_changes() -> None:
    cluster = Cluster()
    heard: list[ClusterChange] = []
    cluster.view.subscribe(heard.append)
    revision = cluster.view.revision
    cluster.registry.apply([Create("/elsewhere")])
    assert heard == []
    assert cluster.view.revision == revision + 1


def test_a_listener_leaves() -> None:
    cluster = Cluster()
    heard: list[ClusterChange] = []
    cancel = cluster.view.subscribe(heard.append)
    cancel()
    cancel()
    cluster.registry.apply(topic_operations("t", [(1,)]))
    assert heard == []


async def test_a_listener_that_fails_does_not_keep_news_from_the_others() -> None:
    cluster = Cluster()
    heard: list[ClusterChange] = []

    def fail(change: ClusterChange) -> None:
        raise LookupError("a bug")

    cluster.view.subscribe(fail)
    cluster.view.subscribe(heard.append)
    reported: list[BaseException] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))
    cluster.registry.apply(topic_operations("t", [(1,)]))
    assert len(heard) == 1
    assert isinstance(reported[0], ExceptionGroup)
    assert isinstance(reported[0].exceptions[0], LookupError)


def test_images_can_be_the_keys_of_caches() -> None:
    cluster = Cluster(topics={"t": [(1,)]})
    cache = weakref.WeakKeyDictionary({cluster.view.topics["t"]: "derived"})
    assert cache[cluster.view.topics["t"]] == "derived"
    cluster.registry.apply([Set(znodes.topic_config_path("t"), znodes.write_configs({"a": "b"}))])
    gc.collect()
    assert len(cache) == 0
