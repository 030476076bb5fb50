"""Topics and their replicas: how they are created, followed and led."""

from barnabas.broker.config.setting import CLUSTER_WIDE, NO_EFFECT, boolean, integer, long, string


class ReplicationSettings:
    auto_create_topics_enable = boolean(True, "Whether a topic is created when a client asks for it.")
    delete_topic_enable = boolean(True, "Whether topics may be deleted.")
    num_partitions = integer(1, "How many partitions a topic gets if the request does not say how many.", at_least=1)
    default_replication_factor = integer(1, "How many replicas a partition gets if the request does not say how many.")
    min_insync_replicas = integer(
        1,
        "How many replicas must be in sync for a write with acks=all to be accepted.",
        at_least=1,
        update_mode=CLUSTER_WIDE,
    )

    unclean_leader_election_enable = boolean(
        False,
        "Whether a replica that is out of sync may become leader, at the price of lost records.",
        update_mode=CLUSTER_WIDE,
    )
    unclean_leader_election_interval_ms = long(
        300000,
        "How often the broker looks for leaderless partitions that need an unclean election.",
        at_least=1,
        internal=True,
        effect=NO_EFFECT,
    )
    auto_leader_rebalance_enable = boolean(
        True, "Whether leadership moves back to the preferred replicas automatically."
    )
    leader_imbalance_check_interval_seconds = long(
        300, "How often the controller checks whether the preferred replicas lead.", at_least=1
    )
    leader_imbalance_per_broker_percentage = integer(
        10,
        "Which share of the partitions that prefer a broker, in percent, others may lead.",
        internal=True,
    )
    controlled_shutdown_enable = boolean(
        True, "Whether a broker hands its partitions over to other leaders before it stops."
    )

    # One connection per leader carries all partitions. A broker has one thread, so more of them would not fetch more at
    # once: they would only send more requests, each for fewer partitions.
    num_replica_fetchers = integer(
        1,
        "How many connections a follower uses to fetch from each leader.",
        at_least=1,
        update_mode=CLUSTER_WIDE,
        effect=NO_EFFECT,
    )
    replica_lag_time_max_ms = long(30000, "How long a follower may lag before it leaves the in-sync replicas.")
    replica_fetch_min_bytes = integer(1, "How many bytes a follower's fetch waits for.")
    replica_fetch_max_bytes = integer(1048576, "How many bytes of one partition a follower asks for.", at_least=0)
    replica_fetch_response_max_bytes = integer(10485760, "How many bytes a follower asks for in one fetch.", at_least=0)
    replica_fetch_wait_max_ms = integer(500, "How long a follower's fetch waits for replica.fetch.min.bytes.")
    replica_fetch_backoff_ms = integer(1000, "How long a follower waits after a fetch that failed.", at_least=0)
    replica_socket_timeout_ms = integer(30000, "How long a follower waits for its leader's answer.")
    replica_socket_receive_buffer_bytes = integer(
        65536, "SO_RCVBUF of a follower's connection to its leader.", effect=NO_EFFECT
    )
    replica_high_watermark_checkpoint_interval_ms = long(5000, "How often the high watermarks are saved.")
    replica_selector_class = string(None, "The class that chooses the replica a consumer reads from.")
