"""kazoo's client as the registry uses it, and its transactions and failures in the registry's terms."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    OperationTimeoutError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.retry import KazooRetry

from barnabas.broker.registry.errors import (
    BadVersion,
    Conflict,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    RegistryError,
    RegistryUnavailable,
    SessionExpired,
)
from barnabas.broker.registry.tree import parent_of
from barnabas.broker.registry.tree_operations import Check, Create, Delete, Operation, Set

# For which part of a session a server may be silent when an answer is due.
_PATIENCE: Final = 1 / 6
_LEAST_PATIENCE_SECONDS: Final = 1.0

# What ZooKeeper's jute.maxbuffer is by default, and how much an operation adds to its path and data.
_USUAL_LIMIT: Final = 0xFFFFF
_BYTES_OF: Final = {Create: 48, Set: 21, Delete: 17, Check: 17}

_CONFLICTS: Final = {
    NoNodeError: NoNode,
    NodeExistsError: NodeExists,
    BadVersionError: BadVersion,
    NotEmptyError: NotEmpty,
    NoChildrenForEphemeralsError: NoChildrenForEphemerals,
}


def make_client(hosts: str, session_timeout: float) -> KazooClient:
    """A client that connects for as long as it takes and repeats no command. `hosts` may end in a chroot."""
    return KazooClient(
        hosts,
        timeout=session_timeout,
        handler=_Handler(session_timeout),
        connection_retry=KazooRetry(max_tries=-1, delay=0.1, backoff=2, max_delay=2.0),
        command_retry=KazooRetry(max_tries=0),
        logger=_silent(),
    )


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """Gives up on a server that does not answer while there is still time to try again.

    ZooKeeper drops what it receives while it starts. kazoo would wait for the answer until the session ends.
    """

    def __init__(self, session_timeout: float) -> None:
        super().__init__()
        self._patience = max(session_timeout * _PATIENCE, _LEAST_PATIENCE_SECONDS)

    def select(self, rlist: Any, wlist: Any, xlist: Any, timeout: float | None = None) -> Any:
        waits_for_one_answer = len(rlist) == 1  # and not for whatever comes next, from the server or from us
        if waits_for_one_answer and timeout is not None:
            timeout = min(timeout, self._patience)
        return super().select(rlist, wlist, xlist, timeout)

    def create_connection(self, *args: Any, timeout: float, **kwargs: Any) -> Any:
        return super().create_connection(*args, timeout=min(timeout, self._patience), **kwargs)


def _silent() -> logging.Logger:
    """kazoo logs every attempt to connect. What matters is logged here."""
    logger = logging.getLogger("kazoo")
    logger.propagate = False
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    return logger


# --- transactions and failures ---


def add(transaction: Any, operation: Operation) -> None:
    match operation:
        case Create(path, data, ephemeral, sequential):
            transaction.create(path, data, ephemeral=ephemeral, sequence=sequential)
        case Set(path, data, version):
            transaction.set_data(path, data, version)
        case Delete(path, version):
            transaction.delete(path, version)
        case Check(path, version):
            transaction.check(path, version)


def conflict_of(results: Sequence[Any], operations: Sequence[Operation]) -> RegistryError | None:
    """What kept a transaction from happening: one operation has its own error, the others only that it was undone."""
    for operation, result in zip(operations, results, strict=True):
        if isinstance(result, Exception) and not isinstance(result, RolledBackError | RuntimeInconsistency):
            return _failure(result, [operation])
    return None


def _failure(error: Exception, operations: Sequence[Operation]) -> RegistryError:
    for kind, conflict in _CONFLICTS.items():
        if operations and isinstance(error, kind):
            path = operations[0].path
            made: Conflict = conflict(parent_of(path) if _lacks_parent(error, operations[0]) else path)
            return made
    if isinstance(error, SessionExpiredError):
        return SessionExpired("the session with ZooKeeper has expired")
    if isinstance(error, ConnectionLoss | ConnectionClosedError | OperationTimeoutError):
        size = _size(operations)
        if size > _USUAL_LIMIT:
            return RegistryUnavailable(
                f"the connection to ZooKeeper was lost: its jute.maxbuffer is probably less than the {size:,} bytes"
                " of this transaction"
            )
        return RegistryUnavailable("the connection to ZooKeeper was lost; the change may have happened")
    return RegistryUnavailable(f"ZooKeeper refuses: {error!r}")


def _size(operations: Sequence[Operation]) -> int:
    """About how large a transaction is."""
    return sum(_BYTES_OF[type(each)] + len(each.path) + len(getattr(each, "data", b"")) for each in operations)


def _lacks_parent(error: Exception, operation: Operation) -> bool:
    return isinstance(error, NoNodeError) and isinstance(operation, Create)


@contextlib.contextmanager
def named_failures(operations: Sequence[Operation] = ()) -> Iterator[None]:
    try:
        yield
    except (KazooException, KazooTimeoutError) as error:
        raise _failure(error, operations) from error
