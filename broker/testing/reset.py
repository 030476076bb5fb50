"""Emptying the brokers while their clients stay connected."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.controller import znodes
from barnabas.broker.controller.delete_topics import TopicReference, delete_topics
from barnabas.broker.controller.results import Decision, TopicResult
from barnabas.broker.quotas.alteration import altered
from barnabas.broker.registry.tree_operations import Delete
from barnabas.broker.testing.nodes import term_of, until

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.local_cluster import LocalCluster


async def reset(cluster: LocalCluster) -> None:
    """Delete all topics, including the internal ones and with them all groups, offsets and transactional ids, and undo
    settings altered at run-time. It is one transaction in the registry, so that nobody sees half of
    it; quotas are removed after it.

    Waiting requests are answered as when a topic is deleted. Producer ids are not reused.
    """
    term = term_of(cluster)
    view = term.cluster
    follower = next(iter(cluster.brokers)).config_follower  # all of them see the same registry

    def decide() -> Decision[TopicResult]:
        decision = delete_topics(view, [TopicReference(name) for name in view.topics], delete_topic_enable=True)
        configs = [Delete(znodes.broker_config_path(whose)) for whose in view.configured_brokers()]
        of_groups = [Delete(znodes.group_config_path(group_id)) for group_id in follower.configured_groups()]
        return Decision(decision.results, [*decision.operations, *configs, *of_groups])

    deleted = {topic.topic_id for topic in view.topics.values()}
    await term.carry_out(decide)
    for broker in cluster.brokers:
        broker.fetch_sessions.clear()
        for entity, limits in list(broker.server.quotas):
            await broker.config_follower.alter_quotas(entity, partial(altered, changes=dict.fromkeys(limits)))
    await until(
        lambda: not any(_has_any(broker, deleted) for broker in cluster.brokers), "not every broker has been emptied"
    )


def _has_any(broker: Broker, topic_ids: set[bytes]) -> bool:
    """Whether a broker shows one of these topics, or still has a partition of one. Folders go a little later."""
    return any(topic.topic_id in topic_ids for topic in broker.cluster.topics.values()) or any(
        partition.topic_id in topic_ids for partition in broker.replicas
    )
