"""A Fetch of very many partitions, which would keep everybody else waiting if it were read in one turn of the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.fetching import READ_COMMITTED, Answers, Fetch
from barnabas.broker.replica.fetch_sessions import (
    FetchContext,
)
from barnabas.broker.replica.partition import Partition
from barnabas.broker.server.pieces import Steps, parts
from barnabas.broker.server.request import Request
from barnabas.protocol.messages.fetch import (
    FetchRequest,
    FetchResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

# So many partitions are read in one step.
_PARTITIONS_A_STEP: Final = 50


class LargeFetch(Fetch):
    """One of very many partitions: whatever is done with each of them is done in pieces."""

    __slots__ = ("_is_over", "_is_working", "_looks_again")

    def __init__(self, broker: Broker, request: Request, message: FetchRequest, context: FetchContext) -> None:
        super().__init__(broker, request, message, context)
        self._is_working = False
        self._looks_again = False  # whether there was news while the partitions were read
        self._is_over = False  # whether to answer with whatever there is

    def begin(self) -> None:
        self._request.on_abandon = self._abandoned
        self._is_over = self._message.max_wait_ms <= 0
        self._work(self._begin_steps())

    def _work(self, steps: Steps[FetchResponse | None]) -> None:
        self._is_working = True
        self._broker.server.dispatcher.go_on(self._request, steps)

    def _begin_steps(self) -> Steps[FetchResponse | None]:
        for partition in map(self._find, list(self._context.partitions)):
            if isinstance(partition, Partition):
                self._line_at(partition)[self] = None
                self._waits_at.append(partition)
            yield
        if not self._is_over:
            self._timer = self._broker.clock.call_later(self._message.max_wait_ms / 1000, self._expired)
        return (yield from self._read_steps())

    def _read_steps(self) -> Steps[FetchResponse | None]:
        while True:
            self._looks_again = False
            self._begin_reading()
            partitions = list(self._context.partitions.items())
            answers: Answers = []
            enough = False
            for some in parts(partitions, _PARTITIONS_A_STEP):
                enough = self._read_some(some, answers) or enough
                yield
            self._is_new = False
            enough = enough or self._missing <= 0
            if self._size and not enough:
                for some in parts(partitions, _PARTITIONS_A_STEP):
                    enough = enough or self._have_later_segments(some)
                    yield
            if enough or self._is_over:
                return (yield from self._answer_steps(answers))
            if not self._looks_again:
                self._is_working = False
                return None

    def _answer_steps(self, answers: Answers) -> Steps[FetchResponse]:
        yield from self._leave_steps()
        self._request.on_abandon = None
        if self._is_held_back(answers):
            return self._context.empty_answer()
        response = self._context.begin_answer()
        for some in parts(answers, _PARTITIONS_A_STEP):
            self._count(some)
            self._context.add_to_answer(response, some)
            yield
        self._tell_leader(response)
        return response

    def _leave_steps(self) -> Steps[None]:
        if self._timer is not None:
            self._timer.cancel()
        while self._waits_at:
            for partition in self._waits_at[-_PARTITIONS_A_STEP:]:
                self._line_at(partition).pop(self, None)
            del self._waits_at[-_PARTITIONS_A_STEP:]
            yield

    def _abandoned(self) -> None:
        self._broker.server.dispatcher.pieces.begin(self._leave_steps())

    def on_news(self, size: int) -> None:
        self._missing -= size
        self._is_over = self._is_over or not size
        if size and self._missing > 0 and (self._is_replica or self._message.isolation_level != READ_COMMITTED):
            return
        if self._is_working:
            self._looks_again = True
        else:
            self._work(self._read_steps())

    def _expired(self) -> None:
        self.on_news(0)
