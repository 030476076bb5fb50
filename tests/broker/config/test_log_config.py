import pytest

from barnabas.broker.config import BrokerConfig, TopicConfig
from barnabas.broker.config.log_config import log_config
from barnabas.storage.config import LogConfig, TimestampType


def test_a_topic_without_overrides_has_the_log_s_own_defaults():
    assert log_config(TopicConfig({}, BrokerConfig())) == LogConfig()


def test_overrides_reach_the_log():
    overrides = {"cleanup.policy": "compact,delete", "message.timestamp.type": "LogAppendTime", "retention.ms": "7"}
    config = log_config(TopicConfig(overrides, BrokerConfig({"log.segment.bytes": "2097152"})))
    assert config.compact
    assert config.delete
    assert config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
    assert config.retention_ms == 7
    assert config.segment_bytes == 2097152


def test_an_index_has_entries_however_few_its_topic_wants():
    assert (
        log_config(TopicConfig({"index.interval.bytes": "2147483647"}, BrokerConfig())).index_interval_bytes == 262144
    )


def test_a_segment_size_for_tests():
    assert log_config(TopicConfig({"internal.segment.bytes": "1024"}, BrokerConfig())).segment_bytes == 1024


@pytest.mark.parametrize(
    ("settings", "level"),
    [
        ({"compression.type": "gzip", "compression.gzip.level": "9", "compression.zstd.level": "19"}, 9),
        ({"compression.type": "zstd", "compression.gzip.level": "9", "compression.zstd.level": "19"}, 19),
        ({"compression.type": "zstd"}, 3),
        ({"compression.type": "gzip"}, None),
        ({"compression.type": "lz4", "compression.zstd.level": "19"}, None),
    ],
)
def test_the_compression_level_is_that_of_the_codec(settings, level):
    assert log_config(TopicConfig(settings, BrokerConfig())).compression_level == level
    assert log_config(TopicConfig({}, BrokerConfig(settings))).compression_level == level


def test_every_setting_of_a_log_follows_the_topic_s():
    changed = {
        "cleanup.policy": "compact",
        "compression.type": "zstd",
        "message.timestamp.type": "LogAppendTime",
        "min.cleanable.dirty.ratio": "0.1",
    }
    defaults = LogConfig()
    followed = [slot for slot in LogConfig.__slots__ if slot != "compression_level"]
    for slot in followed:
        name = slot.replace("_", ".")
        config = log_config(TopicConfig({name: changed.get(name, "2097152")}, BrokerConfig()))
        assert [each for each in followed if getattr(config, each) != getattr(defaults, each)] == [slot]
