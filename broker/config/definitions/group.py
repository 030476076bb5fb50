"""Consumer groups and their offsets."""

from barnabas.broker.config.setting import (
    CLUSTER_WIDE,
    NO_EFFECT,
    UnlikeKafka,
    integer,
    long,
    short,
    string,
    strings,
)
from barnabas.broker.config.values import INT_MAX


class GroupSettings:
    group_initial_rebalance_delay_ms = integer(
        0,
        "How long an empty group waits for more members before its first rebalance.",
        unlike_kafka=UnlikeKafka(3000, "the only consumer of a developer or a test should not wait three seconds"),
    )
    group_min_session_timeout_ms = integer(6000, "The shortest session timeout that a member may ask for.")
    group_max_session_timeout_ms = integer(1800000, "The longest session timeout that a member may ask for.")
    group_max_size = integer(INT_MAX, "How many members a group may have.", at_least=1)
    group_coordinator_rebalance_protocols = strings(
        ("classic", "consumer", "streams"),
        "The rebalance protocols that groups may use.",
        one_of=("consumer", "classic", "share", "streams"),
        may_be_empty=False,
    )

    group_consumer_assignors = strings(
        ("uniform", "range"),
        "The assignors of the consumer protocol; the first is the default.",
        may_be_empty=False,
    )
    group_consumer_max_size = integer(
        INT_MAX, "How many members a group of the consumer protocol may have.", at_least=1
    )
    group_consumer_migration_policy = string(
        "bidirectional",
        "Between which protocols a group may move while it has members.",
        one_of=("disabled", "downgrade", "upgrade", "bidirectional"),
        ignore_case=True,
    )
    group_consumer_session_timeout_ms = integer(
        45000,
        "How long the group waits for a heartbeat before it removes a member of the consumer protocol.",
        at_least=1,
    )
    group_consumer_min_session_timeout_ms = integer(
        45000, "The smallest session timeout that a group may be set to.", at_least=1
    )
    group_consumer_max_session_timeout_ms = integer(
        60000, "The largest session timeout that a group may be set to.", at_least=1
    )
    group_consumer_heartbeat_interval_ms = integer(
        5000, "How often a member of the consumer protocol must send heartbeats.", at_least=1
    )
    group_consumer_min_heartbeat_interval_ms = integer(
        5000, "The smallest heartbeat interval that a group may be set to.", at_least=1
    )
    group_consumer_max_heartbeat_interval_ms = integer(
        15000, "The largest heartbeat interval that a group may be set to.", at_least=1
    )
    group_consumer_assignment_interval_ms = integer(
        1000,
        "The shortest time between two computed assignments of a group.",
        at_least=0,
        update_mode=CLUSTER_WIDE,
    )
    group_consumer_min_assignment_interval_ms = integer(
        0, "The smallest assignment interval that a group may be set to.", at_least=0
    )
    group_consumer_max_assignment_interval_ms = integer(
        15000, "The largest assignment interval that a group may be set to.", at_least=0
    )
    group_consumer_regex_refresh_interval_ms = integer(
        600000,
        "How often the broker looks up the topics that match a subscribed pattern.",
        at_least=10000,
        internal=True,
    )

    group_streams_max_size = integer(INT_MAX, "How many members a streams group may have.", at_least=1)
    group_streams_session_timeout_ms = integer(
        45000, "How long the group waits for a heartbeat before it removes a member of a streams group.", at_least=1
    )
    group_streams_min_session_timeout_ms = integer(
        45000, "The smallest session timeout that a streams group may be set to.", at_least=1
    )
    group_streams_max_session_timeout_ms = integer(
        60000, "The largest session timeout that a streams group may be set to.", at_least=1
    )
    group_streams_heartbeat_interval_ms = integer(
        5000, "How often a member of a streams group must send heartbeats.", at_least=1
    )
    group_streams_min_heartbeat_interval_ms = integer(
        5000, "The smallest heartbeat interval that a streams group may be set to.", at_least=1
    )
    group_streams_max_heartbeat_interval_ms = integer(
        15000, "The largest heartbeat interval that a streams group may be set to.", at_least=1
    )
    group_streams_assignment_interval_ms = integer(
        1000,
        "The shortest time between two computed assignments of a streams group.",
        at_least=0,
        update_mode=CLUSTER_WIDE,
    )
    group_streams_min_assignment_interval_ms = integer(
        0, "The smallest assignment interval that a streams group may be set to.", at_least=0
    )
    group_streams_max_assignment_interval_ms = integer(
        15000, "The largest assignment interval that a streams group may be set to.", at_least=0
    )
    group_streams_num_standby_replicas = integer(
        0, "How many copies of a task's state a streams group keeps, beside the one in use.", at_least=0
    )
    group_streams_max_standby_replicas = integer(
        2, "The most copies of a task's state that a streams group may be set to.", at_least=0
    )
    group_streams_initial_rebalance_delay_ms = integer(
        0,
        "How long an empty streams group waits for more members before its first assignment.",
        at_least=0,
        unlike_kafka=UnlikeKafka(3000, "the only instance of a developer or a test should not wait three seconds"),
    )

    offset_metadata_max_bytes = integer(4096, "The largest metadata that a client may commit with an offset.")
    offsets_topic_num_partitions = integer(50, "How many partitions __consumer_offsets is created with.", at_least=1)
    offsets_topic_replication_factor = short(
        1,
        "How many replicas each partition of __consumer_offsets is created with; unless set, up to 3, one per broker.",
        at_least=1,
        unlike_kafka=UnlikeKafka(3, "one broker cannot hold three replicas"),
    )
    offsets_topic_segment_bytes = integer(104857600, "The segment size of __consumer_offsets.", at_least=1)
    offsets_topic_compression_codec = integer(
        0,
        "The codec for committed offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
        at_least=0,
        at_most=4,
        effect=NO_EFFECT,
    )
    offsets_retention_minutes = integer(
        10080, "How many minutes the offsets of a group without members are kept.", at_least=1
    )
    offsets_retention_check_interval_ms = long(600000, "How often the broker looks for expired offsets.", at_least=1)
    offsets_commit_timeout_ms = integer(
        5000, "How long a commit, or another request to a group, may wait for replicas.", at_least=1
    )
    offsets_load_buffer_size = integer(
        5242880,
        "How much of __consumer_offsets is read at a time when groups are loaded.",
        at_least=1,
        effect=NO_EFFECT,
    )
