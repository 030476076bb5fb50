"""Idempotent producers and transactions."""

from broker.config.setting import CLUSTER_WIDE, UnlikeKafka, boolean, integer, short


class TransactionSettings:
    transaction_max_timeout_ms = integer(
        900000, "The longest transaction timeout that a producer may ask for.", at_least=1
    )
    transactional_id_expiration_ms = integer(
        604800000, "How long a transactional id without a transaction is remembered.", at_least=1
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms = integer(
        10000, "How often transactions that outlived their timeout are looked for and aborted.", at_least=1
    )
    transaction_remove_expired_transaction_cleanup_interval_ms = integer(
        3600000, "How often expired transactional ids are looked for and forgotten.", at_least=1
    )
    transaction_partition_verification_enable = boolean(
        True,
        "Whether a transactional write is refused unless its partition belongs to the transaction.",
        update_mode=CLUSTER_WIDE,
    )
    add_partitions_to_txn_retry_backoff_ms = integer(
        20, "How long to wait for a producer's last transaction to end before its next one is tried again.", at_least=1
    )
    add_partitions_to_txn_retry_backoff_max_ms = integer(
        100, "How long a producer's last transaction is waited for at most before its client is told.", at_least=0
    )
    transaction_two_phase_commit_enable = boolean(False, "Whether producers may take part in two-phase commit.")

    transaction_state_log_num_partitions = integer(
        50, "How many partitions __transaction_state is made with.", at_least=1
    )
    transaction_state_log_replication_factor = short(
        1,
        "How many replicas each partition of __transaction_state is made with.",
        at_least=1,
        unlike_kafka=UnlikeKafka(3, "one broker cannot hold three replicas"),
    )
    transaction_state_log_min_isr = integer(
        1,
        "The min.insync.replicas of __transaction_state.",
        at_least=1,
        unlike_kafka=UnlikeKafka(2, "one broker is one replica"),
    )
    transaction_state_log_segment_bytes = integer(104857600, "The segment size of __transaction_state.", at_least=1)
    transaction_state_log_load_buffer_size = integer(
        5242880, "How much of __transaction_state is read at a time when transactions are loaded.", at_least=1
    )

    producer_id_expiration_ms = integer(
        86400000,
        "How long a partition remembers a producer that is silent.",
        at_least=1,
        update_mode=CLUSTER_WIDE,
    )
    producer_id_expiration_check_interval_ms = integer(
        600000, "How often silent producers are looked for and forgotten.", at_least=1, internal=True
    )
