"""From a topic's settings to those that its logs read."""

from broker.config.topic_config import TopicConfig
from storage.config import LogConfig, TimestampType


def log_config(topic: TopicConfig) -> LogConfig:
    return LogConfig(
        cleanup_policy=frozenset(topic.cleanup_policy),
        compression_type=topic.compression_type,
        delete_retention_ms=topic.delete_retention_ms,
        file_delete_delay_ms=topic.file_delete_delay_ms,
        flush_messages=topic.flush_messages,
        flush_ms=topic.flush_ms,
        index_interval_bytes=topic.index_interval_bytes,
        max_compaction_lag_ms=topic.max_compaction_lag_ms,
        max_message_bytes=topic.max_message_bytes,
        message_timestamp_after_max_ms=topic.message_timestamp_after_max_ms,
        message_timestamp_before_max_ms=topic.message_timestamp_before_max_ms,
        message_timestamp_type=TimestampType(topic.message_timestamp_type),
        min_cleanable_dirty_ratio=topic.min_cleanable_dirty_ratio,
        min_compaction_lag_ms=topic.min_compaction_lag_ms,
        min_insync_replicas=topic.min_insync_replicas,
        retention_bytes=topic.retention_bytes,
        retention_ms=topic.retention_ms,
        segment_bytes=topic.segment_bytes if topic.internal_segment_bytes is None else topic.internal_segment_bytes,
        segment_index_bytes=topic.segment_index_bytes,
        segment_jitter_ms=topic.segment_jitter_ms,
        segment_ms=topic.segment_ms,
        unclean_leader_election_enable=topic.unclean_leader_election_enable,
    )
