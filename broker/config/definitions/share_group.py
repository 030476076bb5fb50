"""Share groups: the broker's settings, and the bounds within which a group may have its own."""

from barnabas.broker.config.setting import CLUSTER_WIDE, integer, strings


class ShareGroupSettings:
    group_share_assignors = strings(("simple",), "The assignor of share groups.", may_be_empty=False)
    group_share_max_size = integer(200, "How many members a share group may have.", at_least=1, at_most=1000)
    group_share_session_timeout_ms = integer(
        45000, "How long a share group waits for a heartbeat before it removes a member.", at_least=1
    )
    group_share_min_session_timeout_ms = integer(
        45000, "The smallest session timeout that a share group may be set to.", at_least=1
    )
    group_share_max_session_timeout_ms = integer(
        60000, "The largest session timeout that a share group may be set to.", at_least=1
    )
    group_share_heartbeat_interval_ms = integer(
        5000, "How often a member of a share group must send heartbeats.", at_least=1
    )
    group_share_min_heartbeat_interval_ms = integer(
        5000, "The smallest heartbeat interval that a share group may be set to.", at_least=1
    )
    group_share_max_heartbeat_interval_ms = integer(
        15000, "The largest heartbeat interval that a share group may be set to.", at_least=1
    )
    group_share_assignment_interval_ms = integer(
        1000,
        "The shortest time between two computed assignments of a share group.",
        at_least=0,
        update_mode=CLUSTER_WIDE,
    )
    group_share_min_assignment_interval_ms = integer(
        0, "The smallest assignment interval that a share group may be set to.", at_least=0
    )
    group_share_max_assignment_interval_ms = integer(
        15000, "The largest assignment interval that a share group may be set to.", at_least=0
    )
    group_share_initialize_retry_interval_ms = integer(
        30000,
        "How long a share group waits for the state of a partition before it asks for it again.",
        at_least=1,
        internal=True,
    )

    group_share_record_lock_duration_ms = integer(
        30000,
        "How long a member of a share group may keep a record before others get it.",
        at_least=1000,
        at_most=3600000,
    )
    group_share_min_record_lock_duration_ms = integer(
        15000, "The smallest record lock duration that a share group may be set to.", at_least=1000, at_most=30000
    )
    group_share_max_record_lock_duration_ms = integer(
        60000, "The largest record lock duration that a share group may be set to.", at_least=30000, at_most=3600000
    )
    group_share_delivery_count_limit = integer(
        5, "How often a record is delivered to a share group before it is given up.", at_least=2, at_most=10
    )
    group_share_min_delivery_count_limit = integer(
        2, "The smallest delivery count limit that a share group may be set to.", at_least=2, at_most=5
    )
    group_share_max_delivery_count_limit = integer(
        10, "The largest delivery count limit that a share group may be set to.", at_least=5, at_most=25
    )
    group_share_partition_max_record_locks = integer(
        2000, "How many records of a partition a share group may work on at the same time.", at_least=100, at_most=10000
    )
    group_share_min_partition_max_record_locks = integer(
        100, "The smallest limit of record locks that a share group may be set to.", at_least=100, at_most=2000
    )
    group_share_max_partition_max_record_locks = integer(
        4000, "The largest limit of record locks that a share group may be set to.", at_least=2000, at_most=10000
    )
    group_share_max_share_sessions = integer(2000, "How many share sessions a broker may have.", at_least=1)
