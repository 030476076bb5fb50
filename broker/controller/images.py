"""What the cluster looks like: brokers, topics and partitions as values that never change but are replaced."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from broker.controller.topic_names import is_internal

NO_LEADER: Final = -1


class Endpoint(NamedTuple):
    """Where a broker's listener can be reached. The listener's name is "PLAINTEXT" or one that the user chose."""

    name: str
    security_protocol: str
    host: str
    port: int


class BrokerImage(NamedTuple):
    """A broker that is alive."""

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None


class PartitionImage(NamedTuple):
    """A partition's replicas and its leader. The names are those of the protocol."""

    partition_index: int
    replica_nodes: tuple[int, ...]
    leader_id: int = NO_LEADER
    leader_epoch: int = 0
    isr_nodes: tuple[int, ...] = ()
    partition_epoch: int = -1  # the version of the partition's state node
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()

    @property
    def is_reassigning(self) -> bool:
        return bool(self.adding_replicas or self.removing_replicas)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class TopicImage:
    """A topic. Two are equal only if they are the same object, so that what is derived from one can be cached."""

    name: str
    topic_id: bytes
    partitions: tuple[PartitionImage, ...]  # by index, without gaps
    configs: Mapping[str, str]  # only what was set for this topic
    version: int  # of the topic's node

    @property
    def is_internal(self) -> bool:
        return is_internal(self.name)
