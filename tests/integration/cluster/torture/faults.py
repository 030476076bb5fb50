"""What is done to a cluster, at moments and in an order that a seed decides."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from tests.support.cluster import REGISTRY, SESSION_SECONDS, BrokerError, BrokerNode, Cluster

PATIENCE = 240.0


class Faults:
    """Each fault ends with what it takes for the cluster to heal by itself, and does not wait for that.

    A broker that is started again is not waited for either, so that the next fault may come while it starts.
    """

    def __init__(self, cluster: Cluster, chance: random.Random, topic: str, partitions: int) -> None:
        self.cluster = cluster
        self.chance = chance
        self.story: list[str] = []
        self._topic = topic
        self._partitions = partitions
        self._begun = time.monotonic()

    def tell(self, text: str) -> None:
        self.story.append(f"{time.monotonic() - self._begun:6.1f} s ({time.monotonic():.1f}) {text}")

    @property
    def all(self) -> dict[str, Callable[[], None]]:
        return {
            "a broker killed": self.kill_a_broker,
            "the controller killed": self.kill_the_controller,
            "a leader killed": self.kill_a_leader,
            "a broker stopped": self.stop_a_broker,
            "a broker paused": self.pause_a_broker,
            "ZooKeeper killed": self.kill_zookeeper,
            "a leader isolated": self.isolate_a_leader,
            "a broker cut off from ZooKeeper": self.cut_off_from_zookeeper,
            "a broker cut off from the others": self.cut_off_from_the_others,
            "one direction cut": self.cut_one_direction,
            "a disk wiped": self.wipe_a_disk,
            "all killed at once": self.kill_all,
        }

    def _wait(self, seconds: float) -> None:
        """For a fault to have its consequences."""
        time.sleep(seconds)

    def _longer_than_a_session(self) -> float:
        return SESSION_SECONDS + self.chance.uniform(1, 5)

    def _any_broker(self) -> BrokerNode:
        return self.chance.choice(self.cluster.brokers)

    def _a_running_broker(self) -> BrokerNode:
        return self.chance.choice([each for each in self.cluster.brokers if each.is_running] or self.cluster.brokers)

    def _a_leader(self) -> BrokerNode:
        """Of any partition that has one; otherwise any broker."""
        partitions = self.chance.sample(range(self._partitions), self._partitions)
        leaders = [self.cluster.leader(self._topic, index) for index in partitions]
        return next((each for each in leaders if each is not None), self._any_broker())

    def _kill_and_start(self, broker: BrokerNode) -> None:
        self.tell(f"  broker {broker.id} ({broker.make})")
        broker.kill()
        self._wait(self.chance.choice([0, self._longer_than_a_session()]))
        self.cluster.launch(broker)

    def kill_a_broker(self) -> None:
        self._kill_and_start(self._any_broker())

    def kill_the_controller(self) -> None:
        self._kill_and_start(self.cluster.controller)

    def kill_a_leader(self) -> None:
        self._kill_and_start(self._a_leader())

    def stop_a_broker(self) -> None:
        broker = self._a_running_broker()
        self.tell(f"  broker {broker.id}")
        try:
            broker.stop()
        except BrokerError as error:  # it waits for a controller, and nobody is one
            self.tell(f"  {str(error).splitlines()[0]}")
        self.cluster.launch(broker)

    def pause_a_broker(self) -> None:
        broker = self._a_running_broker()
        self.tell(f"  broker {broker.id}")
        broker.pause()
        self._wait(self._longer_than_a_session())
        broker.resume()

    def kill_zookeeper(self) -> None:
        self.cluster.zookeeper.kill()
        self._wait(self.chance.uniform(0, 2 * SESSION_SECONDS))
        self.cluster.zookeeper.start()

    def isolate_a_leader(self) -> None:
        """It does not know yet that others lead; its clients still reach it."""
        broker = self._a_leader()
        self.tell(f"  broker {broker.id}")
        self.cluster.isolate(broker.id)
        self._wait(self._longer_than_a_session())
        self.cluster.network.heal()

    def cut_off_from_zookeeper(self) -> None:
        broker = self._any_broker()
        self.tell(f"  broker {broker.id}")
        self.cluster.network.cut((broker.id, REGISTRY), (REGISTRY, broker.id))
        self._wait(self._longer_than_a_session())
        self.cluster.network.heal()

    def cut_off_from_the_others(self) -> None:
        """All of them keep their sessions, so leaders have to shrink the ISR themselves, if they can."""
        broker = self._any_broker()
        self.tell(f"  broker {broker.id}")
        self.cluster.isolate(broker.id, registry=False)
        self._wait(self._longer_than_a_session())
        self.cluster.network.heal()

    def cut_one_direction(self) -> None:
        one, other = self.chance.sample([*self.cluster.ids, REGISTRY], 2)
        self.tell(f"  from {one} to {other}")
        self.cluster.network.cut((one, other))
        self._wait(self._longer_than_a_session())
        self.cluster.network.heal()

    def wipe_a_disk(self) -> None:
        """Nothing is guaranteed unless everything is in sync before, and the others know it before the next fault."""
        deadline = time.monotonic() + PATIENCE
        while self.cluster.what_is_missing() and time.monotonic() < deadline:
            self.cluster.start_those_that_ended()  # one may end while it starts, because ZooKeeper has gone
            time.sleep(0.5)
        self.cluster.await_whole(1)
        broker = self._any_broker()
        self.tell(f"  broker {broker.id}")
        broker.kill()
        broker.wipe()
        self.cluster.await_out_of_sync(broker, PATIENCE)
        self.cluster.launch(broker)

    def kill_all(self) -> None:
        for each in self.cluster.brokers:
            each.kill()
        for each in self.cluster.brokers:
            self.cluster.launch(each)
