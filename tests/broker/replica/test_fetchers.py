"""Which leader is followed where."""

import asyncio
from types import SimpleNamespace

import pytest

from barnabas.broker.replica.fetchers import Fetchers
from barnabas.broker.replica.partition import Partition
from barnabas.protocol.messages.leader_and_isr import LeaderAndIsrLiveLeader
from tests.broker.replica.partition.fakes import FakeReplicas
from tests.broker.replica.test_fetcher import SETTINGS, Leader, settle
from tests.storage.support import make_log


class Network:
    def __init__(self):
        self.opened = {}

    def open(self, host, port):
        leader = Leader()
        self.opened.setdefault((host, port), []).append(leader)
        return leader


@pytest.fixture
def network():
    return Network()


@pytest.fixture
def host():
    return FakeReplicas()


@pytest.fixture
async def fetchers(network, host):
    loop = asyncio.get_running_loop()
    fetchers = Fetchers(
        1, lambda: 42, network.open, SETTINGS, None, host.worker, SimpleNamespace(is_failing=False), host.clock, loop
    )
    yield fetchers
    fetchers.close()
    await settle()


@pytest.fixture
def make(tmp_path, host):
    def make(index, leader, epoch=0):
        partition = Partition(host, "t", bytes([index] * 16), index, make_log(tmp_path / f"t-{index}"))
        partition.follow(leader, epoch)
        return partition

    return make


def at(broker_id, port):
    return LeaderAndIsrLiveLeader(broker_id=broker_id, host_name="h", port=port)


def followed(network):
    """The partitions that were last requested from each address, over open connections."""
    return {
        port: sorted(leader.asked[2])
        for (_, port), leaders in network.opened.items()
        for leader in leaders
        if not leader.closed and leader.requests
    }


async def test_one_connection_for_each_leader(fetchers, network, make):
    fetchers.leaders_are_at([at(2, 92), at(3, 93)])
    for index, leader in enumerate((2, 3, 2)):
        fetchers.follow(make(index, leader))
    await settle()
    assert followed(network) == {92: [0, 2], 93: [1]}
    assert {address: len(leaders) for address, leaders in network.opened.items()} == {("h", 92): 1, ("h", 93): 1}


async def test_a_leader_that_is_not_there_yet_is_followed_when_it_is(fetchers, network, make):
    partition = make(0, 2)
    fetchers.follow(partition)
    await settle()
    assert network.opened == {}
    fetchers.leaders_are_at([at(2, 92)])
    await settle()
    assert followed(network) == {92: [0]}


async def test_a_leader_that_has_moved_is_followed_there(fetchers, network, make):
    fetchers.leaders_are_at([at(2, 92)])
    fetchers.follow(make(0, 2))
    fetchers.leaders_are_at([at(2, 92)])
    await settle()
    assert len(network.opened["h", 92]) == 1
    fetchers.leaders_are_at([at(2, 95)])
    await settle()
    assert network.opened["h", 92][0].closed
    assert followed(network) == {95: [0]}


async def test_one_that_changes_its_leader(fetchers, network, make):
    fetchers.leaders_are_at([at(2, 92), at(3, 93)])
    partition = make(0, 2)
    fetchers.follow(partition)
    await settle()
    partition.follow(3, 1)
    fetchers.follow(partition)
    await settle()
    assert network.opened["h", 92][0].closed  # nobody follows that broker any more
    assert followed(network) == {93: [0]}


async def test_forgetting_what_is_not_followed_does_no_harm(fetchers, make):
    fetchers.forget(make(0, 2))
