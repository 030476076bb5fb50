"""The cluster as handlers see it: the tree's facts, parsed once and quick to look up.

The view follows the tree: each transaction changes it in one step, and only where the transaction changed the tree. It
never waits for a complete picture, since ZooKeeper may show a topic before its partitions' states: until then a
partition has no leader.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from barnabas.broker.controller import znodes
from barnabas.broker.controller.cluster_image import ClusterChange, ClusterImage, TopicChange
from barnabas.broker.controller.images import PartitionImage, TopicImage
from barnabas.broker.registry.registry import Change, Registry


class _Stale:
    """The parts of a topic that have to be read again."""

    def __init__(self) -> None:
        self.assignment = False
        self.configs = False
        self.partitions: set[int] = set()


class ClusterView(ClusterImage):
    """The registry's tree. Belongs to the loop's thread, as the registry does."""

    revision: int  # rises with every transaction that the view has followed

    def __init__(self, registry: Registry) -> None:
        super().__init__()
        self._registry = registry
        self._broker_configs: dict[str, Mapping[str, str]] = {}
        self.revision = 0
        for name in self._children(znodes.TOPICS):
            self.put(name, self._read_topic(name))
        self._read_brokers()
        self._read_broker_configs()
        self.close = registry.watch("/", self._follow)
        """Ends the view: it changes no more."""

    def broker_configs(self, broker_id: int | None) -> Mapping[str, str]:
        """What was set at run-time for this broker alone, or with None for all of them."""
        return self._broker_configs.get(znodes.broker_config_path(broker_id), {})

    def configured_brokers(self) -> list[int | None]:
        """The brokers for which something was set at run-time; None stands for all of them."""
        names = (path.rpartition("/")[2] for path in self._broker_configs)
        return [None if name == znodes.DEFAULT_BROKER else int(name) for name in names]

    def has(self, path: str) -> bool:
        return self._registry.find(path) is not None

    def has_leftover_configs(self, topic: str) -> bool:
        """Whether settings exist for a topic that does not."""
        return topic not in self.topics and self._registry.find(znodes.topic_config_path(topic)) is not None

    def topics_with_leftover_configs(self) -> list[str]:
        return [name for name in self._children(znodes.TOPIC_CONFIGS) if name not in self.topics]

    def _follow(self, changes: Sequence[Change]) -> None:
        stale: dict[str, _Stale] = {}
        brokers = broker_configs = False
        for path, _ in changes:
            match path.split("/"):
                case ["", "brokers", "topics", topic]:
                    stale.setdefault(topic, _Stale()).assignment = True
                case ["", "brokers", "topics", topic, "partitions", partition, "state"]:
                    stale.setdefault(topic, _Stale()).partitions.add(int(partition))
                case ["", "config", "topics", topic]:
                    stale.setdefault(topic, _Stale()).configs = True
                case ["", "brokers", "ids", _] | ["", "controller"] | ["", "controller_epoch"] | ["", "cluster", "id"]:
                    brokers = True
                case ["", "config", "brokers", _]:
                    broker_configs = True
        if brokers:
            self._read_brokers()
        if broker_configs:
            self._read_broker_configs()
        topics: dict[str, TopicChange] = {}
        for topic, parts in stale.items():
            old = self.topics.get(topic)
            new = self._read_again(topic, old, parts)
            if new is not old:
                self.put(topic, new)
                topics[topic] = TopicChange(old, new)
        self.revision += 1
        if topics or brokers or broker_configs:
            self.tell(ClusterChange(topics, brokers, broker_configs))

    def _read_again(self, name: str, old: TopicImage | None, stale: _Stale) -> TopicImage | None:
        if stale.assignment:
            return self._read_topic(name)
        if old is None:
            return None
        topic = old
        if stale.configs:
            topic = replace(topic, configs=self._read_configs(znodes.topic_config_path(name)))
        if stale.partitions:
            partitions = list(topic.partitions)
            for index in stale.partitions:
                if index < len(partitions):  # otherwise the assignment, which is still to come, will bring it
                    known = partitions[index]
                    partitions[index] = self._read_partition(
                        name, index, known.replica_nodes, known.adding_replicas, known.removing_replicas
                    )
            topic = replace(topic, partitions=tuple(partitions))
        return topic

    def _read_topic(self, name: str) -> TopicImage | None:
        node = self._registry.find(znodes.topic_path(name))
        if node is None:
            return None
        topic_id, replicas, adding, removing = znodes.read_topic(name, node)
        partitions = tuple(
            self._read_partition(name, index, brokers, adding.get(index, ()), removing.get(index, ()))
            for index, brokers in enumerate(replicas)
        )
        configs = self._read_configs(znodes.topic_config_path(name))
        return TopicImage(name, topic_id, partitions, configs, node.version)

    def _read_partition(
        self, topic: str, index: int, replicas: tuple[int, ...], adding: tuple[int, ...], removing: tuple[int, ...]
    ) -> PartitionImage:
        node = self._registry.find(znodes.state_path(topic, index))
        if node is None:
            return PartitionImage(index, replicas, adding_replicas=adding, removing_replicas=removing)
        leader_id, leader_epoch, isr = znodes.read_state(topic, index, node)
        return PartitionImage(index, replicas, leader_id, leader_epoch, isr, node.version, adding, removing)

    def _read_configs(self, path: str) -> Mapping[str, str]:
        node = self._registry.find(path)
        return {} if node is None else znodes.read_configs(path, node)

    def _read_brokers(self) -> None:
        ids = sorted(znodes.read_broker_id(name) for name in self._children(znodes.BROKER_IDS))
        registered = ((broker_id, self._registry.get(znodes.broker_path(broker_id))) for broker_id in ids)
        self.brokers = {broker_id: znodes.read_broker(broker_id, node) for broker_id, node in registered}
        controller = self._registry.find(znodes.CONTROLLER)
        self.controller_id = -1 if controller is None else znodes.read_controller(controller)
        epoch = self._registry.find(znodes.CONTROLLER_EPOCH)
        self.controller_epoch = 0 if epoch is None else znodes.read_controller_epoch(epoch)
        cluster_id = self._registry.find(znodes.CLUSTER_ID)
        self.cluster_id = None if cluster_id is None else znodes.read_cluster_id(cluster_id)

    def _read_broker_configs(self) -> None:
        paths = [f"{znodes.BROKER_CONFIGS}/{name}" for name in self._children(znodes.BROKER_CONFIGS)]
        self._broker_configs = {path: self._read_configs(path) for path in paths}

    def _children(self, path: str) -> Iterable[str]:
        return self._registry.children(path) if self._registry.find(path) else ()
