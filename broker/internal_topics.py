"""The topics that the broker keeps its own records in, and how they are made: by Kafka's settings for each."""

from __future__ import annotations

from typing import Final

from broker.config import BrokerConfig
from broker.controller.create_topics import NewTopic

CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"


def new_topic(name: str, config: BrokerConfig) -> NewTopic:
    """A topic that somebody needs and that does not exist: one of the broker's own, or one with default settings."""
    if name == CONSUMER_OFFSETS:
        return NewTopic(
            name,
            num_partitions=config.offsets_topic_num_partitions,
            replication_factor=config.offsets_topic_replication_factor,
            configs={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.offsets_topic_segment_bytes),
            },
        )
    if name == TRANSACTION_STATE:
        return NewTopic(
            name,
            num_partitions=config.transaction_state_log_num_partitions,
            replication_factor=config.transaction_state_log_replication_factor,
            configs={
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(config.transaction_state_log_min_isr),
                "segment.bytes": str(config.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            },
        )
    return NewTopic(name)
