"""The settings of a topic as its logs read them."""

from typing import Final

from barnabas.broker.config.topic_config import TopicConfig
from barnabas.storage.config import LogConfig, TimestampType

_MAX_INDEX_INTERVAL_BYTES: Final = 256 * 1024


def _compression_level(topic: TopicConfig) -> int | None:
    match topic.compression_type:
        case "gzip":
            return None if topic.compression_gzip_level == -1 else topic.compression_gzip_level
        case "zstd":
            return topic.compression_zstd_level
    return None


def log_config(topic: TopicConfig) -> LogConfig:
    return LogConfig(
        cleanup_policy=frozenset(topic.cleanup_policy),
        compression_type=topic.compression_type,
        compression_level=_compression_level(topic),
        delete_retention_ms=topic.delete_retention_ms,
        file_delete_delay_ms=topic.file_delete_delay_ms,
        flush_messages=topic.flush_messages,
        flush_ms=topic.flush_ms,
        # Batches between two entries of an index are searched one by one, which must not take long.
        index_interval_bytes=min(topic.index_interval_bytes, _MAX_INDEX_INTERVAL_BYTES),
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
    )
