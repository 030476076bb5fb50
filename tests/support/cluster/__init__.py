"""Several brokers around a real ZooKeeper, each a process, of either make:

    with Cluster(["kafka", "barnabas", "kafka"]) as cluster:
        cluster.bootstrap                    the brokers' addresses for clients
        cluster.brokers[0].kill()            see brokers.BrokerNode
        cluster.network.cut((1, 2))          broker 1's bytes do not reach broker 2; see network.Network
        cluster.await_whole()                every partition has its leader and its full ISR

Ids are 1, 2, ... in the order of the makes. Brokers reach each other and ZooKeeper through proxies of their own, unless
they are told not to; clients connect directly.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionClosedError, ConnectionLoss, KazooException, NoNodeError, SessionExpiredError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import KazooRetry

from barnabas.broker.config.names import SETTINGS as DECLARED
from barnabas.client.requests.lookup import metadata
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ProtocolError
from tests.support.cluster.brokers import MAKES, BrokerError, BrokerNode, KafkaNode, class_archive
from tests.support.cluster.network import REGISTRY, Network, Place
from tests.support.zookeeper import ZooKeeper

__all__ = ["REGISTRY", "BrokerError", "BrokerNode", "Cluster", "every_mix", "not_yet"]

SESSION_SECONDS = 6.0

# Short times, so that a fault has its consequences within seconds; and everything on three brokers, two in sync.
SETTINGS = {
    "zookeeper.session.timeout.ms": str(int(SESSION_SECONDS * 1000)),
    "zookeeper.connection.timeout.ms": "30000",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "num.partitions": "3",
    "unclean.leader.election.enable": "false",
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "replica.lag.time.max.ms": "4000",
    "replica.fetch.wait.max.ms": "200",
    "replica.fetch.backoff.ms": "200",
    "replica.socket.timeout.ms": "3000",
    "controller.socket.timeout.ms": "3000",
    "auto.leader.rebalance.enable": "true",
    "leader.imbalance.check.interval.seconds": "5",
    "leader.imbalance.per.broker.percentage": "0",
}


def not_yet() -> str | None:
    """Why Barnabas cannot be a broker of a cluster, or None: its setting says whether it has an effect."""
    setting = DECLARED.get("zookeeper.connect")
    if setting is None or not setting.effect.works:
        return "`barnabas serve` does not take zookeeper.connect yet"
    return None


def every_mix() -> bool:
    """Whether to run everything, or only what CI has time for."""
    return bool(os.environ.get("BARNABAS_ALL_MIXES"))


class Cluster:
    def __init__(
        self,
        makes: Sequence[str],
        settings: Mapping[str, str] | None = None,
        *,
        folder: Path | None = None,
        own_settings: Callable[[int], Mapping[str, str]] = lambda id: {},
        proxies: bool = True,
    ) -> None:
        """Without proxies, brokers reach each other and ZooKeeper directly, and nothing can be cut."""
        self._temporary = Path(tempfile.mkdtemp(prefix="cluster-")) if folder is None else None
        self.folder = folder or self._temporary
        assert self.folder is not None
        self.zookeeper = ZooKeeper()
        self.network = Network()
        self.brokers: list[BrokerNode] = []
        for id, make in enumerate(makes, 1):
            port = self.zookeeper.port
            connect = self.network.proxy(REGISTRY, port, source=id) if proxies else port
            chosen = {**SETTINGS, "zookeeper.connect": f"127.0.0.1:{connect}", **(settings or {}), **own_settings(id)}
            node = MAKES[make](id, self.folder / f"broker-{id}", chosen)
            if proxies:
                node.advertised_internal_port = self.network.proxy(id, node.internal_port)
            self.brokers.append(node)
        self.ended_by_themselves: list[str] = []
        self._tree: KazooClient | None = None

    @property
    def bootstrap(self) -> str:
        return ",".join(each.address for each in self.brokers)

    @property
    def ids(self) -> list[int]:
        return [each.id for each in self.brokers]

    def broker(self, id: int) -> BrokerNode:
        return self.brokers[id - 1]

    # --- starting and stopping ---

    def start(self) -> None:
        if any(isinstance(each, KafkaNode) for each in self.brokers):
            class_archive()
        self.zookeeper.start()
        patient = KazooRetry(max_tries=-1, max_delay=1)  # a test may take ZooKeeper away for minutes
        self._tree = KazooClient(self.zookeeper.connect, timeout=10, connection_retry=patient)
        self._tree.start(120)
        self.start_brokers(self.brokers)

    def start_brokers(self, brokers: Iterable[BrokerNode], timeout: float = 120) -> None:
        """All at once, each as soon as its former session has ended.

        One that ends while it starts is started again, as a service manager would: Apache Kafka does that when
        ZooKeeper does not hear from it for the length of a session, which happens on a busy machine.
        """
        starting = list(brokers)
        for each in starting:
            self.launch(each)
        for each in starting:
            deadline = time.monotonic() + timeout
            while True:
                try:
                    each.await_ready(deadline - time.monotonic())
                    break
                except BrokerError as error:
                    if each.is_running or time.monotonic() > deadline:
                        raise
                    self.ended_by_themselves.append(f"broker {each.id} while it started: {str(error)[-300:]}")
                    self.launch(each)

    def start_those_that_ended(self) -> None:
        """Brokers that nobody has stopped and that do not run."""
        ended = [each for each in self.brokers if each.has_ended_by_itself]
        self.ended_by_themselves += [f"broker {each.id}: {each.log_tail(5)}" for each in ended]
        self.start_brokers(ended)

    def launch(self, broker: BrokerNode) -> None:
        """Start it as soon as its former session has ended, without waiting until it is ready."""
        self.await_session_end(broker)
        broker.launch()
        self.network.pids[broker.id] = broker.pid

    def await_session_end(self, broker: BrokerNode, timeout: float = 60) -> None:
        """Apache Kafka does not start while ZooKeeper has its former registration, as it does for a while after kill
        -9."""
        if not isinstance(broker, KafkaNode):
            return
        gone = threading.Event()
        end = time.monotonic() + timeout
        while True:
            with contextlib.suppress(KazooException, KazooTimeoutError):
                if self.tree.exists(f"/brokers/ids/{broker.id}", watch=lambda _: gone.set()) is None:
                    return
            if not gone.wait(1) and time.monotonic() > end:
                raise BrokerError(f"ZooKeeper still has the former session of broker {broker.id}")
            gone.clear()

    def stop_brokers(self) -> None:
        """One after the other, each with its leaders moved away."""
        for each in self.brokers:
            if each.is_running:
                each.stop()

    def close(self) -> None:
        for each in self.brokers:
            each.kill()
        if self._tree is not None:
            self._tree.stop()
            self._tree.close()
        self.zookeeper.stop()
        self.network.close()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- the network ---

    def isolate(self, id: int, *, registry: bool = True) -> None:
        """Cut a broker off from the others and from ZooKeeper, both ways. Clients still reach it."""
        others: list[Place] = [each for each in self.ids if each != id]
        if registry:
            others.append(REGISTRY)
        self.network.cut(*((id, other) for other in others), *((other, id) for other in others))

    # --- what it is like ---

    @property
    def tree(self) -> KazooClient:
        assert self._tree is not None
        return self._tree

    def read(self, path: str) -> Any:
        """A node of the tree, from its JSON."""
        return json.loads(self.retrying(self.tree.get, path)[0])

    def retrying(self, ask: Callable[[str], Any], path: str) -> Any:
        """While ZooKeeper is away, kazoo retries; after it was away for a whole session, a new client is used."""
        deadline = time.monotonic() + 120
        while True:
            try:
                return ask(path)
            except (ConnectionLoss, SessionExpiredError, ConnectionClosedError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    @property
    def controller(self) -> BrokerNode:
        """Waits for one, if there is none at the moment."""
        deadline = time.monotonic() + 120
        while True:
            with contextlib.suppress(KazooException):
                return self.broker(self.read("/controller")["brokerid"])
            if time.monotonic() > deadline:
                raise BrokerError("no broker has become controller")
            time.sleep(0.1)

    def make_controller(self, id: int) -> None:
        """Depose controllers until this broker is elected, as administrators did: by deleting the node.

        Then all brokers have to learn about it.
        """
        deadline = time.monotonic() + 120
        while any(self.controller_known_to(each) != id for each in self.brokers):
            if time.monotonic() > deadline:
                raise BrokerError(f"broker {id} has not become controller")
            if self.controller.id != id:
                with contextlib.suppress(KazooException):
                    self.tree.delete("/controller")
            time.sleep(0.2)

    def controller_known_to(self, broker: BrokerNode) -> int:
        with Wire("127.0.0.1", broker.port, timeout=60) as wire:
            found: int = wire.ask(ApiKey.METADATA, metadata([]), 9).controller_id
        return found

    def describe(self, broker: BrokerNode, topics: Iterable[str] | None = None) -> dict[tuple[str, int], Any]:
        """What this broker says about partitions, of all topics unless some are named."""
        with Wire("127.0.0.1", broker.port, timeout=60) as wire:
            answer = wire.ask(ApiKey.METADATA, metadata(None if topics is None else list(topics)), 9)
        return {
            (topic.name, partition.partition_index): partition
            for topic in answer.topics
            for partition in topic.partitions
        }

    def leader(self, topic: str, partition: int) -> BrokerNode | None:
        """As the tree says."""
        leader = self.read(f"/brokers/topics/{topic}/partitions/{partition}/state")["leader"]
        return None if leader < 0 else self.broker(leader)

    def await_out_of_sync(self, broker: BrokerNode, timeout: float) -> None:
        """Until the tree has this broker in no ISR but where it is the last one."""
        deadline = time.monotonic() + timeout
        while left := [name for name, state in self.states() if broker.id in state["isr"] and len(state["isr"]) > 1]:
            if time.monotonic() > deadline:
                raise BrokerError(f"broker {broker.id} is still in the ISR of {left}")
            time.sleep(0.1)

    def states(self) -> Iterator[tuple[str, Any]]:
        """Every partition's state in the tree."""
        for topic in self.retrying(self.tree.get_children, "/brokers/topics"):
            with contextlib.suppress(NoNodeError):
                for index in self.retrying(self.tree.get_children, f"/brokers/topics/{topic}/partitions"):
                    yield f"{topic}-{index}", self.read(f"/brokers/topics/{topic}/partitions/{index}/state")

    def what_is_missing(self) -> str | None:
        """What keeps the cluster from being whole, in the tree or in the eyes of any of its brokers; None if it is."""
        try:
            replicas = {
                f"{topic}-{index}": holders
                for topic in self.retrying(self.tree.get_children, "/brokers/topics")
                for index, holders in self.read(f"/brokers/topics/{topic}")["partitions"].items()
            }
            states = dict(self.states())
        except NoNodeError as error:
            return f"the tree changes: {error}"
        for partition, holders in replicas.items():
            state = states.get(partition)
            if state is None or state["leader"] < 0 or set(state["isr"]) != set(holders):
                return f"the tree says of {partition}: {state}, and its replicas are {holders}"
        for broker in self.brokers:
            try:
                known = self.describe(broker)
            except (OSError, ProtocolError) as error:
                return f"broker {broker.id} does not answer: {error}"
            described = {f"{topic}-{index}": partition for (topic, index), partition in known.items()}
            for partition, holders in replicas.items():
                each = described.get(partition)
                if each is None:
                    return f"broker {broker.id} does not know {partition}"
                if each.leader_id < 0 or set(each.isr_nodes) != set(holders):
                    who = f"leader {each.leader_id}, ISR {each.isr_nodes} of {holders}"
                    return f"broker {broker.id} says of {partition}: {who}"
        return None

    def await_whole(self, timeout: float = 120) -> None:
        """Until the tree and each broker say that each partition has a leader and all its replicas in sync."""
        deadline = time.monotonic() + timeout
        while missing := self.what_is_missing():
            if time.monotonic() > deadline:
                logs = "\n".join(f"--- broker {each.id}:\n{each.log_tail(15)}" for each in self.brokers)
                raise BrokerError(f"not whole after {timeout} s: {missing}\n{logs}")
            time.sleep(0.1)  # nothing announces it

    def replicas_that_differ(self, topic: str, partitions: Iterable[int]) -> list[str]:
        """Where replicas do not have the same bytes. Ask when nothing is written any more."""
        found = []
        for index in partitions:
            holders = self.read(f"/brokers/topics/{topic}")["partitions"][str(index)]
            contents = {id: self.broker(id).segments(topic, index) for id in holders}
            if len(set(contents.values())) > 1:
                sizes = {id: len(content) for id, content in contents.items()}
                found.append(f"{topic}-{index}: {sizes} bytes, first difference at {first_difference(contents)}")
        return found


def first_difference(contents: Mapping[int, bytes]) -> int:
    """The first position at which not all are the same."""
    for position, values in enumerate(zip(*contents.values(), strict=False)):
        if len(set(values)) > 1:
            return position
    return min(map(len, contents.values()))
