from broker.controller.images import BrokerImage, Endpoint
from broker.controller.startup import start_broker
from broker.controller.view import ClusterView
from broker.registry.operations import Delete
from tests.broker.controller.cluster import TIMESTAMP, topic_operations
from tests.broker.registry.memory import MemoryRegistry

BROKER = BrokerImage(1, (Endpoint("PLAINTEXT", "PLAINTEXT", "localhost", 9092),))


def start(registry: MemoryRegistry, *, new_cluster_id: str = "first", clean: bool = True) -> ClusterView:
    view = ClusterView(registry)
    operations = start_broker(registry, view, BROKER, new_cluster_id=new_cluster_id, timestamp=TIMESTAMP, clean=clean)
    registry.apply(operations)
    return view


def die(registry: MemoryRegistry) -> None:
    registry.apply([Delete("/brokers/ids/1"), Delete("/controller")])


def test_the_first_start() -> None:
    registry = MemoryRegistry()
    view = start(registry)
    assert view.cluster_id == "first"
    assert view.brokers == {1: BROKER}
    assert (view.controller_id, view.controller_epoch) == (1, 1)
    assert registry.get("/brokers/ids/1").ephemeral
    assert registry.get("/controller").ephemeral
    registry.apply(topic_operations("t", [(1,)]))
    assert "t" in view.topics


def test_the_next_start() -> None:
    registry = MemoryRegistry()
    start(registry)
    registry.apply(topic_operations("t", [(1,)]))
    die(registry)
    view = start(registry, new_cluster_id="second")
    assert view.cluster_id == "first"
    assert view.controller_epoch == 2
    assert view.topics["t"].partitions[0].leader_epoch == 0


def test_after_a_crash_logs_go_on_in_a_new_leader_epoch() -> None:
    registry = MemoryRegistry()
    start(registry)
    registry.apply(topic_operations("t", [(1,), (2,)]))
    die(registry)
    view = start(registry, clean=False)
    assert [partition.leader_epoch for partition in view.topics["t"].partitions] == [1, 0]
