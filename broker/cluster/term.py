"""A controller's term: from its election until another broker is elected or its session with the registry ends.

The term follows the registry's tree by a view of its own. Whatever changes there goes to brokers as orders, in the
order of the changes; nothing else sends orders, except that a new broker is told everything. When brokers come or go,
one task looks after the partitions: first they get the leaders that they should have, then new brokers are told about
them. Writes that fail are retried as long as the term lasts.

Every write fails if another broker has been elected. Then the term is over, and calls `on_end`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

import structlog

from barnabas.broker.background import Background
from barnabas.broker.clock import Every
from barnabas.broker.cluster import producer_id_blocks
from barnabas.broker.cluster.deletions import topics_to_delete
from barnabas.broker.cluster.log_dir_events import log_dir_events
from barnabas.broker.cluster.ordering import Ordering, Taken
from barnabas.broker.cluster.producer_id_blocks import ProducerIdBlock
from barnabas.broker.cluster.world import World
from barnabas.broker.cluster.writes import Deposed, Writes
from barnabas.broker.controller import znodes
from barnabas.broker.controller.alter_partition import IsrResult, WantedIsr, alter_partitions
from barnabas.broker.controller.cluster_image import ClusterChange, TopicChange
from barnabas.broker.controller.create_partitions import NewPartitions, create_partitions
from barnabas.broker.controller.create_topics import (
    NewTopic,
    TopicSettings,
    check_request,
    create_topics,
)
from barnabas.broker.controller.delete_topics import TopicReference, delete_topics
from barnabas.broker.controller.elections import ElectionType, elect_leaders, imbalanced_partitions, move_leader
from barnabas.broker.controller.failover import (
    Brokers,
    first_states,
    hand_over,
    look_after,
    recovered,
    still_led,
    without_failed,
)
from barnabas.broker.controller.images import PartitionImage, TopicImage
from barnabas.broker.controller.orders import Sender
from barnabas.broker.controller.reassignments import Reassignment, alter_partition_reassignments, finish_reassignments
from barnabas.broker.controller.results import Decision, PartitionResult, TopicResult
from barnabas.broker.controller.uuids import random_uuid
from barnabas.broker.controller.view import ClusterView
from barnabas.broker.interbroker.order_lines import OrderLines
from barnabas.broker.quotas.mutations import Admit, everything
from barnabas.broker.registry.errors import Conflict, RegistryError, RegistryUnavailable
from barnabas.broker.registry.registry import Registry
from barnabas.broker.registry.tree_operations import Delete, Operation
from barnabas.broker.server.pieces import parts, spread
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.topic_partition import TopicPartition

log = structlog.get_logger()

MIRRORED: Final = (znodes.TOPICS, "/admin", znodes.PRODUCER_ID_BLOCK, znodes.LOG_DIR_EVENTS)
"""What a controller needs to know about the tree besides what every broker knows."""

# A request may name more topics than should be created or deleted in one turn of the loop.
_TOPICS_AT_A_TIME: Final = 50
# ZooKeeper takes transactions of up to a megabyte.
_PARTITIONS_AT_A_TIME: Final = 1000
_RETRY_SECONDS: Final = 0.5

Answer = TypeVar("Answer", TopicResult, PartitionResult)


class Term:
    """See the module's description. Handlers ask it for what only the controller may do."""

    epoch: int
    cluster: ClusterView

    def __init__(
        self, registry: Registry, world: World, epoch: int, epoch_version: int, on_end: Callable[[], None]
    ) -> None:
        """The registry's mirror has all of the tree that is needed. `on_end` is called when the term is over, unless by
        `end`."""
        znodes.read_producer_id_block_end(
            registry.find(znodes.PRODUCER_ID_BLOCK)
        )  # MalformedNode is better now than later
        self.epoch = epoch
        self.cluster = ClusterView(registry)
        self._registry = registry
        self._world = world
        self._settings = world.settings
        self._epoch_version = epoch_version
        self._on_end = on_end
        self._writes = Writes(registry, self.cluster, epoch_version, self._deposed)
        self.carry_out = self._writes.carry_out
        self._lines = OrderLines(
            world.broker_id,
            world.serve_locally,
            world.open_channel,
            world.clock,
            lambda: world.settings.request_timeout_ms,
            self._doubt,
        )
        self._ordering = Ordering(
            Sender(world.broker_id, epoch), self.cluster, self._lines, world.listener, self._disk_failed
        )
        self.unclean_elections = 0  # of leaders that were not in sync, since the term began
        self._lost: set[int] = set()  # brokers, since partitions were last looked after
        self._failed: dict[tuple[int, TopicPartition], int] = {}  # what brokers cannot write to, in which leader epoch
        self._shutting_down: dict[int, int] = {}  # brokers, each with its epoch
        self._all_due = True
        self._topics_due: set[str] = set()
        self._attention = asyncio.Event()
        self._background = Background("the controller's background work failed")
        self._rebalancing = Every(
            world.clock, lambda: self._settings.leader_imbalance_check_interval_seconds * 1000, self._rebalance
        )
        self._unsubscribe = self.cluster.subscribe(self._follow)
        self._unwatch = registry.watch(znodes.LOG_DIR_EVENTS, lambda changes: self._attention.set())

    # --- the life of a term ---

    async def begin(self) -> None:
        """Take over: every partition gets its leader, every broker is told everything, and unfinished work
        continues."""
        try:
            await self._writes.carry_out_in_parts(self._remove_leftover_configs)
            await self._look_after()
        except RegistryUnavailable as failure:
            log.warning("the controller cannot write yet", reason=str(failure))
            self._attention.set()
        if not self._writes.ended:
            self._background.start(self._tend())
            self._rebalancing.start()

    def end(self) -> None:
        """Decide nothing and order nothing any more."""
        if self._writes.ended:
            return
        self._writes.ended = True
        self._rebalancing.cancel()
        self._unsubscribe()
        self._unwatch()
        self.cluster.close()
        self._lines.close()
        self._background.cancel()

    async def own_broker_told(self) -> None:
        """Wait until the controller's own broker has accepted the orders that it got when the term started."""
        await self._ordering.told(self._world.broker_id)

    async def own_broker_caught_up(self) -> None:
        """Wait until the controller's own broker shows its clients all that has been decided so far."""
        await self._ordering.own_broker_caught_up()

    @property
    def is_active(self) -> bool:
        return not self._writes.ended

    @property
    def is_busy(self) -> bool:
        """Whether something is still to be looked after, or brokers have orders that they have not taken."""
        return self._all_due or bool(self._topics_due) or self._lines.is_busy

    def _deposed(self) -> None:
        if self.is_active:
            log.warning("controller deposed", broker=self._world.broker_id, epoch=self.epoch)
            self.end()
            self._on_end()

    def _doubt(self) -> None:
        """A broker has heard from a newer controller. The registry knows whether there is one."""

        async def look() -> None:
            try:
                await self._registry.refresh(znodes.CONTROLLER_EPOCH)
            except RegistryError:
                return  # whatever is written next finds out
            node = self._registry.find(znodes.CONTROLLER_EPOCH)
            if node is None or node.version != self._epoch_version:
                self._deposed()

        self._background.start(look())

    # --- following the tree ---

    def _follow(self, change: ClusterChange) -> None:
        if change.brokers:
            self._lost |= self._ordering.drop_lost()
            self._ordering.announce_brokers()
        self._ordering.follow_topics(change.topics.values())
        if change.brokers:
            for broker_id, epoch in list(self._shutting_down.items()):
                broker = self.cluster.brokers.get(broker_id)
                if broker is None or broker.epoch != epoch:
                    del self._shutting_down[broker_id]
            self._all_due = True
        if change.broker_configs:
            self._all_due = True  # an unclean election may be allowed now
        live = self.cluster.brokers
        self._topics_due |= {name for name, each in change.topics.items() if _needs_attention(each, live)}
        if self._all_due or self._topics_due:
            self._attention.set()

    def suspicions_changed(self) -> None:
        """Another broker seems to have died, or one that seemed dead answers."""
        self._all_due = True
        self._attention.set()

    def _disk_failed(self, broker_id: int, partitions: Mapping[TopicPartition, int]) -> None:
        if self.is_active:
            self._failed |= {(broker_id, each): epoch for each, epoch in partitions.items()}
            self._attention.set()

    @property
    def _suspects(self) -> list[int]:
        """Those that seem to have died and are still registered."""
        live = self.cluster.brokers
        return [each for each, epoch in self._world.suspects().items() if each in live and live[each].epoch == epoch]

    @property
    def _on_their_way_out(self) -> frozenset[int]:
        """Registered brokers that must not lead any more."""
        return frozenset((*self._shutting_down, *self._suspects))

    async def _tend(self) -> None:
        while True:
            await self._attention.wait()
            self._attention.clear()
            try:
                await self._look_after()
            except Deposed:
                return
            except RegistryUnavailable:
                self._all_due = True
                await self._pause(_RETRY_SECONDS)
                self._attention.set()
            except Exception:
                # This is unexpected, but the cluster still needs its controller.
                log.exception("leaders could not be elected; trying again")
                self._all_due = True
                await self._pause(_RETRY_SECONDS)
                self._attention.set()

    async def _look_after(self) -> None:
        """Give partitions the leaders that they should have, then tell brokers that are new, then finish moves."""
        lost = set(self._lost)
        everything, self._all_due = self._all_due, False
        names, self._topics_due = self._topics_due, set()
        await self._writes.carry_out_in_parts(partial(self._elections, lost, None if everything else names))
        self._lost -= lost
        for broker_id in self._suspects:
            await self._writes.carry_out_in_parts(partial(self._hand_over, broker_id))
        failed = dict(self._failed)
        if failed:
            log.warning("moving leaders off brokers that cannot write", brokers=sorted({each for each, _ in failed}))
            await self._writes.carry_out_in_parts(lambda: without_failed(self.cluster, failed, self._on_their_way_out))
            self._failed = {each: epoch for each, epoch in self._failed.items() if failed.get(each) != epoch}
        if everything:
            self._ordering.follow_brokers()
            await self._resume_deletions()
        await self._writes.carry_out_in_parts(
            lambda: finish_reassignments(self.cluster, self._topics(None if everything else names))
        )
        await self._look_at_disks()

    async def _look_at_disks(self) -> None:
        """Find out which partitions the brokers can have that have noted something about their disks."""
        events = log_dir_events(self._registry)
        for broker_id in sorted({each for each in events.values() if each is not None}):
            self._ordering.give_again(broker_id)
        if events:
            await self._writes.carry_out_in_parts(
                lambda: [Delete(path) for path in events if self._registry.find(path) is not None]
            )

    def _elections(self, lost: set[int], names: set[str] | None) -> list[Operation]:
        live = frozenset(self.cluster.brokers)
        crashed = {broker_id for broker_id, broker in self.cluster.brokers.items() if broker.after_crash}
        brokers = Brokers(live, live & (lost | crashed), self._on_their_way_out)
        operations = list(
            look_after(self.cluster, self._topics(names), brokers, self._world.unclean_allowed, self._elected_unclean)
        )
        if names is None:
            nodes = [(broker_id, self._registry.get(znodes.broker_path(broker_id))) for broker_id in sorted(crashed)]
            operations += recovered(nodes)
        return operations

    def _elected_unclean(self, topic: str, partition: PartitionImage) -> None:
        self.unclean_elections += 1
        log.warning("unclean election: leader not in sync", topic=topic, partition=partition.partition_index)

    def _hand_over(self, broker_id: int) -> Sequence[Operation]:
        if broker_id not in self._suspects:  # not any more
            return ()
        return hand_over(self.cluster, broker_id, self._on_their_way_out)[0]

    def _topics(self, names: set[str] | None) -> list[TopicImage]:
        if names is None:
            return list(self.cluster.topics.values())
        return [topic for name in sorted(names) if (topic := self.cluster.topic(name)) is not None]

    def _remove_leftover_configs(self) -> list[Operation]:
        names = self.cluster.topics_with_leftover_configs()
        if names:
            log.warning("settings of topics that do not exist are removed", topics=names[:10])
        return [Delete(znodes.topic_config_path(name)) for name in names]

    async def _resume_deletions(self) -> None:
        """Delete what Kafka's controller was told to delete before this one took over."""
        for name in topics_to_delete(self._registry):

            def decide(name: str = name) -> Decision[TopicResult]:
                decision = delete_topics(self.cluster, [TopicReference(name)], delete_topic_enable=True)
                return Decision(decision.results, [*decision.operations, Delete(f"{znodes.DELETIONS}/{name}")])

            await self._writes.carry_out(decide)

    def _rebalance(self) -> None:
        if self._settings.auto_leader_rebalance_enable:
            wanted = imbalanced_partitions(self.cluster, self._settings.leader_imbalance_per_broker_percentage)
            if wanted:
                self._background.start(self._lead_back(wanted))

    async def _lead_back(self, partitions: Sequence[TopicPartition]) -> None:
        for some in parts(partitions, 200):
            await self.elect_leaders(ElectionType.PREFERRED, some)

    async def _pause(self, seconds: float) -> None:
        waited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self._world.clock.call_later(seconds, lambda: None if waited.done() else waited.set_result(None))
        try:
            await waited
        finally:
            timer.cancel()

    # --- topics ---

    async def create_topics(
        self,
        topics: Sequence[NewTopic],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
        admit: Admit = everything,
    ) -> Sequence[TopicResult]:
        """Create topics. Those without an error can be written to: their leaders have taken their orders.

        A topic stays even if neither a leader nor another replica can create one of its partitions, for example because
        the disk is full: other partitions may be in use already. The rest is created as soon as possible.
        """
        settings = TopicSettings(
            num_partitions=self._settings.num_partitions,
            replication_factor=self._settings.default_replication_factor,
            validate_configs=self._world.validate_configs,
            new_topic_id=partial(random_uuid, self._world.random_bytes),
            pick=self._pick,
        )
        wanted, refused = check_request(topics, settings)
        decided: list[TopicResult] = []
        with self._ordering.awaiting() as taken:
            async for some in spread(parts(wanted, _TOPICS_AT_A_TIME)):
                create = partial(create_topics, self.cluster, some, settings, admit)
                decided += await self._answer(partial(_awaited, taken, create), validate_only)
            results = decided if validate_only else await self._led(taken, decided, timeout_ms)
        return [*results, *refused]

    async def create_partitions(
        self,
        topics: Sequence[NewPartitions],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
        admit: Admit = everything,
    ) -> Sequence[TopicResult]:
        """Give topics more partitions, which can be written to.

        What cannot be created now is created as soon as possible, as with new topics.
        """
        with self._ordering.awaiting() as taken:
            create = partial(create_partitions, self.cluster, topics, admit)
            decided = await self._answer(partial(_awaited, taken, create), validate_only)
            return decided if validate_only else await self._led(taken, decided, timeout_ms)

    async def _led(self, taken: Taken, decided: Sequence[TopicResult], timeout_ms: int | None) -> list[TopicResult]:
        """The results once all new partitions have their leaders."""
        names = {result.name for result in decided if result.name and not result.error_code}

        def decide() -> list[Operation]:
            live = frozenset(self.cluster.brokers)
            return [each for topic in self._topics(names) for each in first_states(self.cluster, topic, live)]

        try:
            await self._writes.carry_out_in_parts(decide)
        except (RegistryUnavailable, Deposed, Conflict) as failure:  # `_look_after` tries again, or the next controller
            log.warning("new partitions have no leaders yet", topics=sorted(names)[:10], reason=str(failure))
        return await self._taken(taken, decided, timeout_ms)

    async def _taken(self, taken: Taken, decided: Sequence[TopicResult], timeout_ms: int | None) -> list[TopicResult]:
        """The results once leaders have taken their orders, as far as they do so in time."""
        waiting = asyncio.ensure_future(self._all_taken(taken))
        timer = None
        if timeout_ms is not None:
            timer = self._world.clock.call_later(timeout_ms / 1000, lambda: _cancel(waiting))
        try:
            await asyncio.wait([waiting])
        finally:
            waiting.cancel()
            if timer is not None:
                timer.cancel()
        results = []
        for result in decided:
            error = ErrorCode.NONE if result.error_code else taken.error(result.topic_id)
            if error:
                why = self._world.failure_of(result.name or "") or "The log of a partition could not be created"
                results.append(result.failed(error, f"{why}. It will be created as soon as possible."))
            elif not result.error_code and not taken.is_taken(result.topic_id):
                results.append(result.failed(ErrorCode.REQUEST_TIMED_OUT, None))
            else:
                results.append(result)
        return results

    async def _all_taken(self, taken: Taken) -> None:
        await taken.wait()
        await self._ordering.own_broker_caught_up()

    async def delete_topics(
        self, topics: Sequence[TopicReference], *, admit: Admit = everything
    ) -> Sequence[TopicResult]:
        enable = self._settings.delete_topic_enable
        results: list[TopicResult] = []
        times_named: dict[TopicReference, int] = {}
        async for topic in spread(topics):
            times_named[topic] = times_named.get(topic, 0) + 1
        async for some in spread(self._deleted_at_a_time(times_named.items())):
            as_often = [reference for reference, times in some for _ in range(times)]
            delete = partial(delete_topics, self.cluster, as_often, delete_topic_enable=enable, admit=admit)
            results += await self._answer(delete)
        await self._ordering.own_broker_caught_up()
        return results

    def _deleted_at_a_time(
        self, named: Iterable[tuple[TopicReference, int]]
    ) -> Iterator[list[tuple[TopicReference, int]]]:
        some: list[tuple[TopicReference, int]] = []
        partitions = 0
        for reference, times in named:
            if reference.name is None:
                topic = self.cluster.topic_by_id(reference.topic_id)
            else:
                topic = self.cluster.topic(reference.name)
            count = 0 if topic is None else len(topic.partitions)
            if some and (len(some) == _TOPICS_AT_A_TIME or partitions + count > _PARTITIONS_AT_A_TIME):
                yield some
                some, partitions = [], 0
            some.append((reference, times))
            partitions += count
        if some:
            yield some

    # --- partitions ---

    async def elect_leaders(
        self, election_type: ElectionType, partitions: Sequence[TopicPartition]
    ) -> Sequence[PartitionResult]:
        results = await self._answer(lambda: elect_leaders(self.cluster, election_type, partitions))
        await self._ordering.own_broker_caught_up()
        return results

    async def move_leader(self, partition: TopicPartition, broker_id: int) -> PartitionResult:
        """Make one of a partition's live in-sync replicas its leader."""
        (result,) = await self._answer(lambda: move_leader(self.cluster, partition, broker_id))
        await self._ordering.own_broker_caught_up()
        return result

    async def alter_partition_reassignments(
        self, reassignments: Sequence[Reassignment], *, allow_replication_factor_change: bool = True
    ) -> Sequence[PartitionResult]:
        results = await self._answer(
            lambda: alter_partition_reassignments(
                self.cluster,
                reassignments,
                allow_replication_factor_change=allow_replication_factor_change,
                unclean_allowed=self._world.unclean_allowed,
            )
        )
        await self._ordering.own_broker_caught_up()
        return results

    # --- what brokers ask for ---

    async def alter_partitions(
        self, broker_id: int, broker_epoch: int, wanted: Sequence[WantedIsr]
    ) -> tuple[ErrorCode, Sequence[IsrResult]]:
        """Give leaders the in-sync replicas that they ask for."""
        if not self._is_registered(broker_id, broker_epoch):
            return ErrorCode.STALE_BROKER_EPOCH, ()
        try:
            results: list[IsrResult] = []
            for some in parts(wanted, _PARTITIONS_AT_A_TIME):
                results += await self._writes.carry_out(partial(self._altered, some))
        except Deposed:
            return ErrorCode.NOT_CONTROLLER, ()
        except RegistryUnavailable:
            # It may have happened. The leader asks again, and finds out.
            return ErrorCode.UNKNOWN_SERVER_ERROR, ()
        return ErrorCode.NONE, results

    def _altered(self, wanted: Sequence[WantedIsr]) -> Decision[IsrResult]:
        epochs = {each.broker_id: each.epoch for each in self.cluster.brokers.values()}
        return alter_partitions(self.cluster, wanted, epochs, self._on_their_way_out)

    async def controlled_shutdown(
        self, broker_id: int, broker_epoch: int = -1
    ) -> tuple[ErrorCode, Sequence[TopicPartition]]:
        """Hand over the leaderships of a broker that is about to stop. Returns the partitions for which that is not
        possible."""
        broker = self.cluster.brokers.get(broker_id)
        if broker is None:
            return ErrorCode.BROKER_NOT_AVAILABLE, ()
        if broker_epoch != -1 and broker_epoch < broker.epoch:
            return ErrorCode.STALE_BROKER_EPOCH, ()
        epoch = self._shutting_down[broker_id] = broker.epoch
        followed: list[TopicPartition] = []

        def decide() -> Sequence[Operation]:
            if not self._is_registered(broker_id, epoch):  # it is gone, and perhaps back already
                return ()
            operations, followed[:] = hand_over(self.cluster, broker_id, self._on_their_way_out)
            return operations

        try:
            await self._writes.carry_out_in_parts(decide)
        except Deposed:
            return ErrorCode.STALE_CONTROLLER_EPOCH, ()
        except RegistryUnavailable:
            return ErrorCode.UNKNOWN_SERVER_ERROR, ()
        if not self._is_registered(broker_id, epoch):
            return ErrorCode.STALE_BROKER_EPOCH, ()
        self._ordering.stop_following(broker_id, followed)
        return ErrorCode.NONE, still_led(self.cluster, broker_id)

    async def allocate_producer_ids(self, broker_id: int, broker_epoch: int) -> ProducerIdBlock:
        """A block of producer ids that nobody else gets."""
        if broker_id not in self.cluster.brokers:
            return ProducerIdBlock(ErrorCode.BROKER_ID_NOT_REGISTERED)
        if not self._is_registered(broker_id, broker_epoch):
            return ProducerIdBlock(ErrorCode.STALE_BROKER_EPOCH)
        return await producer_id_blocks.allocate(self._registry, self._writes, broker_id)

    def _is_registered(self, broker_id: int, broker_epoch: int) -> bool:
        broker = self.cluster.brokers.get(broker_id)
        return broker is not None and broker.epoch == broker_epoch

    # --- carrying out ---

    async def _answer(self, decide: Callable[[], Decision[Answer]], validate_only: bool = False) -> Sequence[Answer]:
        """Carry out a decision. If the registry cannot be written, everything in it has failed.

        What would have been refused has too: the view may be outdated.
        """
        try:
            return await self._writes.carry_out(decide, validate_only)
        except RegistryUnavailable as failure:
            code, message = ErrorCode.KAFKA_STORAGE_ERROR, str(failure)
        except Deposed:
            code, message = ErrorCode.NOT_CONTROLLER, None
        return [each.failed(code, message) for each in decide().results]

    def _pick(self, below: int) -> int:
        return int.from_bytes(self._world.random_bytes(8)) % below


def _awaited(taken: Taken, decide: Callable[[], Decision[TopicResult]]) -> Decision[TopicResult]:
    decision = decide()
    taken.topic_ids |= {result.topic_id for result in decision.results if not result.error_code}
    return decision


def _cancel(waiting: asyncio.Future[None]) -> None:
    waiting.cancel()


def _needs_attention(change: TopicChange, live: Collection[int]) -> bool:
    """Whether a topic has partitions without a live leader, or that may have finished a move."""
    old, new = change
    if new is None or (old is not None and old.partitions == new.partitions and old.configs == new.configs):
        return False
    return any(
        partition.is_reassigning or partition.partition_epoch < 0 or partition.leader_id not in live
        for partition in new.partitions
    )
