"""A broker's first steps in the tree: the nodes that others hang on, the cluster's id, the broker's own node."""

from broker.controller import znodes
from broker.controller.elections import raise_leader_epochs
from broker.controller.images import BrokerImage
from broker.controller.view import ClusterView
from broker.registry.operations import Create, Operation, Set
from broker.registry.registry import Registry


def start_broker(
    registry: Registry, cluster: ClusterView, broker: BrokerImage, *, new_cluster_id: str, timestamp: int, clean: bool
) -> list[Operation]:
    """What makes `broker` a member of the cluster, and its controller.

    `new_cluster_id` counts only if the cluster has none yet. `clean` says whether the broker's last run ended well; if
    not, its partitions go on in a new leader epoch.
    """
    operations: list[Operation] = [Create(path) for path in znodes.SKELETON if registry.find(path) is None]
    if cluster.cluster_id is None:
        operations.append(Create(znodes.CLUSTER_ID, znodes.write_cluster_id(new_cluster_id)))
    operations.append(Create(znodes.broker_path(broker.broker_id), znodes.write_broker(broker, timestamp), True))
    operations.append(Create(znodes.CONTROLLER, znodes.write_controller(broker.broker_id, timestamp), True))
    epoch = cluster.controller_epoch + 1
    data = znodes.write_controller_epoch(epoch)
    known = registry.find(znodes.CONTROLLER_EPOCH)
    operations.append(
        Create(znodes.CONTROLLER_EPOCH, data) if known is None else Set(znodes.CONTROLLER_EPOCH, data, known.version)
    )
    if not clean:
        operations += raise_leader_epochs(cluster, broker.broker_id, epoch)
    return operations
