"""Random stories of three replicas, each from a seed: whatever happens, nothing that was acknowledged is lost.

Brokers are killed and come back, connections are cut, leaders are elected among those in sync, orders arrive late or
not at all, the controller cannot be reached. At the end everything heals, and all logs must agree.
"""

import random

import pytest

from tests.broker.replica.cluster import Acks, Cluster
from tests.storage.support import read_all

STEPS = 40


class Story:
    def __init__(self, cluster, seed):
        self.cluster = cluster
        self.random = random.Random(seed)
        self.acks = Acks()
        self.sent = 0
        self.committed = {}  # what a consumer has seen, by offset
        self.told = []

    async def tell(self):
        for _ in range(STEPS):
            step = self.random.choice(
                [self.append] * 8
                + [self.time] * 3
                + [self.kill, self.restart] * 2
                + [self.cut, self.mend, self.elect] * 2
            )
            self.told.append(step.__name__)
            await step()
            self.check()
        await self.heal()

    def leaders(self):
        """Those that believe that they lead."""
        up = [node for node in self.cluster.nodes.values() if node.is_up and node.replicas.find("t", 0) is not None]
        return [node for node in up if node.partition().leadership is not None]

    # --- what happens ---

    async def append(self):
        for node in self.leaders():
            if node.broker_id == self.cluster.controller.leader or self.random.random() < 0.5:  # or a zombie
                for _ in range(self.random.randint(1, 3)):
                    self.sent += 1
                    node.append(b"%d by %d" % (self.sent, node.broker_id), acks=self.acks)
        if self.random.random() < 0.5:
            await self.cluster.settle()

    async def time(self):
        await self.cluster.pass_time(self.random.choice([0.5, 1, 5, 50]))

    async def kill(self):
        up = [broker_id for broker_id, node in self.cluster.nodes.items() if node.is_up]
        if len(up) > 1:
            gone = self.random.choice(up)
            await self.cluster.kill(gone)
            controller = self.cluster.controller
            if controller.leader == gone or self.random.random() < 0.3:
                await self.elect()

    async def restart(self):
        down = [broker_id for broker_id, node in self.cluster.nodes.items() if not node.is_up]
        if down:
            back = self.random.choice(down)
            await self.cluster.restart(back)
            if self.random.random() < 0.7:
                await self.cluster.controller.tell([back])

    async def cut(self):
        await self.cluster.cut(*self.random.sample(sorted(self.cluster.nodes), 2))
        self.cluster.controller.is_reachable = self.random.random() < 0.7

    async def mend(self):
        await self.cluster.mend()
        self.cluster.controller.is_reachable = True

    async def elect(self):
        """One of those in sync that are up; those in sync that are down leave, unless none would be left."""
        controller = self.cluster.controller
        isr = [broker_id for broker_id in controller.isr if self.cluster[broker_id].is_up]
        if not isr:
            return
        tell = [broker_id for broker_id in self.cluster.nodes if self.random.random() < 0.8]
        await controller.elect(self.random.choice(isr), isr=isr, tell=tell)

    async def heal(self):
        cluster = self.cluster
        for broker_id, node in cluster.nodes.items():
            if not node.is_up:
                await cluster.restart(broker_id)
        cluster.controller.is_reachable = True
        await cluster.mend()
        if cluster.controller.leader not in cluster.controller.isr:
            await self.elect()
        await cluster.controller.tell()
        await cluster.pass_time(5)
        self.check()
        leader = cluster[cluster.controller.leader]
        assert sorted(cluster.controller.isr) == [1, 2, 3], self.told
        for node in cluster.nodes.values():
            assert contents(node) == contents(leader), self.told
            assert node.partition().log.high_watermark == leader.partition().log.end_offset
            assert node.set_aside.entries() == []
        lost = set(self.acks.acknowledged) - set(leader.values)
        assert not lost, (lost, self.told)

    # --- what must always hold ---

    def check(self):
        """What is committed anywhere is the same everywhere, forever."""
        for node in self.cluster.nodes.values():
            if not node.is_up or node.replicas.find("t", 0) is None:
                continue
            log = node.partition().log
            assert log.log_start_offset <= log.high_watermark <= log.end_offset
            epochs = [entry.epoch for entry in log.leader_epochs.entries]
            assert epochs == sorted(set(epochs))
            for record in read_all(log, upper_bound=log.high_watermark):
                seen = self.committed.setdefault(record.offset, record.value)
                assert seen == record.value, (node.broker_id, record.offset, self.told)


def contents(node):
    return [(record.offset, record.value) for record in read_all(node.partition().log)]


@pytest.mark.parametrize("seed", range(25))
async def test_a_story(tmp_path, seed):
    cluster = Cluster(tmp_path)
    await cluster.controller.elect(1)
    try:
        await Story(cluster, seed).tell()
    finally:
        cluster.close()
