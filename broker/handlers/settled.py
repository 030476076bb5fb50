"""Answers that depend on a coordinator's state, which may be ahead of what is committed.

They wait until it is committed. If it never will be, because another broker leads the partition now, the answer must
not reveal it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Protocol, TypeVar

from barnabas.broker.server.pieces import Steps
from barnabas.broker.server.request import Request
from barnabas.protocol.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

M = TypeVar("M", bound=Message)


class Coordinator(Protocol):
    def all_committed(self, keys: Collection[str] | None) -> bool: ...

    def when_all_committed(self, keys: Collection[str] | None, then: Callable[[bool], None]) -> None: ...


def when_committed(
    broker: Broker,
    request: Request,
    coordinator: Coordinator,
    keys: Collection[str] | None,
    response: M,
    otherwise: Callable[[], Steps[M | None]],
) -> M | None:
    """The answer, if all that was decided for these keys is committed; with None as keys, for all of them.

    If it is not, the request is answered when it is. If it never will be, `otherwise` makes the answer at that time.
    """
    if coordinator.all_committed(keys):
        return response

    def then(committed: bool) -> None:
        if committed:
            broker.server.dispatcher.answer(request, response)
        else:
            broker.server.dispatcher.go_on(request, otherwise())

    coordinator.when_all_committed(keys, then)
    return None
