"""Produce (key 0) of one batch to one partition, by a shortcut: straight from the frame to the log and back.

Small requests mostly have this form, and the objects of the general path (broker/handlers/produce) would cost more than
everything else. The rules are the same: a request that breaks one is left to the general path, which says why, and what
the log refuses is answered as it would be there. Transactions and acks=0 always take the general path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.clock import Timer
from barnabas.broker.handlers.produce import commit_error, objection, refuse, tell_leaders
from barnabas.broker.replica.commit_waits import CommitWait
from barnabas.broker.replica.partition import Partition
from barnabas.broker.server.dispatch import Route, ShortWay
from barnabas.broker.server.request import Request
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from barnabas.protocol.single_produce import VERSIONS, read, write_answer
from barnabas.storage.errors import LogFailure
from barnabas.storage.write import AppendResult, Refusal

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.server.connection import Connection

_ALL: Final = -1
# In place of a timeout: acks=1, which does not wait for the commit.
_NO_WAIT: Final = -1


class SingleProduce(ShortWay):
    versions = VERSIONS

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def begin(
        self,
        connection: Connection,
        route: Route,
        correlation_id: int,
        client_id: str | None,
        frame: memoryview,
        pos: int,
    ) -> bool:
        found = read(frame, pos, route.version)
        if found is None:
            return False
        topic, topic_field, acks, timeout_ms, index, records = found
        partition = self._broker.replicas.find(topic, index)
        if partition is None or acks == 0 or objection(partition, records, acks, route.version, client_id, False):
            return False
        access = connection.access
        if access is not None and not access.writable_topics[partition.topic]:
            return False
        request = _SingleProduceRequest(self._broker, connection, route, correlation_id, client_id, topic_field)
        connection.requests.append(request)
        partition.append_soon(records, request, max(timeout_ms, 0) if acks == _ALL else _NO_WAIT)
        connection.append_is_due()
        return True


class _SingleProduceRequest(Request):
    __slots__ = ("_broker", "_topic_field")

    def __init__(
        self,
        broker: Broker,
        connection: Connection,
        route: Route,
        correlation_id: int,
        client_id: str | None,
        topic_field: bytes,
    ) -> None:
        super().__init__(connection, route, correlation_id, client_id)
        self._broker = broker
        self._topic_field = topic_field

    def appended(self, partition: Partition, timeout_ms: int, result: AppendResult | Refusal) -> None:
        """`timeout_ms` is how long acks=all may take."""
        self.connection.appended()
        if not isinstance(result, AppendResult):
            self._refused(partition, result)
        elif timeout_ms == _NO_WAIT:
            self.succeeded(partition, result)
        elif result[1] >= partition.log.high_watermark:
            _Uncommitted(self, partition, result).begin(timeout_ms)
        elif partition.has_enough_replicas():
            self.succeeded(partition, result)
        else:
            self.failed_after_append(partition, result, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)

    def succeeded(self, partition: Partition, result: AppendResult) -> None:
        answer = write_answer(
            self.correlation_id,
            self._topic_field,
            partition.index,
            result[0],
            result[2],
            partition.log.log_start_offset,
        )
        self.output = (answer,)
        self.connection.answered()

    def failed_after_append(self, partition: Partition, result: AppendResult, error: ErrorCode) -> None:
        response = PartitionProduceResponse(
            index=partition.index,
            error_code=error,
            base_offset=result.base_offset,
            log_append_time_ms=result.log_append_time,
            log_start_offset=partition.log.log_start_offset,
        )
        self._answer_with(partition, response)

    def _refused(self, partition: Partition, error: Refusal) -> None:
        response = PartitionProduceResponse(index=partition.index, base_offset=-1)
        refuse(response, partition, error)
        self._answer_with(partition, response)

    def _answer_with(self, partition: Partition, response: PartitionProduceResponse) -> None:
        topic = TopicProduceResponse(name=partition.topic, topic_id=partition.topic_id, partition_responses=[response])
        answer = ProduceResponse(responses=[topic])
        tell_leaders(self._broker, self, answer)
        self.answer(answer)


class _Uncommitted:
    """A batch with acks=all that is written, until it is committed or time is up."""

    __slots__ = ("_partition", "_request", "_result", "_timer", "_wait")

    def __init__(self, request: _SingleProduceRequest, partition: Partition, result: AppendResult) -> None:
        self._request = request
        self._partition = partition
        self._result = result
        self._timer: Timer | None = None
        self._wait: CommitWait | None = None

    def begin(self, timeout_ms: int) -> None:
        self._timer = self._partition.clock.call_later(timeout_ms / 1000, self._expired)
        self._wait = self._partition.when_committed(self._result.last_offset + 1, self._committed)
        if self._wait is not None:
            self._request.on_abandon = self._stop

    def _committed(self, failure: LogFailure | None) -> None:
        self._stop()
        error = commit_error(self._partition, failure)
        if error:
            self._request.failed_after_append(self._partition, self._result, error)
        else:
            self._request.succeeded(self._partition, self._result)

    def _expired(self) -> None:
        self._stop()
        self._request.failed_after_append(self._partition, self._result, ErrorCode.REQUEST_TIMED_OUT)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._wait is not None:
            self._wait.cancel()
