"""The cluster as immutable values: brokers, topics and partitions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from barnabas.broker.controller.topic_names import is_internal

NO_LEADER: Final = -1
LEADER_DURING_DELETE: Final = -2
"""In place of a leader: the partition's topic is being deleted."""


class Endpoint(NamedTuple):
    """Where a broker's listener can be reached. The listener's name is "PLAINTEXT" or one that the user chose."""

    name: str
    security_protocol: str
    host: str
    port: int


class BrokerImage(NamedTuple):
    """A broker that is alive. Each registration of a broker has a higher epoch than the ones before; -1: not known.

    `after_crash`: its last run did not end cleanly, so the ends of its logs may be gone.
    """

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    epoch: int = -1
    after_crash: bool = False


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
