"""Brokers of one process: killed, stopped, started again, cut off and healed."""

import asyncio
import gc
import os
from contextlib import asynccontextmanager

import pytest

from barnabas.broker.broker import Broker
from barnabas.broker.clock import SystemClock
from barnabas.broker.config.several import configs_for
from barnabas.broker.controller.create_topics import NewTopic
from barnabas.broker.local_cluster import LocalCluster, NodeError
from barnabas.broker.obstacles import CannotStart
from barnabas.broker.testing.clock import MovableClock
from barnabas.broker.testing.nodes import all_well, known_everywhere, term_of
from barnabas.broker.testing.reset import reset
from barnabas.broker.testing.settling import settle
from barnabas.broker.testing.snapshots import Snapshots
from barnabas.broker.testing.state import state_of
from barnabas.client.requests.data import fetch, produce
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.filesystem import FileSystem
from tests.broker.server.harness import connected
from tests.support.batches import batch
from tests.support.file_systems import NO_SPACE
from tests.support.running_broker import running

IDS = [0, 1, 2]


class WrongClock:
    """A clock whose wall time is wrong by some hours."""

    def __init__(self, clock, hours):
        self.monotonic, self.call_later = clock.monotonic, clock.call_later
        self.now_ms = lambda: clock.now_ms() + hours * 3_600_000


@asynccontextmanager
async def cluster_of_three(folder, *settings, hours_ahead=(0, 0, 0)):
    loop = asyncio.get_running_loop()
    clock = MovableClock(loop)
    configs = configs_for(3, None, [f"log.dirs={folder}", *settings], ["PLAINTEXT://127.0.0.1:0"] * 3)

    def make_broker(config, *parts):
        own = WrongClock(clock, hours_ahead[config.node_id])
        return Broker(config, *parts, clock=own, loop=loop, server_clock=SystemClock(loop))

    cluster = LocalCluster(configs, make_broker, clock, loop, durable=False)
    await cluster.start()
    try:
        yield cluster
    finally:
        await cluster.stop()


@pytest.fixture
async def cluster(tmp_path):
    async with cluster_of_three(tmp_path) as cluster:
        yield cluster


async def create_topic(cluster, name="t", partitions=1, replicas=-1, **configs):
    configs = {key.replace("_", "."): str(value) for key, value in configs.items()}
    (result,) = await term_of(cluster).create_topics([NewTopic(name, partitions, replicas, configs=configs)])
    assert not result.error_code, result.error_message
    await known_everywhere(cluster, name)


def partition_of(cluster, topic="t", index=0):
    """What the controller's own broker was told."""
    return cluster.controller.cluster.topic(topic).partitions[index]


async def until(condition):
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110, several brokers change on their own
            await asyncio.sleep(0.001)


async def advance(cluster, seconds):
    await cluster.clock.advance(seconds, lambda: settle(cluster))


async def write(cluster, value, broker_id, topic="t", acks=-1):
    """Produce one record to a broker, whoever leads. Returns its error code and its offset."""
    async with connected(cluster.nodes[broker_id].broker.server) as client:
        message = produce((topic, 0, batch(value)), acks=acks)
        answer = await client.ask(ApiKey.PRODUCE, message, version=9)
        (partition,) = answer.responses[0].partition_responses
        return ErrorCode(partition.error_code), partition.base_offset


async def written(cluster, value, topic="t"):
    """Produce one record to whoever leads, once it knows that it does; returns its offset."""

    def is_led():
        found = cluster.nodes[partition_of(cluster, topic).leader_id].broker.replicas.find(topic, 0)
        return found is not None and found.leadership is not None

    await until(is_led)
    error, offset = await write(cluster, value, partition_of(cluster, topic).leader_id, topic)
    assert error == ErrorCode.NONE
    return offset


def end_offsets(cluster, topic="t", index=0):
    return [broker.replicas.find(topic, index).log.end_offset for broker in cluster.brokers]


def in_sync(cluster, *broker_ids):
    return lambda: set(partition_of(cluster).isr_nodes) == set(broker_ids)


def registered(cluster):
    return {int(child) for child in cluster.tree.children("/brokers/ids")}


# --- three of them ---


async def test_all_know_each_other_and_agree_on_the_controller(cluster):
    assert registered(cluster) == {0, 1, 2}
    for broker in cluster.brokers:
        assert sorted(broker.cluster.brokers) == IDS
        assert broker.cluster.controller_id == cluster.controller.config.node_id


async def test_what_is_acknowledged_by_all_is_on_all(cluster):
    await create_topic(cluster)
    assert await written(cluster, b"a") == 0
    assert end_offsets(cluster) == [1, 1, 1]


async def test_each_has_a_folder_of_its_own(cluster, tmp_path):
    await create_topic(cluster)
    for folder in (tmp_path, tmp_path / "brokers" / "1", tmp_path / "brokers" / "2"):
        assert (folder / "t-0").is_dir()


async def test_a_broker_that_cannot_start_stops_the_others(tmp_path):
    (tmp_path / "brokers").mkdir()
    (tmp_path / "brokers" / "2").write_text("not a folder")
    with pytest.raises(CannotStart):
        async with cluster_of_three(tmp_path):
            pass
    (tmp_path / "brokers" / "2").unlink()
    async with cluster_of_three(tmp_path):
        pass


# --- killed, stopped, started ---


async def test_another_leads_when_the_leader_is_killed_and_nothing_is_lost(cluster):
    await create_topic(cluster)
    await written(cluster, b"a")
    former = partition_of(cluster).leader_id
    await cluster.kill_node(former)
    await until(lambda: cluster.controller and partition_of(cluster).leader_id not in (former, -1))
    assert former not in partition_of(cluster).isr_nodes
    assert await written(cluster, b"b") == 1


async def test_one_that_was_killed_comes_back_to_its_address_and_catches_up(cluster):
    await create_topic(cluster)
    await written(cluster, b"a")
    former = partition_of(cluster).leader_id
    address = cluster.nodes[former].broker.server.listeners[0].port
    await cluster.kill_node(former)
    await until(lambda: cluster.controller and partition_of(cluster).leader_id not in (former, -1))
    await written(cluster, b"b")
    await cluster.start_node(former)
    assert cluster.nodes[former].broker.server.listeners[0].port == address
    await until(in_sync(cluster, 0, 1, 2))
    assert end_offsets(cluster) == [2, 2, 2]


async def test_those_that_died_leave_nothing_behind(cluster):
    async def each_dies_once():
        for broker_id in IDS:
            await written(cluster, b"a")
            await cluster.kill_node(broker_id)
            await until(lambda: cluster.controller is not None)
            await cluster.start_node(broker_id)
            await until(in_sync(cluster, 0, 1, 2))

    def open_files():
        return len(os.listdir("/dev/fd"))

    await create_topic(cluster)
    await each_dies_once()
    before = open_files()
    for _ in range(3):
        await each_dies_once()
    await until(lambda: open_files() <= before)
    gc.collect()
    configs = [node.config for node in cluster.nodes.values()]
    brokers = [each for each in gc.get_objects() if type(each) is Broker and each.config in configs]
    assert sorted(each.config.node_id for each in brokers) == IDS


async def test_nobody_else_gets_the_port_of_one_that_is_not_running(cluster):
    host, port = "127.0.0.1", cluster.nodes[2].broker.server.listeners[0].port
    await cluster.kill_node(2)
    with pytest.raises(OSError, match="in use"):
        await asyncio.start_server(lambda *_: None, host, port, reuse_address=False)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(host, port)


async def test_a_clean_stop_hands_over_before_anybody_notices(cluster):
    await create_topic(cluster, partitions=3)
    led = {index: partition_of(cluster, index=index).leader_id for index in range(3)}
    assert sorted(led.values()) == IDS
    await cluster.stop_node(2)
    assert registered(cluster) == {0, 1}
    for index in range(3):
        assert partition_of(cluster, index=index).leader_id in (0, 1)
        assert 2 not in partition_of(cluster, index=index).isr_nodes


async def test_all_can_be_killed_and_the_last_one_to_go_has_everything(cluster):
    await create_topic(cluster)
    await written(cluster, b"a")
    for broker_id in IDS:
        await cluster.kill_node(broker_id)
    for broker_id in IDS:
        await cluster.start_node(broker_id)
    await known_everywhere(cluster, "t")
    await until(in_sync(cluster, 0, 1, 2))
    assert end_offsets(cluster) == [1, 1, 1]


async def test_what_is_left_of_a_cluster_serves_what_it_has_and_acknowledges_nothing_that_it_alone_has(tmp_path):
    async with cluster_of_three(tmp_path, "min.insync.replicas=2") as cluster:
        await create_topic(cluster)
        await written(cluster, b"a")
        last = partition_of(cluster).leader_id
        for broker_id in IDS:
            if broker_id != last:
                await cluster.kill_node(broker_id)
        await until(lambda: cluster.controller and in_sync(cluster, last)())
        assert await write(cluster, b"nobody else has it", last) == (ErrorCode.NOT_ENOUGH_REPLICAS, -1)
        assert await write(cluster, b"b", last, acks=1) == (ErrorCode.NONE, 1)
        async with connected(cluster.nodes[last].broker.server) as client:
            answer = await client.ask(ApiKey.FETCH, fetch(("t", 0, 0)), version=12)
            assert answer.responses[0].partitions[0].records
        (refused,) = await term_of(cluster).create_topics([NewTopic("new", 1, 3)])
        assert refused.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
        for broker_id in IDS:
            if broker_id != last:
                await cluster.start_node(broker_id)
        await until(in_sync(cluster, 0, 1, 2))
        assert await written(cluster, b"c") == 2
        assert end_offsets(cluster) == [3, 3, 3]


async def test_clocks_may_differ(tmp_path):
    """Nothing that brokers agree on rests on what time it is."""
    async with cluster_of_three(tmp_path, hours_ahead=(0, 12, -12)) as cluster:
        await create_topic(cluster, partitions=3)  # each broker leads one
        await written(cluster, b"a")
        await advance(cluster, 60)  # for longer than a follower may be behind, or a session be silent
        assert registered(cluster) == {0, 1, 2}
        for index in range(3):
            assert set(partition_of(cluster, index=index).isr_nodes) == {0, 1, 2}
        for offset in (1, 2):
            former = partition_of(cluster).leader_id
            await cluster.kill_node(former)
            await until(lambda gone=former: cluster.controller and partition_of(cluster).leader_id not in (gone, -1))
            assert await written(cluster, b"b") == offset
            await cluster.start_node(former)
            await until(in_sync(cluster, 0, 1, 2))
        assert end_offsets(cluster) == [3, 3, 3]


async def test_what_does_not_fit_is_refused(cluster):
    with pytest.raises(NodeError, match="there is no broker 7, only 0, 1, 2"):
        await cluster.kill_node(7)
    with pytest.raises(NodeError, match="broker 1 is already running"):
        await cluster.start_node(1)
    await cluster.kill_node(1)
    with pytest.raises(NodeError, match="broker 1 is not running"):
        await cluster.stop_node(1)
    with pytest.raises(NodeError, match="broker 1 is not running"):
        cluster.isolate_node(1)


# --- cut off and healed ---


async def test_a_follower_that_is_cut_off_leaves_the_isr_when_its_session_expires(cluster):
    await create_topic(cluster)
    follower = next(
        each for each in IDS if each not in (partition_of(cluster).leader_id, cluster.controller.config.node_id)
    )
    cluster.isolate_node(follower)
    await advance(cluster, 17)
    assert registered(cluster) == {0, 1, 2}
    await advance(cluster, 2)
    assert registered(cluster) == {0, 1, 2} - {follower}
    assert follower not in partition_of(cluster).isr_nodes
    assert await written(cluster, b"a") == 0
    cluster.heal_node(follower)
    await until(in_sync(cluster, 0, 1, 2))
    assert registered(cluster) == {0, 1, 2}
    assert end_offsets(cluster) == [1, 1, 1]


async def test_healed_in_time_it_keeps_its_session(cluster):
    epoch = cluster.nodes[2].broker.membership.broker_epoch
    cluster.isolate_node(2)
    await advance(cluster, 10)
    cluster.heal_node(2)
    await advance(cluster, 60)
    assert cluster.nodes[2].broker.membership.broker_epoch == epoch
    assert registered(cluster) == {0, 1, 2}


async def test_a_leader_that_is_cut_off_acknowledges_nothing_and_loses_what_only_it_had(cluster):
    await create_topic(cluster, min_insync_replicas=2)
    await written(cluster, b"a")
    former = partition_of(cluster).leader_id
    cluster.isolate_node(former)
    alone = asyncio.create_task(write(cluster, b"alone", former))
    await asyncio.sleep(0.1)
    assert not alone.done()
    await advance(cluster, 20)
    error, _ = await alone
    assert error != ErrorCode.NONE
    assert partition_of(cluster).leader_id != former
    assert await written(cluster, b"b") == 1
    cluster.heal_node(former)
    await until(in_sync(cluster, 0, 1, 2))
    assert end_offsets(cluster) == [2, 2, 2]
    async with connected(cluster.nodes[partition_of(cluster).leader_id].broker.server) as client:
        answer = await client.ask(ApiKey.FETCH, fetch(("t", 0, 0), max_wait_ms=0, session_epoch=-1), version=12)
        assert b"alone" not in bytes(answer.responses[0].partitions[0].records)


# --- disks that fail ---


def fill_disk(cluster, broker_id, full=True):
    def refuse(*args):
        raise NO_SPACE

    disk = cluster.nodes[broker_id].broker.replicas.directory._file_system
    disk.pwritev = refuse if full else FileSystem.pwritev


async def test_another_leads_when_the_leaders_disk_is_full(cluster):
    await create_topic(cluster)
    await written(cluster, b"a")
    former = partition_of(cluster).leader_id
    fill_disk(cluster, former)
    assert (await write(cluster, b"b", former))[0] == ErrorCode.KAFKA_STORAGE_ERROR
    await until(lambda: former not in (partition_of(cluster).leader_id, *partition_of(cluster).isr_nodes))
    assert await written(cluster, b"b") == 1
    fill_disk(cluster, former, full=False)
    await advance(cluster, 1)
    await until(in_sync(cluster, 0, 1, 2))
    assert end_offsets(cluster) == [2, 2, 2]


async def test_the_controller_learns_about_a_full_disk_when_the_registry_can_be_reached_again(cluster):
    await create_topic(cluster)
    await written(cluster, b"a")
    former = partition_of(cluster).leader_id
    cluster.nodes[former].session.cut_off()
    fill_disk(cluster, former)
    assert (await write(cluster, b"b", former))[0] == ErrorCode.KAFKA_STORAGE_ERROR
    await advance(cluster, 2)
    assert partition_of(cluster).leader_id == former
    cluster.nodes[former].session.restore()
    await advance(cluster, 1)
    await until(lambda: partition_of(cluster).leader_id != former)


async def test_clients_can_be_cut_off_too(cluster):
    server = cluster.nodes[2].broker.server
    cluster.isolate_node(2, clients=True)
    async with connected(server) as client:
        assert await client.closed()
    cluster.heal_node(2)
    await create_topic(cluster)
    async with connected(server) as client:
        assert not client.reader.at_eof()


async def test_a_controller_that_is_cut_off_is_replaced_and_steps_down(cluster):
    former = cluster.controller
    cluster.isolate_node(former.config.node_id)
    await advance(cluster, 20)
    assert cluster.controller is not former
    await create_topic(cluster, replicas=2)
    cluster.heal_node(former.config.node_id)
    await until(lambda: former.controller.term is None)
    await until(lambda: former.cluster.topic("t") is not None)


# --- all of it ---


async def test_all_well_again(cluster):
    await cluster.stop_node(2)
    cluster.isolate_node(0, clients=True)
    await cluster.kill_node(1)
    await all_well(cluster)
    await until(lambda: registered(cluster) == {0, 1, 2})
    assert [node["running"] for node in state_of(cluster)["nodes"]] == [True, True, True]
    assert not any(node["isolated"] for node in state_of(cluster)["nodes"])
    await create_topic(cluster)
    await written(cluster, b"a")


async def test_a_snapshot_has_the_data_of_all(cluster):
    await create_topic(cluster)
    await written(cluster, b"a")
    snapshots = Snapshots(cluster, cluster.clock)
    await snapshots.take("one")
    await written(cluster, b"b")
    await create_topic(cluster, "another")
    for _ in range(2):
        await snapshots.restore("one")
        await known_everywhere(cluster, "t")
        await until(in_sync(cluster, 0, 1, 2))
        assert end_offsets(cluster) == [1, 1, 1]
        assert list(state_of(cluster)["topics"]) == ["t"]
        assert await written(cluster, b"c") == 1


async def test_a_snapshot_needs_all_of_them(cluster):
    await cluster.kill_node(1)
    with pytest.raises(Exception, match="only while all brokers run; not running: 1"):
        await Snapshots(cluster, cluster.clock).take("one")


async def test_a_reset_empties_all_of_them(cluster, tmp_path):
    await create_topic(cluster, partitions=5)
    await written(cluster, b"a")
    await reset(cluster)
    assert state_of(cluster)["topics"] == {}
    assert not any(True for broker in cluster.brokers for _ in broker.replicas)
    await create_topic(cluster)
    assert await written(cluster, b"b") == 0


async def test_a_reset_undoes_the_settings_of_groups(cluster):
    follower = cluster.controller.config_follower
    await follower.alter_group("g", lambda present: {"share.auto.offset.reset": "earliest"})
    await follower.alter_group("h", lambda present: {"share.auto.offset.reset": "earliest"})
    await reset(cluster)
    assert [broker.config_follower.configured_groups() for broker in cluster.brokers] == [[], [], []]


async def test_the_data_of_a_single_broker_becomes_that_of_the_first_of_three(tmp_path):
    async with running(tmp_path) as single:
        (result,) = await single.controller.term.create_topics([NewTopic("old")])
        assert not result.error_code
        cluster_id = single.cluster.cluster_id
    async with cluster_of_three(tmp_path) as cluster:
        await known_everywhere(cluster, "old")
        assert {broker.cluster.cluster_id for broker in cluster.brokers} == {cluster_id}
        assert partition_of(cluster, "old").replica_nodes == (0,)
        assert await written(cluster, b"a", "old") == 0
        await create_topic(cluster, "new")
        assert sorted(partition_of(cluster, "new").replica_nodes) == IDS
    async with running(tmp_path) as single:  # which has what it leads
        assert single.replicas.find("old", 0).log.end_offset == 1
