"""The settings of a topic, and the broker's setting that each takes its default from."""

from barnabas.broker.config.definitions.log import CLEANUP_POLICIES, COMPRESSION_TYPES, TIMESTAMP_TYPES
from barnabas.broker.config.setting import NO_EFFECT, boolean, double, integer, long, refused, string, strings
from barnabas.broker.config.values import LONG_MAX

_MINUTE_MS = 60_000
_HOUR_MS = 3_600_000

# Each takes its default from the first of these settings of the broker that is set, multiplied by the factor.
SYNONYMS: dict[str, tuple[tuple[str, int], ...]] = {
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "compression.gzip.level": (("compression.gzip.level", 1),),
    "compression.lz4.level": (("compression.lz4.level", 1),),
    "compression.type": (("compression.type", 1),),
    "compression.zstd.level": (("compression.zstd.level", 1),),
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
    "flush.messages": (("log.flush.interval.messages", 1),),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    "index.interval.bytes": (("log.index.interval.bytes", 1),),
    "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    "max.message.bytes": (("message.max.bytes", 1),),
    "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
    "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
    "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "preallocate": (("log.preallocate", 1),),
    "retention.bytes": (("log.retention.bytes", 1),),
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", _MINUTE_MS),
        ("log.retention.hours", _HOUR_MS),
    ),
    "segment.bytes": (("log.segment.bytes", 1),),
    "segment.index.bytes": (("log.index.size.max.bytes", 1),),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOUR_MS)),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", _HOUR_MS)),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", 1),),
}

_THROTTLED_REPLICAS = r"\*|\d+:\d+(,\d+:\d+)*|"


class TopicSettings:
    cleanup_policy = strings(
        ("delete",),
        "What happens to old segments: they are deleted, compacted, or both.",
        one_of=CLEANUP_POLICIES,
    )
    retention_ms = long(604800000, "How long a segment is kept; -1 means forever.", at_least=-1)
    retention_bytes = long(-1, "The size above which a partition loses its oldest segments; -1 sets no limit.")
    file_delete_delay_ms = long(60000, "How long the files of a deleted segment stay on disk.", at_least=0)

    segment_bytes = integer(1073741824, "The size at which a new segment starts.", at_least=1048576)
    segment_ms = long(604800000, "The age at which a new segment starts.", at_least=1)
    segment_jitter_ms = long(
        0, "How much earlier a segment may end, at random, so that they do not all end at once.", at_least=0
    )
    segment_index_bytes = integer(10485760, "The largest index file of a segment.", at_least=4)
    index_interval_bytes = integer(
        4096, "About how many bytes of the log are between two entries of its index.", at_least=0
    )
    preallocate = boolean(False, "Whether the file of a new segment is allocated in full.", effect=NO_EFFECT)
    internal_segment_bytes = integer(
        None, "A segment size below what segment.bytes allows, for tests of the log.", internal=True
    )

    flush_messages = long(LONG_MAX, "How many records may be appended before the log is flushed to disk.", at_least=1)
    flush_ms = long(LONG_MAX, "How long a record may stay unflushed.", at_least=0)

    max_message_bytes = integer(1048588, "The largest record batch that is accepted.", at_least=0)
    message_timestamp_type = string(
        "CreateTime",
        "Whether a record's timestamp is the producer's or the time of its append.",
        one_of=TIMESTAMP_TYPES,
    )
    message_timestamp_before_max_ms = long(
        LONG_MAX, "How far a record's timestamp may be behind the broker's clock.", at_least=0
    )
    message_timestamp_after_max_ms = long(
        3600000, "How far a record's timestamp may be ahead of the broker's clock.", at_least=0
    )
    compression_type = string(
        "producer",
        "The codec of stored batches; producer keeps each batch as it arrived.",
        one_of=COMPRESSION_TYPES,
    )
    compression_gzip_level = integer(
        -1, "The gzip level if the broker compresses; -1 is gzip's default.", at_least=1, at_most=9, besides=-1
    )
    compression_lz4_level = integer(
        9, "The lz4 level if the broker compresses.", at_least=1, at_most=17, effect=NO_EFFECT
    )
    compression_zstd_level = integer(3, "The zstd level if the broker compresses.", at_least=-131072, at_most=22)

    min_cleanable_dirty_ratio = double(
        0.5, "How much of a log must be uncompacted before it is compacted, as a ratio.", at_least=0, at_most=1
    )
    min_compaction_lag_ms = long(0, "The shortest time that a record stays uncompacted.", at_least=0)
    max_compaction_lag_ms = long(LONG_MAX, "The longest time that a record stays uncompacted.", at_least=1)
    delete_retention_ms = long(86400000, "How long tombstones are kept after compaction.", at_least=0)

    min_insync_replicas = integer(
        1, "How many replicas must be in sync for a write with acks=all to be accepted.", at_least=1
    )
    unclean_leader_election_enable = boolean(
        False,
        "Whether a replica that is out of sync may become leader, at the price of lost records.",
    )
    leader_replication_throttled_replicas = strings(
        (),
        "The replicas whose leaders throttle replication, as partition:broker pairs, or * for all.",
        pattern=_THROTTLED_REPLICAS,
        form="partition:broker pairs, or *",
        effect=NO_EFFECT,
    )
    follower_replication_throttled_replicas = strings(
        (),
        "The replicas that throttle replication as followers, as partition:broker pairs, or * for all.",
        pattern=_THROTTLED_REPLICAS,
        form="partition:broker pairs, or *",
        effect=NO_EFFECT,
    )

    remote_storage_enable = boolean(
        False,
        "Whether old segments move to remote storage.",
        effect=refused("there is no tiered storage in Barnabas. Leave it false"),
    )
    remote_log_copy_disable = boolean(False, "Whether copying to remote storage is stopped.", effect=NO_EFFECT)
    remote_log_delete_on_disable = boolean(
        False, "Whether turning off remote storage deletes the data that is there.", effect=NO_EFFECT
    )
    local_retention_ms = long(
        -2, "How long segments stay on the local disk; -2 stands for retention.ms.", at_least=-2, effect=NO_EFFECT
    )
    local_retention_bytes = long(
        -2, "How much stays on the local disk; -2 stands for retention.bytes.", at_least=-2, effect=NO_EFFECT
    )
