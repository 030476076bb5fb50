import shutil

from barnabas.client.requests.admin import describe_log_dirs
from barnabas.client.requests.data import produce
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.server.harness import connected
from tests.support.batches import batch
from tests.support.running_broker import create_topic, running


def sizes(result):
    return {(topic.name, p.partition_index): p.partition_size for topic in result.topics for p in topic.partitions}


async def test_every_version_describes_the_data_directory(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t", partitions=2)
        records = batch(b"x" * 100)
        await client.ask(ApiKey.PRODUCE, produce(("t", 1, records)), 9)
        for version in range(1, 6):
            answer = await client.ask(ApiKey.DESCRIBE_LOG_DIRS, describe_log_dirs(every=True), version)
            assert answer.error_code == ErrorCode.NONE
            (result,) = answer.results
            assert (result.error_code, result.log_dir, result.is_cordoned) == (ErrorCode.NONE, str(tmp_path), False)
            assert sizes(result) == {("t", 0): 0, ("t", 1): len(records)}
            assert {(p.offset_lag, p.is_future_key) for p in result.topics[0].partitions} == {(0, False)}
            disk = shutil.disk_usage(tmp_path)
            assert result.total_bytes == (disk.total if version >= 4 else -1)
            assert (0 < result.usable_bytes <= disk.total) == (version >= 4)


async def test_only_what_is_asked_for_and_exists_is_answered(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t", partitions=3)
        await create_topic(broker, "u")
        request = describe_log_dirs(("t", [2, 0, 2, 7]), ("unknown", [0]), ("t", [0]))
        (result,) = (await client.ask(ApiKey.DESCRIBE_LOG_DIRS, request, 5)).results
        assert [(topic.name, [p.partition_index for p in topic.partitions]) for topic in result.topics] == [
            ("t", [2, 0])
        ]
        (result,) = (await client.ask(ApiKey.DESCRIBE_LOG_DIRS, describe_log_dirs(), 5)).results
        assert result.topics == []
