"""The broker: its parts, put together, started and stopped in order."""

from __future__ import annotations

import asyncio
import os
import random
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Final

import structlog

from barnabas.broker.acl_follower import AclFollower
from barnabas.broker.apis import SERVED_DIRECTLY, served_by
from barnabas.broker.background import Background
from barnabas.broker.clock import Clock, Later
from barnabas.broker.cluster.deletions import deletions, strike_off
from barnabas.broker.cluster.election import Elected, Election
from barnabas.broker.cluster.log_dir_events import note_log_dir_event
from barnabas.broker.cluster.membership import Membership
from barnabas.broker.cluster.registration import RegistrationRefused, check_listener
from barnabas.broker.cluster.term import MIRRORED, Term
from barnabas.broker.cluster.vigil import Vigil
from barnabas.broker.cluster.world import World
from barnabas.broker.config import BrokerConfig, TopicConfig, new_topic_config
from barnabas.broker.config.log_config import log_config
from barnabas.broker.config_follower import ConfigFollower
from barnabas.broker.controller.cluster_image import ClusterChange
from barnabas.broker.controller.images import BrokerImage, Endpoint, TopicImage
from barnabas.broker.controller.znodes import deletion_path
from barnabas.broker.group.coordinator import GroupCoordinator
from barnabas.broker.interbroker.channel import Channel, ChannelError
from barnabas.broker.interbroker.end_offsets import EndOffsets
from barnabas.broker.interbroker.peers import Peers
from barnabas.broker.interbroker.secured_network import secured
from barnabas.broker.interbroker.versions import understood_by_all
from barnabas.broker.metadata.cache import MetadataCache
from barnabas.broker.network import Network
from barnabas.broker.obstacles import OBSTACLES, CannotStart, cannot_start
from barnabas.broker.registry.errors import RegistryUnavailable, SessionExpired
from barnabas.broker.registry.registry import Registry
from barnabas.broker.replica.compaction import Compaction
from barnabas.broker.replica.fetch_sessions import FetchSessions
from barnabas.broker.replica.housekeeping import Housekeeping
from barnabas.broker.replica.replicas import Replicas
from barnabas.broker.replica.worker import Worker
from barnabas.broker.security.authorizer import authorizer_of
from barnabas.broker.security.errors import SecurityError
from barnabas.broker.server.dispatch import Api
from barnabas.broker.server.server import Server
from barnabas.broker.set_aside import SetAside
from barnabas.broker.settings_warnings import SettingsWarnings
from barnabas.broker.share.coordinator import ShareCoordinator
from barnabas.broker.share.partitions import SharePartitions
from barnabas.broker.share.persister import Persister, ShareState
from barnabas.broker.share.settings import RecordSettings
from barnabas.broker.streams_topics import StreamsTopics
from barnabas.broker.token_follower import TokenFollower
from barnabas.broker.topic_creation import TopicCreation
from barnabas.broker.transaction.admission import Admission
from barnabas.broker.transaction.coordinator import TransactionCoordinator
from barnabas.broker.transaction.marker_sender import MarkerSender
from barnabas.broker.transaction.markers import TransactionMarkers
from barnabas.broker.transaction.partition_adder import PartitionAdder
from barnabas.broker.transaction.producer_ids import ControllerBlocks, ProducerIds
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersion
from barnabas.protocol.messages.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse
from barnabas.protocol.schema import Message
from barnabas.storage.config import LogConfig
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.log_directory import LogDirectory, has_partitions
from barnabas.storage.properties import MetaProperties, encode_id

log = structlog.get_logger()

OpenRegistry = Callable[[], Awaitable[Registry]]
"""Opens a session with the registry, and a new one whenever the previous one has expired."""

# Syncs and deletions wait for the disk, not for each other.
_WORKER_THREADS: Final = 4
# How long a stopping broker waits for others to take over its leaderships.
_HAND_OVER_MS: Final = 5000
# How soon to note again that the disk fails or works, if the registry could not be reached.
_NOTE_AGAIN_MS: Final = 1000
# How long a start waits for the controller's first orders. Without them, this broker cannot answer clients.
_SECONDS_TO_BE_TOLD: Final = 10.0


class Broker:
    """One broker of a cluster. Its parts exist from `start` to `stop`."""

    config: BrokerConfig
    clock: Clock
    server: Server
    worker: Worker
    set_aside: SetAside
    cluster: MetadataCache
    membership: Membership
    controller: Election  # its `term` is set while this broker is the controller
    config_follower: ConfigFollower
    acl_follower: AclFollower | None  # with an authorizer
    token_follower: TokenFollower | None  # with a secret key for delegation tokens
    peers: Peers
    topic_creation: TopicCreation
    streams_topics: StreamsTopics
    replicas: Replicas
    fetch_sessions: FetchSessions
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    share_coordinator: ShareCoordinator
    share_state: ShareState
    share_partitions: SharePartitions
    end_offsets: EndOffsets
    admission: Admission
    transaction_markers: TransactionMarkers
    producer_ids: ProducerIds

    def __init__(
        self,
        config: BrokerConfig,
        open_registry: OpenRegistry,
        network: Network,
        *,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        server_clock: Clock | None = None,
        file_system: FileSystem | None = None,
    ) -> None:
        """`server_clock` is for connections, if they must not follow `clock`."""
        self.config = config
        self.clock = clock
        self.server = Server(config, served_by(self), server_clock or clock, loop, network)
        self.authorizer = authorizer_of(config)
        if self.authorizer is not None:
            self.server.access_of = self.authorizer.access
        self.pieces = self.server.dispatcher.pieces
        self.understood = understood_by_all(config)
        apis = self.server.dispatcher.apis.values()
        self.advertised_apis: list[ApiVersion] = [self._advertised(api) for api in apis if not api.between_brokers]
        self.apis_for_brokers: list[ApiVersion] = [self._advertised(api) for api in apis]
        self._open_registry = open_registry
        self._network = network
        self._loop = loop
        self._file_system = file_system
        self._background = Background("background work failed")
        self._deleted: dict[bytes, None] = {}  # topics
        self._log_configs: dict[tuple[tuple[str, str], ...], LogConfig] = {}  # by the settings of topics
        self._warnings = SettingsWarnings(config)

    def _advertised(self, api: Api) -> ApiVersion:
        found = api.advertised
        highest = min(found.max_version, self.understood.highest.get(api.key, found.max_version))
        return ApiVersion(api_key=found.api_key, min_version=found.min_version, max_version=highest)

    @property
    def registry(self) -> Registry:
        """The current session."""
        return self.membership.registry

    # --- starting ---

    def bind(self) -> None:
        """Bind the listeners, without accepting connections yet."""
        try:
            if not self.server.listeners:
                self.server.bind()
        except OSError as error:
            raise CannotStart(f"cannot listen: {error}") from error
        except SecurityError as error:
            raise CannotStart(str(error)) from error

    async def start(self) -> None:
        """Start the parts in the order of their dependencies; clients are accepted last."""
        self.bind()
        try:
            await self._open_in_time(self.config.data_dirs[0])
        except BaseException:
            await self.server.stop()
            raise

    async def _open_in_time(self, folder: str) -> None:
        """Open, again and again if ZooKeeper is lost meanwhile, for as long as a start waits for ZooKeeper."""
        config = self.config
        patience = config.zookeeper_connection_timeout_ms or config.zookeeper_session_timeout_ms
        end = self.clock.monotonic() + patience / 1000
        while True:
            try:
                return await self._open(folder)
            except CannotStart as obstacle:
                lost = isinstance(obstacle.__cause__, RegistryUnavailable | SessionExpired)
                if not lost or config.zookeeper_connect is None or self.clock.monotonic() >= end:
                    raise
                log.warning("starting again", reason=str(obstacle))

    async def _open(self, folder: str) -> None:
        self.controller = Election(self.config.node_id, self.clock, self._make_term)
        self.config_follower = ConfigFollower(self.clock, self.spawn, self.server.quotas)
        self.acl_follower = AclFollower(self.authorizer, self.clock, self.spawn) if self.authorizer else None
        self.token_follower = self._make_token_follower()
        self.vigil = Vigil(
            self.config.node_id,
            self.config.inter_broker_listener.name,
            self._network,
            self.clock,
            self._loop,
            self._suspicions_changed,
        )
        self.server.scram_credential = self.config_follower.scram_credential
        self.membership = Membership(
            self._open_registry,
            self.controller,
            self.clock,
            session_timeout_ms=self.config.zookeeper_session_timeout_ms,
            on_session=self._on_session,
        )
        try:
            os.makedirs(folder, exist_ok=True)
            properties = MetaProperties.read(folder)
            if properties is None:
                cluster_id = await self.membership.open(encode_id(uuid.uuid4()))
            else:
                is_used = has_partitions(folder)
                cluster_id = await self.membership.open(properties.cluster_id, may_be_new=not is_used)
        except OBSTACLES as error:
            raise self._cannot_start(folder, error) from error
        try:
            await self._open_parts(folder, cluster_id)
        except OBSTACLES as error:
            self.vigil.stop()
            await self.membership.leave()
            raise self._cannot_start(folder, error) from error
        except BaseException:
            self.vigil.stop()
            await self.membership.leave()
            raise

    def _make_token_follower(self) -> TokenFollower | None:
        secret = self.config.delegation_token_secret_key or self.config.delegation_token_master_key
        if not secret:
            return None
        follower = TokenFollower(self.config, secret, self.clock, self.spawn, lambda: self.controller.term is not None)
        self.server.token_login = follower.login
        return follower

    def _cannot_start(self, folder: str, error: Exception) -> CannotStart:
        registry = getattr(self.membership, "registry", None)  # the first session may not have been opened
        return cannot_start(folder, "the registry" if registry is None else registry.name, error)

    async def _open_parts(self, folder: str, cluster_id: str) -> None:
        self.cluster = MetadataCache(
            cluster_id, self.config_follower.topic_configs, self.config_follower.broker_configs()
        )
        self.config_follower.told = self.cluster
        self._network_of_brokers = secured(self._network, self.server, self.config, self._loop)
        self.peers = Peers(
            self.config.node_id,
            self.config.inter_broker_listener.name,
            self.cluster,
            self._network_of_brokers,
            self.clock,
            self._loop,
            self.serve,
            lambda: self.membership.broker_epoch,
        )
        self._follow_settings()
        self.server.reconfigure_listeners()  # they were bound before it was known what has been altered at run-time
        directory = LogDirectory(
            folder,
            node_id=self.config.node_id,
            cluster_id=cluster_id,
            config_of=cache(self._log_config_of),  # once per topic, however many partitions it has
            now_ms=self.clock.now_ms(),
            file_system=self._file_system,
        )
        self._make_parts(directory)
        try:
            await self._join(directory)
        except BaseException:
            await self._close_parts()
            if directory.was_clean:
                directory.close()
            else:
                directory.abandon()  # the cluster has not yet noticed the crash before
            raise

    def _make_parts(self, directory: LogDirectory) -> None:
        node_id = self.config.node_id
        self.set_aside = SetAside()
        self._deleted = {}
        self.worker = Worker(self._loop, _WORKER_THREADS)

        def note_disk() -> None:
            self.spawn(self._note_disk())

        self._note_again = Later(self.clock, lambda: _NOTE_AGAIN_MS, note_disk)
        self.replicas = Replicas(
            self.config,
            self.cluster,
            directory,
            self.worker,
            self.set_aside,
            self.clock,
            self._loop,
            at_end_of_turn=self.server.at_end_of_turn,
            log_config_of=self._log_config_of,
            is_deleted=lambda topic_id: self.registry.find(deletion_path(topic_id)) is not None,
            on_deleted=self._on_deleted,
            broker_epoch=lambda: self.membership.broker_epoch,
            is_alive=lambda broker_id: broker_id in self.cluster.brokers,
            open_channel=self._channel_to_leader,
            ask_controller=self.peers.ask_controller,
            on_disk=note_disk,
        )
        self._on_deleted(*deletions(self.registry))
        self.server.append = self._append
        self.fetch_sessions = FetchSessions(
            lambda: self.config.max_incremental_fetch_session_cache_slots, lambda: random.randrange(1, 2**31)
        )
        self.topic_creation = TopicCreation(self.config, self.controller, self.cluster, self.peers, self.clock)
        self.streams_topics = StreamsTopics(
            self.topic_creation.create_as_asked, self._background.start, self.clock.now_ms
        )
        self.cluster.subscribe(self._on_change)
        self._make_coordinators(node_id)
        self.replicas.start()
        self._housekeeping = Housekeeping(self.config, self.replicas, self.server.dispatcher.pieces)
        self._housekeeping.start()
        self._compaction = Compaction(self.config, self.replicas)
        self._compaction.start()

    def _make_coordinators(self, node_id: int) -> None:
        def timeout_ms() -> int:
            return self.config.request_timeout_ms

        create_topic = self.topic_creation.create_internal
        blocks = ControllerBlocks(self.peers.ask_controller, node_id, lambda: self.membership.broker_epoch, timeout_ms)
        self.producer_ids = ProducerIds(blocks.allocate)
        self.share_coordinator = ShareCoordinator(
            self.config, self.replicas, self.cluster, self.clock, create_topic, self.server.at_end_of_turn
        )
        share_peers = self.peers.for_purpose("share-persister")
        self.share_state = Persister(node_id, self.cluster, self.share_coordinator, share_peers, self.clock, timeout_ms)
        self.share_partitions = SharePartitions(
            self.replicas,
            self.share_state,
            RecordSettings(self.config, self.config_follower.group_configs),
            self.clock,
            self.spawn,
            lambda: self.config.group_share_max_share_sessions,
        )
        self.server.connection_closed = self.share_partitions.connection_closed
        end_peers = self.peers.for_purpose("end-offsets")
        self.end_offsets = EndOffsets(node_id, self.replicas, self.cluster, end_peers, timeout_ms)
        self.groups = GroupCoordinator(
            self.config,
            self.replicas,
            self.cluster,
            self.clock,
            create_topic,
            self.config_follower.group_configs,
            self.share_state,
        )
        self.transaction_markers = TransactionMarkers(self.replicas, self.groups)
        self.transactions = TransactionCoordinator(
            self.config,
            self.replicas,
            self.cluster,
            self.clock,
            self.producer_ids,
            MarkerSender(
                node_id,
                self.cluster,
                self.transaction_markers,
                self.peers.for_purpose("txn-marker-sender"),
                self.spawn,
                timeout_ms,
                self.understood.write_txn_markers,
            ),
            create_topic,
            self.server.at_end_of_turn,
            self.spawn,
        )
        verifier = self.peers.for_purpose("txn-verifier")
        version = self.understood.add_partitions_to_txn
        adder = PartitionAdder(node_id, self.cluster, self.transactions, verifier, self.spawn, timeout_ms, version)
        self.admission = Admission(self.config, self.clock, adder)
        for listener in (self.groups, self.transactions, self.share_coordinator, self.share_partitions, self.admission):
            self.replicas.subscribe_roles(listener)
        self.groups.start()
        self.transactions.start()
        self.share_coordinator.start()

    async def _join(self, directory: LogDirectory) -> None:
        """Register, and learn about the cluster. The controller tells itself, before it accepts clients."""
        check_listener(self.registry, self.config.node_id, self.config.inter_broker_listener.name)
        image = self._image(after_crash=not directory.was_clean)
        await self.membership.join(image, str(directory.properties.directory_id))
        if self.controller.term is not None:
            await self.controller.term.own_broker_told()
            self.server.start()
        else:
            self.server.start()
            await self._told()
        self._warnings.about_topics(self.cluster, self.cluster.topics)

    async def _told(self) -> None:
        """Wait until the controller has told this broker that it is a member."""
        told = asyncio.Event()

        def look(change: ClusterChange) -> None:
            if self.config.node_id in self.cluster.brokers:
                told.set()

        unsubscribe = self.cluster.subscribe(look)
        try:
            if self.config.node_id not in self.cluster.brokers:
                async with asyncio.timeout(_SECONDS_TO_BE_TOLD):
                    await told.wait()
        except TimeoutError:
            log.warning("the controller has not told this broker anything yet")
        finally:
            unsubscribe()

    # --- stopping ---

    async def stop(self) -> None:
        """Stop in the opposite order: nothing is acknowledged once the logs are closed."""
        await self._hand_over()
        await self.server.stop()
        await self._close_parts()
        self.replicas.directory.close()
        await self.membership.leave()
        log.info("stopped", broker=self.config.node_id)

    async def _hand_over(self) -> None:
        """Hand over this broker's leaderships, as far as others can take them."""
        if not self.config.controlled_shutdown_enable or len(self.cluster.brokers) < 2:
            return
        request = ControlledShutdownRequest(broker_id=self.config.node_id, broker_epoch=self.membership.broker_epoch)
        try:
            await self.peers.ask_controller(
                ApiKey.CONTROLLED_SHUTDOWN, request, 3, ControlledShutdownResponse, _HAND_OVER_MS
            )
        except ChannelError as error:
            log.warning("leaderships could not be handed over", reason=str(error))

    async def kill(self) -> None:
        """End as SIGKILL would: tell nobody, and leave the data as it is."""
        await self.suspend()
        await self.server.stop()

    async def suspend(self) -> None:
        """Drop everything but the listeners, as a crash would. Clients wait in the backlog until `resume`."""
        await self.server.disconnect()
        await self._close_parts()
        self.replicas.directory.abandon()
        await self.membership.leave()

    async def resume(self) -> None:
        """Continue with the data that is there now."""
        await self._open(self.config.data_dirs[0])

    async def _close_parts(self) -> None:
        """Stop everything that works on the data."""
        self._housekeeping.stop()
        self._compaction.stop()
        self.groups.stop()
        self.transactions.stop()
        self.share_partitions.stop()
        self.share_coordinator.stop()
        self.config_follower.stop()
        if self.acl_follower is not None:
            self.acl_follower.stop()
        if self.token_follower is not None:
            self.token_follower.stop()
        self.vigil.stop()
        await self.controller.leave()
        await self._background.stop()
        self._note_again.cancel()
        self.peers.close()
        self.replicas.stop()
        await self.worker.stop()

    def _append(self) -> bool:
        """Write the appends of a turn of the loop. A transaction takes several steps, each written before the next.

        Returns False if that is too much for one turn and something is left for the next.
        """
        while self.transactions.has_asked or self.share_coordinator.has_asked or self.replicas.has_due:
            self.transactions.carry_out()
            self.share_coordinator.carry_out()
            if not self.replicas.append_due():
                return False
        return True

    def _on_change(self, change: ClusterChange) -> None:
        if change.broker_configs:
            self._follow_settings()
            self.server.reconfigure()
            self.replicas.reconfigure()
            self._compaction.reconfigure()
        else:
            self.replicas.reconfigure(change.topics)
        if change.brokers:
            self.replicas.brokers_changed()
        altered = (
            name for name, (old, new) in change.topics.items() if new and (old is None or old.configs != new.configs)
        )
        self._warnings.about_topics(self.cluster, altered)

    def _follow_settings(self) -> None:
        """Apply the settings that were altered at run-time, now or before this start."""
        cluster_wide, this_broker = (self.cluster.broker_configs(whose) for whose in (None, self.config.node_id))
        problems = self.config.set_dynamic(cluster_wide, this_broker)
        self._log_configs.clear()
        self._warnings.about_broker(problems)

    def _on_deleted(self, *topic_ids: bytes) -> None:
        """Remove the notes of finished deletions, those of one turn together."""
        if not self._deleted and topic_ids:
            self.spawn(self._forget_deletions())
        self._deleted.update(dict.fromkeys(topic_ids))

    async def _forget_deletions(self) -> None:
        deleted, self._deleted = self._deleted, {}
        with suppress(RegistryUnavailable, SessionExpired):  # the next start finds it out again
            await strike_off(self.membership.registry, self.config.node_id, deleted)

    async def _note_disk(self) -> None:
        """Have the controller check which partitions this broker can write to."""
        try:
            await note_log_dir_event(self.membership.registry, self.config.node_id)
        except SessionExpired:
            pass  # the controller checks anyway when this broker has registered again
        except RegistryUnavailable:
            self._note_again.start()

    def _log_config_of(self, topic: str) -> LogConfig:
        """Topics with the same settings share one, because every order about a topic asks for it."""
        configs = self.config_follower.topic_configs(topic)
        key = tuple(configs.items())
        found = self._log_configs.get(key)
        if found is None:
            found = self._log_configs[key] = log_config(TopicConfig.stored(configs, self.config))
        return found

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the background; its failure is logged, and `stop` waits for its end."""
        self._background.start(work)

    # --- the cluster ---

    async def _make_term(self, registry: Registry, elected: Elected, on_end: Callable[[], None]) -> Term:
        for path in MIRRORED:
            await registry.mirror(path)
        world = World(
            self.config.node_id,
            self.config,
            self.clock,
            self.serve,
            self._channel_for_orders,
            self.config.inter_broker_listener.name,
            lambda configs: new_topic_config(configs, self.config),
            self._unclean_allowed,
            os.urandom,
            self.replicas.failure,
            lambda: self.vigil.suspects,
        )
        return Term(registry, world, elected.epoch, elected.version, on_end)

    async def _on_session(self, registry: Registry) -> None:
        await self.config_follower.follow(registry)
        if self.acl_follower is not None:
            await self.acl_follower.follow(registry)
        if self.token_follower is not None:
            await self.token_follower.follow(registry)
        self.vigil.follow(registry)

    def _suspicions_changed(self, broker_id: int) -> None:
        """Act on what the vigil found: as the controller, or because the controller seems to have died."""
        term = self.controller.term
        if term is not None:
            term.suspicions_changed()
        elif broker_id in self.vigil.suspects:
            self.controller.replace(broker_id)

    @property
    def is_controlling(self) -> bool:
        """Whether this broker is the controller and has something to do as such."""
        return self.controller.term is not None and self.controller.term.is_busy

    def _unclean_allowed(self, topic: TopicImage) -> bool:
        config = self.config
        if "unclean.leader.election.enable" in topic.configs:
            config = TopicConfig.stored(topic.configs, self.config)  # type: ignore[assignment]
        return config.unclean_leader_election_enable

    def _channel_for_orders(self, broker: BrokerImage) -> Channel:
        channel = self.peers.open(broker, "controller")
        if channel is None:
            raise RegistrationRefused(f"broker {broker.broker_id} has no listener for brokers")
        return channel

    def _channel_to_leader(self, host: str, port: int) -> Channel:
        client_id = f"broker-{self.config.node_id}-fetcher"
        return Channel(self._network_of_brokers, self.clock, self._loop, host, port, client_id)

    async def serve(self, key: ApiKey, message: Message) -> Message:
        """Serve what this broker, as the controller, tells itself, or what it asks itself as the controller."""
        answer: Message = await SERVED_DIRECTLY[key](self, None, message)
        return answer

    async def auto_create_topics(self, names: Sequence[str]) -> dict[str, ErrorCode]:
        """Create topics that a client named, with `num.partitions` partitions. Returns those that failed."""
        return await self.topic_creation.create(names)

    def _image(self, *, after_crash: bool) -> BrokerImage:
        endpoints = tuple(
            Endpoint(
                listener.name,
                listener.config.security_protocol,
                listener.config.advertised_host or listener.host,
                listener.config.advertised_port or listener.port,
            )
            for listener in self.server.listeners
        )
        return BrokerImage(self.config.node_id, endpoints, self.config.broker_rack, after_crash=after_crash)
