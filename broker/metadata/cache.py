"""The cluster as the controller describes it to this broker: what handlers answer from.

A broker follows what the controller tells it in UpdateMetadata, not the registry's tree: so every broker sees changes
in the controller's order, and one that is cut off from the registry still answers. Only settings come from the
registry, because any broker may change them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from barnabas.broker.controller.cluster_image import ClusterChange, ClusterImage, TopicChange
from barnabas.broker.controller.images import LEADER_DURING_DELETE, BrokerImage, Endpoint, PartitionImage, TopicImage
from barnabas.broker.controller.orders import TYPE_FULL
from barnabas.protocol.messages.update_metadata import UpdateMetadataPartitionState, UpdateMetadataRequest

_SECURITY_PROTOCOLS: Final = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}

TopicConfigs = Callable[[str], Mapping[str, str]]
BrokerConfigs = Mapping[int | None, Mapping[str, str]]


class MetadataCache(ClusterImage):
    """What the controller has said. Until this broker has heard from a controller, the controller's id is -1."""

    def __init__(self, cluster_id: str | None, topic_configs: TopicConfigs, broker_configs: BrokerConfigs) -> None:
        """`topic_configs` gives the settings of a topic as the registry has them."""
        super().__init__()
        self.cluster_id = cluster_id
        self._topic_configs = topic_configs
        self._broker_configs = dict(broker_configs)

    # --- looking ---

    def broker_configs(self, broker_id: int | None) -> Mapping[str, str]:
        """What was set at run-time for this broker alone, or with None for all of them."""
        return self._broker_configs.get(broker_id, {})

    def configured_brokers(self) -> list[int | None]:
        """The brokers for which something was set at run-time; None stands for all of them."""
        return list(self._broker_configs)

    # --- following the controller ---

    def update(self, request: UpdateMetadataRequest) -> None:
        """Show what the controller says. The caller has checked that it is the current one."""
        self.controller_id = request.controller_id
        self.controller_epoch = request.controller_epoch
        brokers = {
            broker.id: BrokerImage(
                broker.id,
                tuple(
                    Endpoint(each.listener, _SECURITY_PROTOCOLS[each.security_protocol], each.host, each.port)
                    for each in broker.endpoints
                ),
                broker.rack,
            )
            for broker in request.live_brokers
        }
        brokers_changed = brokers != self.brokers
        self.brokers = brokers
        topics: dict[str, TopicChange] = {}
        if request.type == TYPE_FULL:  # what is not in it was deleted when this broker, or the controller, was away
            there = {state.topic_name for state in request.topic_states}
            for name in [name for name in self.topics if name not in there]:
                topics[name] = TopicChange(self.topics[name], None)
                self.put(name, None)
        for state in request.topic_states:
            old = self.topics.get(state.topic_name)
            new = self._changed(state.topic_name, state.topic_id, old, state.partition_states)
            if new is not old:
                self.put(state.topic_name, new)
                topics[state.topic_name] = TopicChange(old, new)
        if topics or brokers_changed:
            self.tell(ClusterChange(topics, brokers_changed, False))

    def _changed(
        self,
        name: str,
        topic_id: bytes,
        old: TopicImage | None,
        states: Sequence[UpdateMetadataPartitionState],
    ) -> TopicImage | None:
        same = old if old is not None and old.topic_id == topic_id else None
        if all(state.leader == LEADER_DURING_DELETE for state in states):
            return None if same is not None else old
        partitions = list(same.partitions) if same is not None else []
        for state in states:
            # A controller sends a topic's partitions together; a gap is filled when it sends the others.
            while len(partitions) <= state.partition_index:
                partitions.append(PartitionImage(len(partitions), ()))
            partitions[state.partition_index] = _partition(state)
        if same is not None and tuple(partitions) == same.partitions:
            return same
        return TopicImage(name, topic_id, tuple(partitions), self._topic_configs(name), 0)

    # --- following settings ---

    def topic_configs_changed(self, names: Iterable[str]) -> None:
        topics: dict[str, TopicChange] = {}
        for name in names:
            old = self.topics.get(name)
            configs = self._topic_configs(name)
            if old is not None and configs != old.configs:
                new = replace(old, configs=configs)
                self.put(name, new)
                topics[name] = TopicChange(old, new)
        if topics:
            self.tell(ClusterChange(topics, False, False))

    def broker_configs_changed(self, broker_id: int | None, configs: Mapping[str, str]) -> None:
        self._broker_configs[broker_id] = configs
        self.tell(ClusterChange({}, False, True))


def _partition(state: UpdateMetadataPartitionState) -> PartitionImage:
    return PartitionImage(
        state.partition_index,
        tuple(state.replicas),
        state.leader,
        state.leader_epoch,
        tuple(state.isr),
        state.zk_version,
    )
