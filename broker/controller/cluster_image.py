"""The cluster at a moment, quick to look up: what the controller decides on and what handlers answer from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from barnabas.broker.controller.images import BrokerImage, PartitionImage, TopicImage


class TopicChange(NamedTuple):
    """A topic before and after. Both are set, with different ids, if it was deleted and recreated at once."""

    old: TopicImage | None
    new: TopicImage | None


class ClusterChange(NamedTuple):
    """What one transaction changed."""

    topics: Mapping[str, TopicChange]
    brokers: bool  # which are alive, or which of them is the controller
    broker_configs: bool


Listener = Callable[[ClusterChange], None]


class ClusterImage:
    """Topics by name and id, brokers, and the controller. Subclasses keep it up to date and report changes."""

    topics: dict[str, TopicImage]
    brokers: Mapping[int, BrokerImage]
    cluster_id: str | None
    controller_id: int  # -1: none
    controller_epoch: int

    def __init__(self) -> None:
        self.topics = {}
        self.brokers = {}
        self.cluster_id = None
        self.controller_id = -1
        self.controller_epoch = 0
        self._topics_by_id: dict[bytes, TopicImage] = {}
        self._listeners: list[Listener] = []

    def topic(self, name: str) -> TopicImage | None:
        return self.topics.get(name)

    def topic_by_id(self, topic_id: bytes) -> TopicImage | None:
        return self._topics_by_id.get(topic_id)

    def name_of(self, topic_id: bytes) -> str | None:
        image = self._topics_by_id.get(topic_id)
        return None if image is None else image.name

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        image = self.topics.get(topic)
        return image.partitions[index] if image and 0 <= index < len(image.partitions) else None

    def offline_replicas(self, partition: PartitionImage) -> list[int]:
        return [broker_id for broker_id in partition.replica_nodes if broker_id not in self.brokers]

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` after every change, once the view shows it. Returns a function that cancels this."""
        self._listeners.append(listener)

        def cancel() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return cancel

    # --- for those who keep it ---

    def put(self, name: str, topic: TopicImage | None) -> None:
        old = self.topics.pop(name, None) if topic is None else self.topics.get(name)
        if old is not None:
            self._topics_by_id.pop(old.topic_id, None)
        if topic is not None:
            self.topics[name] = topic
            self._topics_by_id[topic.topic_id] = topic

    def tell(self, change: ClusterChange) -> None:
        """Call every listener, even after one fails."""
        failures: list[Exception] = []
        for listener in tuple(self._listeners):
            try:
                listener(change)
            except Exception as failure:
                failures.append(failure)
        if failures:
            raise ExceptionGroup("a change of the cluster was not followed", failures)
