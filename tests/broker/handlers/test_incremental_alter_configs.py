import pytest

from barnabas.broker.registry.errors import RegistryUnavailable, SessionExpired
from barnabas.client.requests.admin import APPEND, BROKER, DELETE, SET, SUBTRACT, TOPIC, incremental_alter_configs
from barnabas.client.requests.data import produce
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.server.harness import connected
from tests.support.batches import batch
from tests.support.running_broker import create_topic, partition, running


def codes(answer):
    return [(result.resource_name, result.error_code) for result in answer.responses]


async def test_every_version_sets_and_deletes(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        for version in range(2):
            name = f"t{version}"
            await create_topic(broker, name, flush_ms=5, retention_ms=1000)
            request = incremental_alter_configs(
                (TOPIC, name, [(SET, "retention.ms", "2000"), (DELETE, "flush.ms", None)])
            )
            answer = await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, version)
            assert codes(answer) == [(name, ErrorCode.NONE)]
            assert broker.cluster.topics[name].configs == {"retention.ms": "2000"}
            config = partition(broker, name).log.config
            assert (config.retention_ms, config.flush_ms) == (2000, 2**63 - 1)


async def test_lists_are_appended_to_and_subtracted_from(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        for kind, value, policy in (
            (APPEND, "compact", {"delete", "compact"}),
            (SUBTRACT, "delete", {"compact"}),
            (SUBTRACT, "delete", {"compact"}),
            (SET, "delete", {"delete"}),
        ):
            request = incremental_alter_configs((TOPIC, "t", [(kind, "cleanup.policy", value)]))
            answer = await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, 1)
            assert codes(answer) == [("t", ErrorCode.NONE)]
            assert partition(broker, "t").log.config.cleanup_policy == policy


@pytest.mark.parametrize(
    ("operations", "error"),
    [
        ([(SET, "retention.ms", None)], ErrorCode.INVALID_REQUEST),
        ([(APPEND, "cleanup.policy", None)], ErrorCode.INVALID_REQUEST),
        ([(SET, "retention.ms", "1"), (DELETE, "retention.ms", None)], ErrorCode.INVALID_REQUEST),
        ([(9, "retention.ms", "1")], ErrorCode.INVALID_REQUEST),
        ([(APPEND, "retention.ms", "1")], ErrorCode.INVALID_CONFIG),
        ([(APPEND, "cleanup.policy", "bogus")], ErrorCode.INVALID_CONFIG),
        ([(SET, "retention.ms", "1"), (SET, "bogus", "1")], ErrorCode.INVALID_CONFIG),
    ],
)
async def test_what_is_refused(tmp_path, operations, error):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t", flush_ms=5)
        answer = await client.ask(
            ApiKey.INCREMENTAL_ALTER_CONFIGS, incremental_alter_configs((TOPIC, "t", operations)), 1
        )
        assert codes(answer) == [("t", error)]
        assert broker.cluster.topics["t"].configs == {"flush.ms": "5"}


async def test_a_topics_new_limits_hold_for_the_next_record(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        large = produce(("t", 0, batch(b"x" * 2000)))
        for limit, error in (("1000", ErrorCode.MESSAGE_TOO_LARGE), ("3000", ErrorCode.NONE)):
            request = incremental_alter_configs((TOPIC, "t", [(SET, "max.message.bytes", limit)]))
            await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, 1)
            answer = await client.ask(ApiKey.PRODUCE, large, 9)
            assert answer.responses[0].partition_responses[0].error_code == error


async def test_a_topics_new_segment_size_holds_for_the_next_record(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        for size, segments in (("1048576", 1), ("200", 3)):
            request = incremental_alter_configs((TOPIC, "t", [(SET, "internal.segment.bytes", size)]))
            await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, 1)
            for _ in range(2):
                await client.ask(ApiKey.PRODUCE, produce(("t", 0, batch(b"x" * 80))), 9)
            assert len(partition(broker, "t").log.segments) == segments


async def test_a_brokers_new_settings_hold_for_topics_without_their_own(tmp_path):
    async with running(tmp_path, node_id=7) as broker, connected(broker.server) as client:
        await create_topic(broker, "follows")
        await create_topic(broker, "own", retention_ms=1000)
        for whose, operation, value, held in (
            ("", SET, "5000", 5000),
            ("7", SET, "6000", 6000),
            ("", DELETE, None, 6000),
            ("7", DELETE, None, 604800000),
        ):
            request = incremental_alter_configs((BROKER, whose, [(operation, "log.retention.ms", value)]))
            answer = await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, 1)
            assert codes(answer) == [(whose, ErrorCode.NONE)]
            assert partition(broker, "follows").log.config.retention_ms == held
            assert partition(broker, "own").log.config.retention_ms == 1000


async def test_alterations_hold_after_a_restart(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        request = incremental_alter_configs(
            (TOPIC, "t", [(SET, "retention.ms", "1000")]),
            (BROKER, "0", [(SET, "message.max.bytes", "2000")]),
            (BROKER, "", [(SET, "log.cleaner.threads", "2")]),
        )
        await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, 1)
    async with running(tmp_path) as broker:
        assert (broker.config.message_max_bytes, broker.config.log_cleaner_threads) == (2000, 2)
        config = partition(broker, "t").log.config
        assert (config.retention_ms, config.max_message_bytes) == (1000, 2000)


async def test_a_file_that_contradicts_what_was_altered_wins(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        request = incremental_alter_configs((BROKER, "0", [(SET, "log.cleaner.dedupe.buffer.size", "4000000")]))
        await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, 1)
        assert broker.config.log_cleaner_dedupe_buffer_size == 4000000
    async with running(tmp_path, log_cleaner_threads=10) as broker:
        assert broker.config.log_cleaner_dedupe_buffer_size == 134217728


async def test_a_topic_stays_usable_when_its_broker_contradicts_it(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t", min_compaction_lag_ms=500)
        request = incremental_alter_configs((BROKER, "0", [(SET, "log.cleaner.max.compaction.lag.ms", "100")]))
        answer = await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, 1)
        assert codes(answer) == [("0", ErrorCode.NONE)]
    async with running(tmp_path) as broker, connected(broker.server) as client:
        answer = await client.ask(ApiKey.PRODUCE, produce(("t", 0, batch())), 9)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


@pytest.mark.parametrize("failure", [RegistryUnavailable, SessionExpired])
async def test_without_the_registry_an_alteration_fails_and_says_so(tmp_path, monkeypatch, failure):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")

        async def gone(operations):
            raise failure("gone")

        monkeypatch.setattr(broker.membership.registry, "multi", gone)
        operations = [(SET, "retention.ms", "1")]
        answer = await client.ask(
            ApiKey.INCREMENTAL_ALTER_CONFIGS, incremental_alter_configs((TOPIC, "t", operations)), 1
        )
        assert codes(answer) == [("t", ErrorCode.KAFKA_STORAGE_ERROR)]
        monkeypatch.undo()
