"""Notes of topics that were deleted, each with the brokers that may still have folders of it.

Each broker strikes itself off when its folders are gone; the last one removes the note.
"""

from __future__ import annotations

from collections.abc import Collection

from barnabas.broker.controller import znodes
from barnabas.broker.controller.uuids import uuid_from_string
from barnabas.broker.registry.errors import Conflict
from barnabas.broker.registry.registry import Registry
from barnabas.broker.registry.tree_operations import Delete, Operation, Set


def deletions(registry: Registry) -> dict[bytes, frozenset[int] | None]:
    """The ids of deleted topics, and the brokers that may still have folders; None if that is not known."""
    found: dict[bytes, frozenset[int] | None] = {}
    for name in _names(registry):
        try:
            topic_id = uuid_from_string(name)
        except ValueError:
            continue  # a topic that Kafka was told to delete
        path = znodes.deletion_path(topic_id)
        node = registry.find(path)
        if node is not None:
            found[topic_id] = znodes.read_deletion(path, node)
    return found


def topics_to_delete(registry: Registry) -> list[str]:
    """The names of topics whose deletion a controller of Kafka's was told to do and did not finish."""
    names = []
    for name in _names(registry):
        try:
            uuid_from_string(name)
        except ValueError:
            names.append(name)
        else:
            if registry.find(znodes.topic_path(name)) is not None:
                names.append(name)
    return names


async def strike_off(registry: Registry, broker_id: int, topic_ids: Collection[bytes]) -> None:
    """Note that nothing is left of these topics on this broker.

    RegistryUnavailable if that cannot be written down: then the next start finds it out again.
    """
    while True:
        operations: list[Operation] = []
        for topic_id, brokers in deletions(registry).items():
            if topic_id in topic_ids:
                operations += _without(registry, topic_id, brokers, broker_id)
        if not operations:
            return
        try:
            await registry.multi(operations)
        except Conflict:
            continue  # another broker struck itself off at the same time
        return


def _without(registry: Registry, topic_id: bytes, brokers: frozenset[int] | None, broker_id: int) -> list[Operation]:
    path = znodes.deletion_path(topic_id)
    version = registry.get(path).version
    if brokers is None or brokers <= {broker_id}:
        return [Delete(path, version)]
    return [Set(path, znodes.write_deletion(brokers - {broker_id}), version)] if broker_id in brokers else []


def _names(registry: Registry) -> list[str]:
    return registry.children(znodes.DELETIONS) if registry.find(znodes.DELETIONS) else []
