"""Topics and their replicas: how they are made, followed and led."""

from broker.config.setting import CLUSTER_WIDE, boolean, integer, long, string


class ReplicationSettings:
    auto_create_topics_enable = boolean(True, "Whether a topic that a client asks for and that does not exist is made.")
    delete_topic_enable = boolean(True, "Whether topics may be deleted.")
    num_partitions = integer(1, "How many partitions a topic gets when nothing else is said.", at_least=1)
    default_replication_factor = integer(1, "How many replicas a partition gets when nothing else is said.")
    min_insync_replicas = integer(
        1,
        "How many replicas must be in sync for a write with acks=all to be accepted.",
        at_least=1,
        update_mode=CLUSTER_WIDE,
    )

    unclean_leader_election_enable = boolean(
        False,
        "Whether a replica that was out of sync may lead, at the price of lost records.",
        update_mode=CLUSTER_WIDE,
    )
    unclean_leader_election_interval_ms = long(
        300000, "How often leaderless partitions are looked at for an unclean election.", at_least=1, internal=True
    )
    auto_leader_rebalance_enable = boolean(
        True, "Whether leadership is given back to the preferred replicas by itself."
    )
    leader_imbalance_check_interval_seconds = long(
        300, "How often it is looked at whether the preferred replicas lead.", at_least=1
    )
    controlled_shutdown_enable = boolean(True, "Whether a broker hands over its leaderships before it stops.")

    num_replica_fetchers = integer(
        1, "How many connections a follower fetches by from each leader.", at_least=1, update_mode=CLUSTER_WIDE
    )
    replica_lag_time_max_ms = long(30000, "How long a follower may lag before it leaves the in-sync replicas.")
    replica_fetch_min_bytes = integer(1, "How many bytes a follower's fetch waits for.")
    replica_fetch_max_bytes = integer(1048576, "How many bytes of one partition a follower asks for.", at_least=0)
    replica_fetch_response_max_bytes = integer(10485760, "How many bytes a follower asks for at once.", at_least=0)
    replica_fetch_wait_max_ms = integer(500, "How long a follower's fetch waits for replica.fetch.min.bytes.")
    replica_fetch_backoff_ms = integer(1000, "How long a follower rests after a fetch that failed.", at_least=0)
    replica_socket_timeout_ms = integer(30000, "How long a follower waits for its leader's answer.")
    replica_socket_receive_buffer_bytes = integer(65536, "SO_RCVBUF of a follower's connection to its leader.")
    replica_high_watermark_checkpoint_interval_ms = long(5000, "How often the high watermarks are written down.")
    replica_selector_class = string(None, "The class that picks the replica for a consumer that names its rack.")
