"""The share coordinator."""

from barnabas.broker.config.setting import UnlikeKafka, integer, short


class ShareCoordinatorSettings:
    share_coordinator_state_topic_num_partitions = integer(
        50, "How many partitions __share_group_state is created with.", at_least=1
    )
    share_coordinator_state_topic_replication_factor = short(
        1,
        "How many replicas each partition of __share_group_state is created with; unless set, up to 3, one per broker.",
        at_least=1,
        unlike_kafka=UnlikeKafka(3, "one broker cannot hold three replicas"),
    )
    share_coordinator_state_topic_min_isr = short(
        1,
        "The min.insync.replicas of __share_group_state; unless set, one less than it has replicas.",
        at_least=1,
        unlike_kafka=UnlikeKafka(2, "one broker is one replica"),
    )
    share_coordinator_state_topic_segment_bytes = integer(
        104857600, "The segment size of __share_group_state.", at_least=1
    )
    share_coordinator_state_topic_prune_interval_ms = integer(
        300000,
        "How often the share coordinator deletes records that newer ones have made redundant.",
        at_least=1,
        internal=True,
    )
    share_coordinator_cold_partition_snapshot_interval_ms = integer(
        300000,
        "How often the share coordinator writes again what has not changed for so long.",
        at_least=1,
        internal=True,
    )
    share_coordinator_snapshot_update_records_per_snapshot = integer(
        500,
        "How many updates of a share partition the share coordinator writes between two snapshots of it.",
        at_least=0,
        at_most=500,
    )
    share_coordinator_write_timeout_ms = integer(
        5000, "How long a request to the share coordinator may wait for replicas.", at_least=1
    )
