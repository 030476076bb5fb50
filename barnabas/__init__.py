"""A Kafka broker for tests and scripts, in a process of its own:

    from barnabas import Barnabas

    with Barnabas() as broker:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)

This package needs only the standard library, and the broker shares nothing with the process that uses it. pytest
finds the pytest plugin by itself. See docs/testing.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.errors import BarnabasError, BrokerFailed, ControlFailed
    from barnabas.handle import Barnabas, Snapshot

__all__ = ["Barnabas", "BarnabasError", "BrokerFailed", "ControlFailed", "Snapshot"]


def __getattr__(name: str) -> Any:
    """Import lazily: pytest imports this package in every run, even in runs that start no broker."""
    if name in ("Barnabas", "Snapshot"):
        from barnabas import handle as module
    elif name in __all__:
        from barnabas import errors as module  # type: ignore[no-redef]
    else:
        raise AttributeError(f"module 'barnabas' has no attribute {name!r}")
    return getattr(module, name)
