import pytest

from barnabas.broker.config import BrokerConfig, ConfigSource, InvalidConfigError, TopicConfig
from barnabas.broker.config.topic_config import TOPIC_SETTINGS

DAY_MS = 24 * 60 * 60 * 1000


def topic(broker: dict[str, str] | None = None, **overrides: str) -> TopicConfig:
    return TopicConfig({name.replace("_", "."): value for name, value in overrides.items()}, BrokerConfig(broker))


def test_without_settings_kafka_s_defaults_apply():
    config = topic()
    assert config.retention_ms == 7 * DAY_MS
    assert config.segment_bytes == 1073741824
    assert config.cleanup_policy == ("delete",)
    assert config.flush_ms == 2**63 - 1
    assert config.segment_jitter_ms == 0


def test_overrides_win_over_the_broker_s_settings():
    config = topic({"message.max.bytes": "5", "log.cleanup.policy": "compact"}, max_message_bytes="6")
    assert config.max_message_bytes == 6
    assert config.cleanup_policy == ("compact",)
    assert config.overrides == {"max.message.bytes": "6"}


@pytest.mark.parametrize(
    ("broker", "retention_ms"),
    [
        ({"log.retention.hours": "24"}, DAY_MS),
        ({"log.retention.hours": "24", "log.retention.minutes": "2"}, 120_000),
        ({"log.retention.hours": "24", "log.retention.minutes": "2", "log.retention.ms": "3"}, 3),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.minutes": "-7"}, -1),
    ],
)
def test_the_finest_unit_of_the_broker_s_retention_counts(broker, retention_ms):
    assert topic(broker).retention_ms == retention_ms


def test_the_finest_unit_of_the_broker_s_other_times_counts():
    config = topic({"log.roll.hours": "2", "log.roll.jitter.hours": "1"})
    assert (config.segment_ms, config.segment_jitter_ms) == (7_200_000, 3_600_000)
    config = topic({"log.roll.hours": "2", "log.roll.ms": "5", "log.roll.jitter.hours": "1", "log.roll.jitter.ms": "0"})
    assert (config.segment_ms, config.segment_jitter_ms) == (5, 0)
    assert topic({"log.flush.scheduler.interval.ms": "7"}).flush_ms == 7
    assert topic({"log.flush.scheduler.interval.ms": "7", "log.flush.interval.ms": "3"}).flush_ms == 3


def test_what_is_altered_for_the_broker_applies_to_its_topics():
    broker = BrokerConfig()
    broker.set_dynamic({"log.retention.ms": "5000"}, {})
    assert TopicConfig({}, broker).retention_ms == 5000


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"foo": "bar"}, "foo is not a topic setting"),
        ({"retention.sm": "1"}, "did you mean retention.ms?"),
        ({"log.retention.ms": "1"}, "log.retention.ms is not a topic setting"),
        ({"retention.ms": "abc"}, "retention.ms is 'abc', but it must be a whole number from -1"),
        ({"retention.ms": "-2"}, "from -1"),
        ({"max.message.bytes": ""}, "max.message.bytes is ''"),
        ({"segment.bytes": "14"}, "from 1048576"),
        ({"cleanup.policy": "none"}, "each one of compact, delete"),
        ({"compression.type": "brotli"}, "one of uncompressed, zstd, lz4, snappy, gzip, producer"),
        ({"min.insync.replicas": "0"}, "from 1"),
        ({"min.cleanable.dirty.ratio": "1.5"}, "a number from 0 to 1"),
        ({"leader.replication.throttled.replicas": "0:1:2"}, "leader.replication.throttled.replicas"),
        ({"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "50"}, "min.compaction.lag.ms is 100"),
        ({"remote.storage.enable": "true"}, "no tiered storage"),
        ({"message.format.version": "2.8"}, "message.format.version is not a topic setting"),
    ],
)
def test_what_kafka_refuses(overrides, words):
    with pytest.raises(InvalidConfigError) as caught:
        TopicConfig(overrides, BrokerConfig()).check()
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "overrides",
    [
        {"retention.ms": "-1"},
        {"retention.ms": "0"},
        {"cleanup.policy": ""},
        {"cleanup.policy": "compact, delete, compact"},
        {"leader.replication.throttled.replicas": "*"},
        {"follower.replication.throttled.replicas": "0:1,1:2"},
        {"preallocate": "True"},
        {"compression.gzip.level": "-1"},
        {"internal.segment.bytes": "1024"},
    ],
)
def test_what_kafka_accepts(overrides):
    TopicConfig(overrides, BrokerConfig()).check()


def test_every_problem_is_reported():
    with pytest.raises(InvalidConfigError, match=r"foo is not .*; retention.ms is 'a', .*; flush.ms is 'b', "):
        topic(retention_ms="a", foo="1", flush_ms="b")


def test_the_lag_is_checked_against_what_the_broker_says_too():
    config = topic({"log.cleaner.max.compaction.lag.ms": "50"}, min_compaction_lag_ms="100")
    with pytest.raises(InvalidConfigError, match=r"max\.compaction\.lag\.ms, which is 50"):
        config.check()


def described(
    config: TopicConfig, name: str
) -> tuple[str | None, ConfigSource, list[tuple[str, str | None, ConfigSource]]]:
    (entry,) = config.describe([name])
    assert not entry.read_only
    assert not entry.sensitive
    return entry.value, entry.source, [tuple(synonym) for synonym in entry.synonyms]


def test_a_description_says_where_a_value_comes_from():
    config = topic({"log.segment.bytes": "2097152"}, retention_bytes="10")
    assert described(config, "retention.bytes") == (
        "10",
        ConfigSource.DYNAMIC_TOPIC_CONFIG,
        [
            ("retention.bytes", "10", ConfigSource.DYNAMIC_TOPIC_CONFIG),
            ("log.retention.bytes", "-1", ConfigSource.DEFAULT_CONFIG),
        ],
    )
    assert described(config, "segment.bytes") == (
        "2097152",
        ConfigSource.STATIC_BROKER_CONFIG,
        [
            ("log.segment.bytes", "2097152", ConfigSource.STATIC_BROKER_CONFIG),
            ("log.segment.bytes", "1073741824", ConfigSource.DEFAULT_CONFIG),
        ],
    )
    assert described(config, "flush.ms") == ("9223372036854775807", ConfigSource.DEFAULT_CONFIG, [])
    assert described(config, "remote.storage.enable") == ("false", ConfigSource.DEFAULT_CONFIG, [])


def test_values_are_described_as_kafka_writes_them():
    config = topic(cleanup_policy="compact, delete", preallocate="TRUE", min_cleanable_dirty_ratio=".25")
    assert described(config, "cleanup.policy")[0] == "compact,delete"
    assert described(config, "preallocate")[0] == "true"
    assert described(config, "min.cleanable.dirty.ratio")[0] == "0.25"


def test_everything_is_described_but_what_is_internal():
    assert {entry.name for entry in topic().describe()} == TOPIC_SETTINGS.keys() - {"internal.segment.bytes"}
    assert "internal.segment.bytes" in {entry.name for entry in topic(internal_segment_bytes="1024").describe()}


@pytest.mark.parametrize(
    ("broker", "overrides", "source"),
    [
        ({}, {}, ConfigSource.DEFAULT_CONFIG),
        ({"log.retention.hours": "24"}, {}, ConfigSource.STATIC_BROKER_CONFIG),
        ({"log.retention.ms": "1000"}, {}, ConfigSource.STATIC_BROKER_CONFIG),
        ({"log.retention.ms": "1000"}, {"retention_ms": "2000"}, ConfigSource.DYNAMIC_TOPIC_CONFIG),
    ],
)
def test_the_source_of_a_value_whatever_its_unit(broker, overrides, source):
    assert topic(broker, **overrides).source("retention.ms") is source


def test_the_source_of_a_value_that_no_broker_gives():
    assert topic().source("remote.storage.enable") is ConfigSource.DEFAULT_CONFIG
