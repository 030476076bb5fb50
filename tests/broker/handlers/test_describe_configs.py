import pytest

from barnabas.client.requests.admin import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    SET,
    TOPIC,
    describe_configs,
    incremental_alter_configs,
)
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.server.harness import connected
from tests.support.running_broker import create_topic, running

DYNAMIC_TOPIC, DYNAMIC_BROKER, DYNAMIC_DEFAULT_BROKER, STATIC_BROKER, DEFAULT = range(1, 6)
LONG, LIST, PASSWORD = 5, 7, 9


async def ask(client, *resources, version=4, **options):
    return (await client.ask(ApiKey.DESCRIBE_CONFIGS, describe_configs(*resources, **options), version)).results


async def test_every_version_describes_a_topic(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t", retention_ms=1000)
        for version in range(1, 5):
            (result,) = await ask(client, (TOPIC, "t"), version=version, documentation=version >= 3, synonyms=True)
            assert (result.error_code, result.resource_type, result.resource_name) == (ErrorCode.NONE, TOPIC, "t")
            assert len(result.configs) > 30
            (retention,) = [config for config in result.configs if config.name == "retention.ms"]
            assert (retention.value, retention.config_source) == ("1000", DYNAMIC_TOPIC)
            assert (retention.read_only, retention.is_sensitive) == (False, False)
            assert [(s.name, s.value, s.source) for s in retention.synonyms] == [
                ("retention.ms", "1000", DYNAMIC_TOPIC)
            ]
            assert retention.config_type == (LONG if version >= 3 else 0)
            assert bool(retention.documentation) == (version >= 3)


async def test_only_what_is_asked_for_is_answered(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        some, none, every = await ask(
            client, (TOPIC, "t", ["flush.ms", "bogus"]), (TOPIC, "t", ["x"]), (TOPIC, "t", [])
        )
        assert [config.name for config in some.configs] == ["flush.ms"]
        assert none.configs == []
        assert len(every.configs) > 30
        (config,) = some.configs
        assert (config.synonyms, config.documentation) == ([], None)


async def test_a_broker_says_where_its_settings_come_from(tmp_path):
    settings = {"node_id": 7, "num_partitions": 3, "log_segment_bytes": 2**21}
    async with running(tmp_path, **settings) as broker, connected(broker.server) as client:
        everywhere = (BROKER, "", [(SET, "log.retention.ms", "1000"), (SET, "log.segment.bytes", "3000000")])
        here = (BROKER, "7", [(SET, "log.retention.ms", "2000")])
        await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, incremental_alter_configs(everywhere, here), 1)
        names = ["log.retention.ms", "log.segment.bytes", "num.partitions", "log.retention.bytes"]
        mine, ours = await ask(client, (BROKER, "7", names), (BROKER, ""), synonyms=True)
        told = {config.name: (config.value, config.config_source, config.read_only) for config in mine.configs}
        assert told == {
            "log.retention.ms": ("2000", DYNAMIC_BROKER, False),
            "log.segment.bytes": ("3000000", DYNAMIC_DEFAULT_BROKER, False),
            "num.partitions": ("3", STATIC_BROKER, True),
            "log.retention.bytes": ("-1", DEFAULT, False),
        }
        (size,) = [config for config in mine.configs if config.name == "log.segment.bytes"]
        assert [(s.value, s.source) for s in size.synonyms] == [
            ("3000000", DYNAMIC_DEFAULT_BROKER),
            ("2097152", STATIC_BROKER),
            ("1073741824", DEFAULT),
        ]
        assert {config.name: config.value for config in ours.configs} == {
            "log.retention.ms": "1000",
            "log.segment.bytes": "3000000",
        }


async def test_passwords_are_not_described(tmp_path):
    async with running(tmp_path, ssl_key_password="secret") as broker, connected(broker.server) as client:
        (result,) = await ask(client, (BROKER, "0", ["ssl.key.password"]), synonyms=True)
        (password,) = result.configs
        assert (password.value, password.is_sensitive, password.config_type) == (None, True, PASSWORD)
        assert [synonym.value for synonym in password.synonyms] == [None]


@pytest.mark.parametrize(
    ("resource", "error"),
    [
        ((TOPIC, "unknown"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((TOPIC, "a b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        ((TOPIC, ""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        ((BROKER, "1"), ErrorCode.INVALID_REQUEST),
        ((BROKER, "zero"), ErrorCode.INVALID_REQUEST),
        ((BROKER_LOGGER, ""), ErrorCode.INVALID_REQUEST),
        ((BROKER_LOGGER, "1"), ErrorCode.INVALID_REQUEST),
        ((CLIENT_METRICS, ""), ErrorCode.INVALID_REQUEST),
        ((GROUP, ""), ErrorCode.INVALID_REQUEST),
        ((0, "x"), ErrorCode.INVALID_REQUEST),
        ((3, "x"), ErrorCode.INVALID_REQUEST),
        ((-128, "x"), ErrorCode.INVALID_REQUEST),
    ],
)
async def test_what_cannot_be_described(tmp_path, resource, error):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        refused, described = await ask(client, resource, (BROKER, "0"))
        assert (refused.error_code, refused.configs) == (error, [])
        assert (refused.resource_type, refused.resource_name) == resource
        assert refused.error_message
        assert described.error_code == ErrorCode.NONE


async def test_groups_client_metrics_and_loggers_have_their_defaults(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        group, metrics, loggers = await ask(client, (GROUP, "g"), (CLIENT_METRICS, "m"), (BROKER_LOGGER, "0"))
        assert {config.name: (config.value, config.config_source) for config in group.configs} == {
            "consumer.session.timeout.ms": ("45000", DEFAULT),
            "consumer.heartbeat.interval.ms": ("5000", DEFAULT),
            "consumer.assignment.interval.ms": ("1000", DEFAULT),
            "share.session.timeout.ms": ("45000", DEFAULT),
            "share.heartbeat.interval.ms": ("5000", DEFAULT),
            "share.assignment.interval.ms": ("1000", DEFAULT),
            "share.record.lock.duration.ms": ("30000", DEFAULT),
            "share.delivery.count.limit": ("5", DEFAULT),
            "share.partition.max.record.locks": ("2000", DEFAULT),
            "share.auto.offset.reset": ("latest", DEFAULT),
            "share.isolation.level": ("read_uncommitted", DEFAULT),
            "share.renew.acknowledge.enable": ("true", DEFAULT),
            "streams.session.timeout.ms": ("45000", DEFAULT),
            "streams.heartbeat.interval.ms": ("5000", DEFAULT),
            "streams.num.standby.replicas": ("0", DEFAULT),
            "streams.initial.rebalance.delay.ms": ("0", DEFAULT),
            "streams.assignment.interval.ms": ("1000", DEFAULT),
        }
        assert {config.name: config.value for config in metrics.configs} == {
            "interval.ms": "300000",
            "match": "",
            "metrics": "",
        }
        assert {config.name: config.value for config in loggers.configs} == {"root": "INFO"}
