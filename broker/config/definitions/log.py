"""The logs: where they lie, when a segment ends, what is kept for how long, how it is cleaned and flushed."""

from broker.config.setting import CLUSTER_WIDE, UnlikeKafka, boolean, double, integer, long, string, strings
from broker.config.values import LONG_MAX

COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
CLEANUP_POLICIES = ("compact", "delete")
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")


class LogSettings:
    log_dir = strings(
        ("data",),
        "The data directory, where log.dirs does not give one.",
        may_be_empty=False,
        unlike_kafka=UnlikeKafka(
            ("/tmp/kafka-logs",), "data must not vanish with a restart, nor be shared with Kafka's"
        ),
    )
    log_dirs = strings(None, "The directories that hold the logs.", may_be_empty=False)
    num_recovery_threads_per_data_dir = integer(
        2, "How many logs of a directory are recovered at once after a crash.", at_least=1, update_mode=CLUSTER_WIDE
    )

    message_max_bytes = integer(
        1048588, "The largest record batch that is accepted.", at_least=0, update_mode=CLUSTER_WIDE
    )
    compression_type = string(
        "producer",
        "The codec that a topic's batches are stored in; producer keeps each batch as it came.",
        one_of=COMPRESSION_TYPES,
        update_mode=CLUSTER_WIDE,
    )
    compression_gzip_level = integer(
        -1,
        "The level of gzip where the broker compresses; -1 is gzip's own choice.",
        at_least=1,
        at_most=9,
        besides=-1,
        update_mode=CLUSTER_WIDE,
    )
    compression_lz4_level = integer(
        9, "The level of lz4 where the broker compresses.", at_least=1, at_most=17, update_mode=CLUSTER_WIDE
    )
    compression_zstd_level = integer(
        3, "The level of zstd where the broker compresses.", at_least=-131072, at_most=22, update_mode=CLUSTER_WIDE
    )
    log_message_timestamp_type = string(
        "CreateTime",
        "Whether records carry the producer's time or the time of their append.",
        one_of=TIMESTAMP_TYPES,
        update_mode=CLUSTER_WIDE,
    )
    log_message_timestamp_before_max_ms = long(
        LONG_MAX,
        "How far a record's timestamp may lie before the broker's clock.",
        at_least=0,
        update_mode=CLUSTER_WIDE,
    )
    log_message_timestamp_after_max_ms = long(
        3600000,
        "How far a record's timestamp may lie ahead of the broker's clock.",
        at_least=0,
        update_mode=CLUSTER_WIDE,
    )

    log_segment_bytes = integer(
        1073741824, "The size at which a new segment is begun.", at_least=1048576, update_mode=CLUSTER_WIDE
    )
    log_roll_ms = long(
        None, "The age at which a new segment is begun, before log.roll.hours.", at_least=1, update_mode=CLUSTER_WIDE
    )
    log_roll_hours = integer(168, "The age in hours at which a new segment is begun.", at_least=1)
    log_roll_jitter_ms = long(
        None,
        "How much earlier a segment may end, at random, before log.roll.jitter.hours.",
        at_least=0,
        update_mode=CLUSTER_WIDE,
    )
    log_roll_jitter_hours = integer(
        0, "How many hours earlier a segment may end, at random, so that not all end at once.", at_least=0
    )
    log_preallocate = boolean(
        False, "Whether a segment's file gets its full size when it is made.", update_mode=CLUSTER_WIDE
    )
    log_index_interval_bytes = integer(
        4096,
        "About how many bytes of the log lie between two entries of its index.",
        at_least=0,
        update_mode=CLUSTER_WIDE,
    )
    log_index_size_max_bytes = integer(10485760, "The largest index file.", at_least=4, update_mode=CLUSTER_WIDE)

    log_cleanup_policy = strings(
        ("delete",),
        "What becomes of old segments: deleted, compacted, or both.",
        one_of=CLEANUP_POLICIES,
        update_mode=CLUSTER_WIDE,
    )
    log_retention_ms = long(
        None, "How long a segment is kept; -1 is for ever; before log.retention.minutes.", update_mode=CLUSTER_WIDE
    )
    log_retention_minutes = integer(None, "How many minutes a segment is kept, before log.retention.hours.")
    log_retention_hours = integer(168, "How many hours a segment is kept.")
    log_retention_bytes = long(
        -1, "The size to which a partition is cut from its start; -1 sets no limit.", update_mode=CLUSTER_WIDE
    )
    log_retention_check_interval_ms = long(
        300000, "How often logs are looked at for what has become too old.", at_least=1
    )
    log_segment_delete_delay_ms = long(
        60000, "How long a deleted segment's files stay on the disk.", at_least=0, update_mode=CLUSTER_WIDE
    )
    log_initial_task_delay_ms = long(
        30000, "How long after the start the first retention check and flush come.", at_least=0, internal=True
    )

    log_flush_interval_messages = long(
        LONG_MAX,
        "How many records a log may take until it is flushed to the disk.",
        at_least=1,
        update_mode=CLUSTER_WIDE,
    )
    log_flush_interval_ms = long(
        None,
        "How long a record may stay unflushed; without it, log.flush.scheduler.interval.ms.",
        update_mode=CLUSTER_WIDE,
    )
    log_flush_scheduler_interval_ms = long(LONG_MAX, "How often logs are looked at for what must be flushed.")
    log_flush_offset_checkpoint_interval_ms = integer(
        60000, "How often the recovery points are written down.", at_least=0
    )
    log_flush_start_offset_checkpoint_interval_ms = integer(
        60000, "How often the log start offsets are written down.", at_least=0
    )

    log_cleaner_enable = boolean(True, "Whether compacted topics are compacted.")
    log_cleaner_threads = integer(1, "How many logs are compacted at once.", at_least=0, update_mode=CLUSTER_WIDE)
    log_cleaner_backoff_ms = long(
        15000, "How long the cleaner rests when it found nothing to compact.", at_least=0, update_mode=CLUSTER_WIDE
    )
    log_cleaner_dedupe_buffer_size = long(
        134217728, "The memory for the map of keys, for all logs that are compacted at once.", update_mode=CLUSTER_WIDE
    )
    log_cleaner_io_buffer_size = integer(
        524288, "The memory for reading and writing while compacting.", at_least=0, update_mode=CLUSTER_WIDE
    )
    log_cleaner_io_buffer_load_factor = double(
        0.9, "How full the map of keys may get before a pass ends.", update_mode=CLUSTER_WIDE
    )
    log_cleaner_io_max_bytes_per_second = double(
        1.7976931348623157e308, "The most bytes a second that compaction may read and write.", update_mode=CLUSTER_WIDE
    )
    log_cleaner_min_cleanable_ratio = double(
        0.5,
        "The share of a log that must be uncompacted before it is compacted.",
        at_least=0,
        at_most=1,
        update_mode=CLUSTER_WIDE,
    )
    log_cleaner_min_compaction_lag_ms = long(
        0, "How long a record stays uncompacted at least.", at_least=0, update_mode=CLUSTER_WIDE
    )
    log_cleaner_max_compaction_lag_ms = long(
        LONG_MAX, "How long a record stays uncompacted at most.", at_least=1, update_mode=CLUSTER_WIDE
    )
    log_cleaner_delete_retention_ms = long(
        86400000, "How long tombstones of a compacted topic are kept.", at_least=0, update_mode=CLUSTER_WIDE
    )
