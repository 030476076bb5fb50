import pytest

from barnabas.client.requests.admin import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC, alter_configs
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.server.harness import connected
from tests.support.running_broker import create_topic, partition, running


def codes(answer):
    return [(result.resource_name, result.error_code) for result in answer.responses]


async def test_every_version_replaces_a_topics_settings(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        for version in range(3):
            name = f"t{version}"
            await create_topic(broker, name, flush_ms=5, retention_ms=1000)
            request = alter_configs((TOPIC, name, [("retention.ms", "2000"), ("segment.bytes", "2097152")]))
            answer = await client.ask(ApiKey.ALTER_CONFIGS, request, version)
            (result,) = answer.responses
            assert (result.resource_type, result.resource_name) == (TOPIC, name)
            assert (result.error_code, result.error_message) == (ErrorCode.NONE, None)
            assert broker.cluster.topics[name].configs == {"retention.ms": "2000", "segment.bytes": "2097152"}
            config = partition(broker, name).log.config
            assert (config.retention_ms, config.segment_bytes, config.flush_ms) == (2000, 2097152, 2**63 - 1)


async def test_a_brokers_settings_are_replaced(tmp_path):
    async with running(tmp_path, node_id=7) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        for configs, held in (
            ([("log.flush.interval.ms", "5"), ("message.max.bytes", "1000")], (5, 1000)),
            ([("message.max.bytes", "2000")], (2**63 - 1, 2000)),
            ([], (2**63 - 1, 1048588)),
        ):
            answer = await client.ask(ApiKey.ALTER_CONFIGS, alter_configs((BROKER, "7", configs)), 2)
            assert codes(answer) == [("7", ErrorCode.NONE)]
            config = partition(broker, "t").log.config
            assert (config.flush_ms, config.max_message_bytes) == held


async def test_validating_changes_nothing(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t", retention_ms=1000)
        request = alter_configs((TOPIC, "t", [("retention.ms", "2000")]), (BROKER, "0", [("message.max.bytes", "1")]))
        request.validate_only = True
        answer = await client.ask(ApiKey.ALTER_CONFIGS, request, 2)
        assert codes(answer) == [("t", ErrorCode.NONE), ("0", ErrorCode.NONE)]
        assert broker.cluster.topics["t"].configs == {"retention.ms": "1000"}
        assert broker.config.message_max_bytes == 1048588


@pytest.mark.parametrize(
    ("resource", "configs", "error"),
    [
        ((TOPIC, "t"), [("bogus", "1")], ErrorCode.INVALID_CONFIG),
        ((TOPIC, "t"), [("retention.ms", "soon")], ErrorCode.INVALID_CONFIG),
        ((TOPIC, "t"), [("retention.ms", None)], ErrorCode.INVALID_REQUEST),
        ((TOPIC, "t"), [("retention.ms", "1"), ("retention.ms", "2")], ErrorCode.INVALID_REQUEST),
        ((TOPIC, "unknown"), [("retention.ms", "1")], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((TOPIC, "unknown"), [("bogus", "1")], ErrorCode.INVALID_CONFIG),
        ((TOPIC, "a b"), [], ErrorCode.INVALID_TOPIC_EXCEPTION),
        ((TOPIC, ""), [], ErrorCode.INVALID_REQUEST),
        ((BROKER, "1"), [], ErrorCode.INVALID_REQUEST),
        ((BROKER, "zero"), [], ErrorCode.INVALID_REQUEST),
        ((BROKER, "0"), [("num.partitions", "5")], ErrorCode.INVALID_REQUEST),
        ((BROKER, "0"), [("log.retention.ms", "soon")], ErrorCode.INVALID_REQUEST),
        ((BROKER, ""), [("ssl.client.auth", "none")], ErrorCode.INVALID_REQUEST),
        ((BROKER_LOGGER, "0"), [("root", "DEBUG")], ErrorCode.INVALID_REQUEST),
        ((CLIENT_METRICS, "m"), [("interval.ms", "1000")], ErrorCode.INVALID_REQUEST),
        ((GROUP, "g"), [("consumer.session.timeout.ms", "70000")], ErrorCode.INVALID_CONFIG),
        ((3, "x"), [], ErrorCode.INVALID_REQUEST),
    ],
)
async def test_what_is_refused(tmp_path, resource, configs, error):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t", flush_ms=5)
        await create_topic(broker, "other")
        request = alter_configs((*resource, configs), (TOPIC, "other", [("retention.ms", "1")]))
        answer = await client.ask(ApiKey.ALTER_CONFIGS, request, 2)
        assert codes(answer) == [(resource[1], error), ("other", ErrorCode.NONE)]
        assert answer.responses[0].error_message
        assert broker.cluster.topics["t"].configs == {"flush.ms": "5"}
        assert broker.cluster.topics["other"].configs == {"retention.ms": "1"}


async def test_a_resource_that_is_named_twice_stays_as_it_is(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t", flush_ms=5)
        request = alter_configs((TOPIC, "t", [("flush.ms", "6")]), (TOPIC, "t", [("flush.ms", "7")]))
        answer = await client.ask(ApiKey.ALTER_CONFIGS, request, 2)
        assert codes(answer) == [("t", ErrorCode.INVALID_REQUEST)] * 2
        assert broker.cluster.topics["t"].configs == {"flush.ms": "5"}
