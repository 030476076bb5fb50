"""Idempotent producers and transactions."""

from barnabas.broker.config.setting import CLUSTER_WIDE, NO_EFFECT, UnlikeKafka, boolean, integer, short


class TransactionSettings:
    transaction_max_timeout_ms = integer(
        900000, "The longest transaction timeout that a producer may ask for.", at_least=1
    )
    transactional_id_expiration_ms = integer(
        604800000, "How long a transactional id is kept after its last transaction.", at_least=1
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms = integer(
        10000, "How often the broker looks for transactions that exceeded their timeout, and aborts them.", at_least=1
    )
    transaction_remove_expired_transaction_cleanup_interval_ms = integer(
        3600000, "How often the broker looks for expired transactional ids, and removes them.", at_least=1
    )
    transaction_partition_verification_enable = boolean(
        True,
        "Whether a transactional write is refused unless its partition belongs to the transaction.",
        update_mode=CLUSTER_WIDE,
    )
    add_partitions_to_txn_retry_backoff_ms = integer(
        20, "How long the broker waits before it retries while a producer's last transaction is ending.", at_least=1
    )
    add_partitions_to_txn_retry_backoff_max_ms = integer(
        100,
        "How long the broker waits at most for a producer's last transaction to end before it answers with an error.",
        at_least=0,
    )
    transaction_two_phase_commit_enable = boolean(
        False, "Whether producers may take part in two-phase commit.", effect=NO_EFFECT
    )

    transaction_state_log_num_partitions = integer(
        50, "How many partitions __transaction_state is created with.", at_least=1
    )
    transaction_state_log_replication_factor = short(
        1,
        "How many replicas each partition of __transaction_state is created with; unless set, up to 3, one per broker.",
        at_least=1,
        unlike_kafka=UnlikeKafka(3, "one broker cannot hold three replicas"),
    )
    transaction_state_log_min_isr = integer(
        1,
        "The min.insync.replicas of __transaction_state; unless set, one less than it has replicas.",
        at_least=1,
        unlike_kafka=UnlikeKafka(2, "one broker is one replica"),
    )
    transaction_state_log_segment_bytes = integer(104857600, "The segment size of __transaction_state.", at_least=1)
    transaction_state_log_load_buffer_size = integer(
        5242880,
        "How much of __transaction_state is read at a time when transactions are loaded.",
        at_least=1,
        effect=NO_EFFECT,
    )

    producer_id_expiration_ms = integer(
        86400000,
        "How long a partition remembers an idempotent producer that stopped writing.",
        at_least=1,
        update_mode=CLUSTER_WIDE,
    )
    producer_id_expiration_check_interval_ms = integer(
        600000, "How often the broker looks for expired producers, and forgets them.", at_least=1, internal=True
    )
