from broker.config import BrokerConfig, TopicConfig
from broker.config.log_config import log_config
from storage.config import LogConfig, TimestampType


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


def test_a_segment_size_for_tests():
    assert log_config(TopicConfig({"internal.segment.bytes": "1024"}, BrokerConfig())).segment_bytes == 1024


def test_every_setting_of_a_log_follows_the_topic_s():
    changed = {
        "cleanup.policy": "compact",
        "compression.type": "zstd",
        "message.timestamp.type": "LogAppendTime",
        "min.cleanable.dirty.ratio": "0.1",
        "unclean.leader.election.enable": "true",
    }
    defaults = LogConfig()
    names = [name.replace("_", ".") for name in LogConfig.__slots__]
    for name in names:
        number = "2097152"
        config = log_config(TopicConfig({name: changed.get(name, number)}, BrokerConfig()))
        differing = [slot for slot in LogConfig.__slots__ if getattr(config, slot) != getattr(defaults, slot)]
        assert differing == [name.replace(".", "_")]
