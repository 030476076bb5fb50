"""The logs: where they are, when a segment ends, how long records are kept, how logs are cleaned and flushed."""

from barnabas.broker.config.setting import (
    CLUSTER_WIDE,
    NO_EFFECT,
    UnlikeKafka,
    always,
    boolean,
    double,
    integer,
    long,
    string,
    strings,
)
from barnabas.broker.config.values import LONG_MAX

COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
CLEANUP_POLICIES = ("compact", "delete")
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")


class LogSettings:
    log_dir = strings(
        ("data",),
        "The data directory, if log.dirs does not name one.",
        may_be_empty=False,
        unlike_kafka=UnlikeKafka(
            ("/tmp/kafka-logs",), "a restart of the machine must not delete data, and Kafka's directory is not ours"
        ),
    )
    log_dirs = strings(None, "The data directory; Barnabas takes one only.", may_be_empty=False)
    num_recovery_threads_per_data_dir = integer(
        2,
        "How many logs of a directory are recovered at once after a crash.",
        at_least=1,
        update_mode=CLUSTER_WIDE,
        effect=always(1),
    )

    message_max_bytes = integer(
        1048588, "The largest record batch that is accepted.", at_least=0, update_mode=CLUSTER_WIDE
    )
    compression_type = string(
        "producer",
        "The codec of stored batches; producer keeps each batch as it arrived.",
        one_of=COMPRESSION_TYPES,
        update_mode=CLUSTER_WIDE,
    )
    compression_gzip_level = integer(
        -1,
        "The gzip level if the broker compresses; -1 is gzip's default.",
        at_least=1,
        at_most=9,
        besides=-1,
        update_mode=CLUSTER_WIDE,
    )
    compression_lz4_level = integer(
        9,
        "The lz4 level if the broker compresses.",
        at_least=1,
        at_most=17,
        update_mode=CLUSTER_WIDE,
        effect=NO_EFFECT,
    )
    compression_zstd_level = integer(
        3, "The zstd level if the broker compresses.", at_least=-131072, at_most=22, update_mode=CLUSTER_WIDE
    )
    log_message_timestamp_type = string(
        "CreateTime",
        "Whether a record's timestamp is the producer's or the time of its append.",
        one_of=TIMESTAMP_TYPES,
        update_mode=CLUSTER_WIDE,
    )
    log_message_timestamp_before_max_ms = long(
        LONG_MAX,
        "How far a record's timestamp may be behind the broker's clock.",
        at_least=0,
        update_mode=CLUSTER_WIDE,
    )
    log_message_timestamp_after_max_ms = long(
        3600000,
        "How far a record's timestamp may be ahead of the broker's clock.",
        at_least=0,
        update_mode=CLUSTER_WIDE,
    )

    log_segment_bytes = integer(
        1073741824, "The size at which a new segment starts.", at_least=1048576, update_mode=CLUSTER_WIDE
    )
    log_roll_ms = long(
        None, "The age at which a new segment starts; overrides log.roll.hours.", at_least=1, update_mode=CLUSTER_WIDE
    )
    log_roll_hours = integer(168, "The age in hours at which a new segment starts.", at_least=1)
    log_roll_jitter_ms = long(
        None,
        "How much earlier a segment may end, at random; overrides log.roll.jitter.hours.",
        at_least=0,
        update_mode=CLUSTER_WIDE,
    )
    log_roll_jitter_hours = integer(
        0, "How many hours earlier a segment may end, at random, so that they do not all end at once.", at_least=0
    )
    log_preallocate = boolean(
        False,
        "Whether the file of a new segment is allocated in full.",
        update_mode=CLUSTER_WIDE,
        effect=NO_EFFECT,
    )
    log_index_interval_bytes = integer(
        4096,
        "About how many bytes of the log are between two entries of its index.",
        at_least=0,
        update_mode=CLUSTER_WIDE,
    )
    log_index_size_max_bytes = integer(10485760, "The largest index file.", at_least=4, update_mode=CLUSTER_WIDE)

    log_cleanup_policy = strings(
        ("delete",),
        "What happens to old segments: they are deleted, compacted, or both.",
        one_of=CLEANUP_POLICIES,
        update_mode=CLUSTER_WIDE,
    )
    log_retention_ms = long(
        None, "How long a segment is kept, -1 forever; overrides log.retention.minutes.", update_mode=CLUSTER_WIDE
    )
    log_retention_minutes = integer(None, "How many minutes a segment is kept; overrides log.retention.hours.")
    log_retention_hours = integer(168, "How many hours a segment is kept.")
    log_retention_bytes = long(
        -1, "The size above which a partition loses its oldest segments; -1 sets no limit.", update_mode=CLUSTER_WIDE
    )
    log_retention_check_interval_ms = long(300000, "How often the broker looks for segments to delete.", at_least=1)
    log_segment_delete_delay_ms = long(
        60000, "How long the files of a deleted segment stay on disk.", at_least=0, update_mode=CLUSTER_WIDE
    )
    log_initial_task_delay_ms = long(
        30000,
        "How long after the start the first retention check and flush happen.",
        at_least=0,
        internal=True,
        effect=NO_EFFECT,
    )

    log_flush_interval_messages = long(
        LONG_MAX,
        "How many records may be appended to a log before it is flushed to disk.",
        at_least=1,
        update_mode=CLUSTER_WIDE,
    )
    log_flush_interval_ms = long(
        None,
        "How long a record may stay unflushed; log.flush.scheduler.interval.ms by default.",
        update_mode=CLUSTER_WIDE,
    )
    log_flush_scheduler_interval_ms = long(
        LONG_MAX, "How long a record may stay unflushed, if log.flush.interval.ms is not set."
    )
    log_flush_offset_checkpoint_interval_ms = integer(
        60000, "How often the recovery points and the log start offsets are saved.", at_least=0
    )
    log_flush_start_offset_checkpoint_interval_ms = integer(
        60000, "How often the log start offsets are saved.", at_least=0, effect=NO_EFFECT
    )

    log_cleaner_enable = boolean(True, "Whether compacted topics are compacted.")
    log_cleaner_threads = integer(
        1, "How many logs are compacted at once.", at_least=0, update_mode=CLUSTER_WIDE, effect=NO_EFFECT
    )
    log_cleaner_backoff_ms = long(
        15000, "How long the cleaner waits after it found nothing to compact.", at_least=0, update_mode=CLUSTER_WIDE
    )
    log_cleaner_dedupe_buffer_size = long(
        134217728, "The memory for the map of keys while compacting.", update_mode=CLUSTER_WIDE
    )
    log_cleaner_io_buffer_size = integer(
        524288,
        "The memory for reading and writing while compacting.",
        at_least=0,
        update_mode=CLUSTER_WIDE,
        effect=NO_EFFECT,
    )
    log_cleaner_io_buffer_load_factor = double(
        0.9, "How full the map of keys may get before a pass ends.", update_mode=CLUSTER_WIDE, effect=NO_EFFECT
    )
    log_cleaner_io_max_bytes_per_second = double(
        1.7976931348623157e308, "How many bytes per second compaction may read and write.", update_mode=CLUSTER_WIDE
    )
    log_cleaner_min_cleanable_ratio = double(
        0.5,
        "How much of a log must be uncompacted before it is compacted, as a ratio.",
        at_least=0,
        at_most=1,
        update_mode=CLUSTER_WIDE,
    )
    log_cleaner_min_compaction_lag_ms = long(
        0, "The shortest time that a record stays uncompacted.", at_least=0, update_mode=CLUSTER_WIDE
    )
    log_cleaner_max_compaction_lag_ms = long(
        LONG_MAX, "The longest time that a record stays uncompacted.", at_least=1, update_mode=CLUSTER_WIDE
    )
    log_cleaner_delete_retention_ms = long(
        86400000, "How long tombstones are kept after compaction.", at_least=0, update_mode=CLUSTER_WIDE
    )
