"""Notes in the registry that a broker's disk fails, or works again.

They are Apache Kafka 3.9's. The controller sends such a broker its orders again and removes the note; the broker's
answers show which partitions it can have.
"""

from __future__ import annotations

import structlog

from barnabas.broker.controller import znodes
from barnabas.broker.registry.registry import Registry
from barnabas.broker.registry.tree_operations import Create

log = structlog.get_logger()


async def note_log_dir_event(registry: Registry, broker_id: int) -> None:
    await registry.multi([Create(znodes.LOG_DIR_EVENT, znodes.write_log_dir_event(broker_id), sequential=True)])


def log_dir_events(registry: Registry) -> dict[str, int | None]:
    """The notes that are there, each with its broker; None where that cannot be read."""
    if registry.find(znodes.LOG_DIR_EVENTS) is None:
        return {}
    found: dict[str, int | None] = {}
    for name in registry.children(znodes.LOG_DIR_EVENTS):
        path = f"{znodes.LOG_DIR_EVENTS}/{name}"
        try:
            found[path] = znodes.read_log_dir_event(path, registry.get(path))
        except znodes.MalformedNode as error:
            log.warning("a note about a disk cannot be read", reason=str(error))
            found[path] = None
    return found
