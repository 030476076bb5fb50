"""A topic whose logs take more than a turn of the loop to create, while they are being created."""

import asyncio

import pytest

from barnabas.broker.config import replace_topic_config
from barnabas.broker.controller.create_partitions import NewPartitions
from barnabas.broker.controller.create_topics import NewTopic
from barnabas.broker.controller.delete_topics import TopicReference
from tests.support.running_broker import partition, running, term_of

LARGE = 100


@pytest.fixture
def one_step_a_turn(monkeypatch):
    monkeypatch.setattr("barnabas.broker.replica.turns._SECONDS_PER_TURN", 0)


@pytest.fixture
async def broker(tmp_path, one_step_a_turn):
    async with running(tmp_path) as broker:
        yield broker


def folders(data):
    return {path.name for path in data.iterdir() if path.is_dir()}


async def begin(broker, name="large", partitions=LARGE):
    """Create a topic whose logs do not exist yet."""
    known = asyncio.Event()
    cancel = broker.cluster.subscribe(lambda change: known.set())
    creating = asyncio.create_task(term_of(broker).create_topics([NewTopic(name, partitions)]))
    await known.wait()
    cancel()
    assert not creating.done()
    assert broker.replicas.find(name, 0) is None
    return broker.cluster.topic(name).topic_id


async def test_its_partitions_are_found_when_all_are_there(broker):
    await begin(broker)
    while broker.replicas.find("large", 0) is None:
        assert broker.replicas.find("large", LARGE - 1) is None
        await asyncio.sleep(0)
    assert broker.replicas.find("large", LARGE - 1) is not None
    assert len(broker.replicas.of_topic("large")) == LARGE


async def test_a_small_topic_does_not_wait_for_it(broker):
    await begin(broker, partitions=5 * LARGE)  # the answer may come some turns after the logs
    await term_of(broker).create_topics([NewTopic("small", 30)])
    assert partition(broker, "small", 29)
    assert broker.replicas.find("large", 0) is None
    await broker.replicas.made("large")


async def test_it_may_be_deleted_before_it_is_created(broker, tmp_path):
    topic_id = await begin(broker)
    await term_of(broker).delete_topics([TopicReference("large")])
    await broker.replicas.made("large")
    assert broker.replicas.find(topic_id, 0) is broker.replicas.find("large", 0) is None
    assert not [name for name in folders(tmp_path) if not name.endswith("-delete")]
    assert not broker.replicas.directory.logs


async def test_it_may_be_deleted_and_recreated_before_its_logs_exist(broker, tmp_path):
    first = await begin(broker)
    await term_of(broker).delete_topics([TopicReference("large")])
    second = await begin(broker, partitions=40)
    await broker.replicas.made("large")
    assert broker.replicas.find(first, 0) is None
    assert {each.log.topic_id.bytes for each in broker.replicas} == {second}
    assert len(broker.replicas.of_topic("large")) == 40
    assert {name for name in folders(tmp_path) if not name.endswith("-delete")} == {
        f"large-{index}" for index in range(40)
    }


async def test_it_may_grow_before_its_logs_exist(broker):
    await begin(broker)
    await term_of(broker).create_partitions([NewPartitions("large", LARGE + 100)])
    assert [each.index for each in broker.replicas] == list(range(LARGE + 100))


async def test_settings_that_change_before_its_logs_exist_apply(broker):
    await begin(broker)
    await broker.config_follower.alter_topic(
        "large", lambda _: replace_topic_config({"retention.ms": "1000"}, broker.config)
    )
    await broker.replicas.made("large")
    assert {each.log.config.retention_ms for each in broker.replicas} == {1000}


async def test_the_brokers_settings_that_change_before_its_logs_exist_apply(broker):
    await begin(broker)
    await broker.config_follower.alter_broker(None, lambda _: {"log.retention.ms": "1000"})
    await broker.replicas.made("large")
    assert {each.log.config.retention_ms for each in broker.replicas} == {1000}


async def test_a_stop_does_not_wait_for_it_and_the_next_start_creates_it(tmp_path, one_step_a_turn):
    async with running(tmp_path) as broker:
        await begin(broker)
    assert len(folders(tmp_path)) < LARGE
    async with running(tmp_path) as broker:
        assert len(broker.replicas.of_topic("large")) == LARGE


async def test_what_was_deleted_before_a_stop_does_not_come_back(tmp_path, one_step_a_turn):
    async with running(tmp_path) as broker:
        await term_of(broker).create_topics([NewTopic("large", LARGE)])
        await term_of(broker).delete_topics([TopicReference("large")])
    async with running(tmp_path) as broker:
        assert not list(broker.replicas)
        assert folders(tmp_path) == set()
