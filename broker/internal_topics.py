"""The internal topics, and how they are created: with Kafka's settings for each."""

from __future__ import annotations

from typing import Final

from barnabas.broker.config import BrokerConfig
from barnabas.broker.controller.create_topics import NewTopic

CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
SHARE_GROUP_STATE: Final = "__share_group_state"

_REPLICAS: Final = 3  # Kafka's default for all of them


def new_topic(name: str, config: BrokerConfig, live_brokers: int = 1) -> NewTopic:
    """A missing topic to create: an internal one, or one with default settings.

    Unless the settings say otherwise, an internal topic has as many replicas as there are brokers, up to Kafka's three,
    and survives the loss of one of them.
    """
    replicas = min(_REPLICAS, max(live_brokers, 1))
    if name == CONSUMER_OFFSETS:
        return NewTopic(
            name,
            num_partitions=config.offsets_topic_num_partitions,
            replication_factor=config.offsets_topic_replication_factor
            if config.is_set("offsets.topic.replication.factor")
            else replicas,
            configs={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.offsets_topic_segment_bytes),
            },
        )
    if name == TRANSACTION_STATE:
        if config.is_set("transaction.state.log.replication.factor"):
            replicas = config.transaction_state_log_replication_factor
        min_isr = max(replicas - 1, 1)
        if config.is_set("transaction.state.log.min.isr"):
            min_isr = config.transaction_state_log_min_isr
        return NewTopic(
            name,
            num_partitions=config.transaction_state_log_num_partitions,
            replication_factor=replicas,
            configs={
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(min_isr),
                "segment.bytes": str(config.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            },
        )
    if name == SHARE_GROUP_STATE:
        if config.is_set("share.coordinator.state.topic.replication.factor"):
            replicas = config.share_coordinator_state_topic_replication_factor
        min_isr = max(replicas - 1, 1)
        if config.is_set("share.coordinator.state.topic.min.isr"):
            min_isr = config.share_coordinator_state_topic_min_isr
        return NewTopic(
            name,
            num_partitions=config.share_coordinator_state_topic_num_partitions,
            replication_factor=replicas,
            configs={
                # The share coordinator itself deletes what it no longer needs.
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "min.insync.replicas": str(min_isr),
                "retention.ms": "-1",
                "segment.bytes": str(config.share_coordinator_state_topic_segment_bytes),
            },
        )
    return NewTopic(name)
