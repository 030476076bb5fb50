"""The controller: makes decisions about the cluster and carries them out in the registry.

A decision is made from the view and carried out as one transaction. If others changed the tree in between so that it no
longer fits, it is made again from the newer view. When a method returns, the view shows what it did, and the view's
listeners have run.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from broker.controller import znodes
from broker.controller.create_partitions import NewPartitions, create_partitions
from broker.controller.create_topics import NewTopic, TopicSettings, ValidateConfigs, create_topics
from broker.controller.decisions import Decision, PartitionResult, Result, TopicResult
from broker.controller.delete_topics import TopicReference, delete_topics
from broker.controller.elections import ElectionType, elect_leaders
from broker.controller.images import BrokerImage
from broker.controller.reassignments import Reassignment, alter_partition_reassignments
from broker.controller.startup import start_broker
from broker.controller.uuids import random_uuid
from broker.controller.view import ClusterView
from broker.registry.errors import Conflict
from broker.registry.operations import Create, Operation, Set
from broker.registry.registry import Registry

ChangeConfigs = Callable[[Mapping[str, str]], Mapping[str, str]]
"""Makes new settings out of the present ones. It may be called again, if the present ones were no longer present."""


class ControllerSettings(Protocol):
    """What the controller reads of the broker's settings, each time anew."""

    @property
    def num_partitions(self) -> int: ...
    @property
    def default_replication_factor(self) -> int: ...
    @property
    def delete_topic_enable(self) -> bool: ...


class Controller:
    """See the module's description. What it needs of the world beside the registry is handed to it."""

    def __init__(
        self,
        registry: Registry,
        cluster: ClusterView,
        settings: ControllerSettings,
        *,
        validate_configs: ValidateConfigs,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._registry = registry
        self._cluster = cluster
        self._settings = settings
        self._validate_configs = validate_configs
        self._random_bytes = random_bytes

    async def start(self, broker: BrokerImage, *, new_cluster_id: str, timestamp: int, clean: bool) -> None:
        """Enter `broker` into the tree. `clean`: its last run did not end in a crash. `timestamp`: in milliseconds.

        A cluster that has no id yet gets the new one.
        """
        operations = start_broker(
            self._registry, self._cluster, broker, new_cluster_id=new_cluster_id, timestamp=timestamp, clean=clean
        )
        await self._registry.multi(operations)

    async def create_topics(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> Sequence[TopicResult]:
        settings = TopicSettings(
            num_partitions=self._settings.num_partitions,
            replication_factor=self._settings.default_replication_factor,
            validate_configs=self._validate_configs,
            new_topic_id=self._new_uuid,
            pick=self._pick,
        )
        return await self._carry_out(lambda: create_topics(self._cluster, topics, settings), validate_only)

    async def create_partitions(
        self, topics: Sequence[NewPartitions], *, validate_only: bool = False
    ) -> Sequence[TopicResult]:
        return await self._carry_out(lambda: create_partitions(self._cluster, topics), validate_only)

    async def delete_topics(self, topics: Sequence[TopicReference]) -> Sequence[TopicResult]:
        enable = self._settings.delete_topic_enable
        return await self._carry_out(lambda: delete_topics(self._cluster, topics, delete_topic_enable=enable))

    async def elect_leaders(
        self, election_type: ElectionType, partitions: Sequence[tuple[str, int]] | None
    ) -> Sequence[PartitionResult]:
        return await self._carry_out(lambda: elect_leaders(self._cluster, election_type, partitions))

    async def alter_partition_reassignments(
        self, reassignments: Sequence[Reassignment], *, allow_replication_factor_change: bool = True
    ) -> Sequence[PartitionResult]:
        return await self._carry_out(
            lambda: alter_partition_reassignments(
                self._cluster, reassignments, allow_replication_factor_change=allow_replication_factor_change
            )
        )

    async def alter_topic_configs(self, topic: str, change: ChangeConfigs, *, validate_only: bool = False) -> None:
        """Let `change` make a topic's new settings. Raises what that raises, and NoNode if there is no such topic."""
        path = znodes.topic_config_path(topic)
        self._registry.get(path)
        await self._alter_configs(path, change, validate_only)

    async def alter_broker_configs(
        self, broker_id: int | None, change: ChangeConfigs, *, validate_only: bool = False
    ) -> None:
        """Let `change` make the run-time settings of a broker, or with None of all brokers."""
        await self._alter_configs(znodes.broker_config_path(broker_id), change, validate_only)

    async def _carry_out(self, decide: Callable[[], Decision[Result]], validate_only: bool = False) -> Sequence[Result]:
        while True:
            revision = self._cluster.revision
            decision = decide()
            if validate_only or not decision.operations:
                return decision.results
            try:
                await self._registry.multi(decision.operations)
            except Conflict:
                if self._cluster.revision == revision:  # it does not even fit the tree that it was made from
                    raise
            else:
                return decision.results

    async def _alter_configs(self, path: str, change: ChangeConfigs, validate_only: bool) -> None:
        def decide() -> Decision[None]:
            node = self._registry.find(path)
            present = {} if node is None else znodes.read_configs(path, node)
            configs = change(present)
            data = znodes.write_configs(configs)
            operation: Operation = Create(path, data) if node is None else Set(path, data, node.version)
            return Decision([], [] if configs == present else [operation])

        await self._carry_out(decide, validate_only)

    def _new_uuid(self) -> bytes:
        return random_uuid(self._random_bytes)

    def _pick(self, below: int) -> int:
        return int.from_bytes(self._random_bytes(8)) % below
