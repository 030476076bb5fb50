"""Registration and elections in a real ZooKeeper."""

import asyncio
from itertools import count

import pytest
from kazoo.client import KazooClient

from barnabas.broker.clock import SystemClock
from barnabas.broker.cluster.deletions import deletions
from barnabas.broker.cluster.registration import RegistrationRefused
from barnabas.broker.cluster.term import MIRRORED, Term
from barnabas.broker.controller.create_partitions import NewPartitions
from barnabas.broker.controller.create_topics import NewTopic
from barnabas.broker.controller.delete_topics import TopicReference
from barnabas.broker.controller.results import Decision
from barnabas.broker.registry.zookeeper import ZooKeeperRegistry
from barnabas.protocol.errors import ErrorCode
from tests.broker.cluster.brokers import Brokers, Member
from tests.broker.controller.cluster import raise_leader_epochs
from tests.support.zookeeper import ZooKeeper, unavailable

pytestmark = [pytest.mark.java]

CHROOTS = count(1)


@pytest.fixture(scope="module")
def zookeeper():
    reason = unavailable()
    if reason:
        pytest.skip(reason)
    with ZooKeeper() as zookeeper:
        yield zookeeper


class ZooKeeperMember(Member):
    async def _open_session(self):
        registry = await ZooKeeperRegistry.open(self.brokers.connect, 6000, 20_000)
        self.sessions.append(registry)
        return registry

    async def _make_term(self, registry, elected, on_end):
        for path in MIRRORED:
            await registry.mirror(path)
        return await super()._make_term(registry, elected, on_end)


@pytest.fixture
async def brokers(zookeeper):
    brokers = Brokers(1, 2, 3)
    brokers.clock = SystemClock(asyncio.get_running_loop())
    brokers.connect = f"{zookeeper.connect}/cluster-{next(CHROOTS)}"
    brokers.members = {each: ZooKeeperMember(brokers, each) for each in (1, 2, 3)}
    for member in brokers.members.values():
        await member.start()
    yield brokers
    for member in brokers.members.values():
        await member.stop()


async def until(condition):
    """No single event tells when something is true on three brokers."""
    end = asyncio.get_running_loop().time() + 60
    for _ in iter(condition, True):
        assert asyncio.get_running_loop().time() < end
        await asyncio.sleep(0.02)


def term_without(brokers, gone=()) -> Term | None:
    terms = [member.term for each, member in brokers.members.items() if each not in gone and member.term is not None]
    return terms[0] if len(terms) == 1 else None


async def test_a_cluster_lives_through_the_loss_of_its_controller(brokers):
    await until(lambda: all(each.live_brokers == [1, 2, 3] for each in brokers.scripted.values()))
    term = brokers.members[1].term
    (created,) = await term.create_topics([NewTopic("t", assignments=[(0, (1, 2, 3)), (1, (2, 3, 1))])])
    assert created.error_code is ErrorCode.NONE
    await until(lambda: all("t" in each.metadata for each in brokers.scripted.values()))

    await brokers.members[1].stop()
    await until(lambda: term_without(brokers, {1}) is not None)
    term = term_without(brokers, {1})
    assert term.epoch == 2
    await until(lambda: term.cluster.partition("t", 0).leader_id == 2)
    assert term.cluster.partition("t", 0).isr_nodes == (2, 3)

    await brokers.members[1].restart()
    await until(lambda: brokers.scripted[1].live_brokers == [1, 2, 3])
    await until(lambda: ("t", 0) in brokers.scripted[1].replicas)
    assert brokers.scripted[1].replicas["t", 0].leader == 2

    (deleted,) = await term.delete_topics([TopicReference("t")])
    assert deleted.error_code is ErrorCode.NONE
    assert deletions(term._registry) == {created.topic_id: {1, 2, 3}}
    await until(lambda: not any(each.replicas for each in brokers.scripted.values()))


async def test_a_topic_whose_partitions_do_not_fit_into_one_transaction(brokers):
    """ZooKeeper takes a megabyte at a time."""
    await until(lambda: all(each.live_brokers == [1, 2, 3] for each in brokers.scripted.values()))
    term = brokers.members[1].term
    (created,) = await term.create_topics([NewTopic("t", 4000, 3)])
    assert created.error_code is ErrorCode.NONE
    partitions = term.cluster.topic("t").partitions
    assert {len(partition.isr_nodes) for partition in partitions} == {3}
    (grown,) = await term.create_partitions([NewPartitions("t", 6000)])
    assert grown.error_code is ErrorCode.NONE
    assert all(partition.leader_id in (1, 2, 3) for partition in term.cluster.topic("t").partitions)
    await until(lambda: all(len(each.replicas) == 6000 for each in brokers.scripted.values()))
    (deleted,) = await term.delete_topics([TopicReference("t")])
    assert deleted.error_code is ErrorCode.NONE


async def test_a_former_controller_knows_what_happened_since(brokers):
    """States of partitions are not watched: a second term reads them again."""
    first = brokers.members[1].term
    await until(lambda: sorted(first.cluster.brokers) == [1, 2, 3])
    (created,) = await first.create_topics([NewTopic("t", assignments=[(0, (2, 3))])])
    assert created.error_code is ErrorCode.NONE, created
    leaving = [brokers.members[2].election, brokers.members[3].election]
    await leaving[1].leave()
    await brokers.members[1].membership.registry.delete("/controller")
    await until(lambda: term_without(brokers) not in (None, first))
    second = term_without(brokers)
    if second is brokers.members[1].term:
        return  # it was faster than the others, and there is nothing to see
    await second.carry_out(lambda: _raise_epoch(second))
    await leaving[0].leave()
    await brokers.members[2].membership.registry.delete("/controller")
    await until(lambda: brokers.members[1].term is not None)
    assert brokers.members[1].term.cluster.partition("t", 0).leader_epoch == 1


def _raise_epoch(term):
    partition = term.cluster.partition("t", 0)
    if partition.leader_epoch:
        return Decision([], [])
    return Decision([], raise_leader_epochs(term.cluster, partition.leader_id, term.epoch))


async def test_a_broker_id_that_is_taken(brokers):
    other = ZooKeeperMember(brokers, 2)
    other.directory_id = "elsewhere"
    with pytest.raises(RegistrationRefused, match="another broker with the id 2"):
        await other.start()
    await other.membership.registry.close()


async def test_an_expired_session_is_followed_by_a_new_one(brokers):
    member = brokers.members[1]
    assert member.term is not None
    epoch = member.membership.broker_epoch
    session, password = member.session._client.client_id
    thief = KazooClient(brokers.connect.partition("/")[0], client_id=(session, password))
    await asyncio.to_thread(thief.start)
    await asyncio.to_thread(thief.stop)
    await until(lambda: member.membership.broker_epoch > epoch)
    await until(lambda: term_without(brokers) is not None)
    await until(lambda: sorted(term_without(brokers).cluster.brokers) == [1, 2, 3])
