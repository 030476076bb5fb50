"""Produce (key 0) of one batch to one partition, the short way: straight from the frame to the log and back.

Small requests are mostly of this form, and the objects that the long way (broker/handlers/produce) makes for them would
cost more than all the rest. The rules are the same ones: what they object to is left to the long way, which says why,
and what the log refuses is answered as it would be there. Transactions and acks=0 always go the long way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.handlers.produce import objection, refuse
from broker.replica.partition import Partition
from broker.server.dispatch import Route, ShortWay
from broker.server.request import Request
from protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from protocol.single_produce import VERSIONS, read, write_answer
from storage.write import AppendResult, Refusal

if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.server.connection import Connection


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
        topic, topic_field, acks, index, records = found
        partition = self._broker.replicas.find(topic, index)
        if partition is None or acks == 0 or objection(partition, records, acks, route.version, client_id, False):
            return False
        request = _SingleProduceRequest(connection, route, correlation_id, client_id, topic_field)
        connection.requests.append(request)
        partition.append_soon(records, request, None)
        connection.append_is_due()
        return True


class _SingleProduceRequest(Request):
    __slots__ = ("_topic_field",)

    def __init__(
        self, connection: Connection, route: Route, correlation_id: int, client_id: str | None, topic_field: bytes
    ) -> None:
        super().__init__(connection, route, correlation_id, client_id)
        self._topic_field = topic_field

    def appended(self, partition: Partition, place: None, result: AppendResult | Refusal) -> None:
        connection = self.connection
        connection.appended()
        if isinstance(result, AppendResult):
            answer = write_answer(
                self.correlation_id,
                self._topic_field,
                partition.index,
                result[0],
                result[2],
                partition.log.log_start_offset,
            )
            self.output = (answer,)
            connection.answered()
        else:
            self._refused(partition, result)

    def _refused(self, partition: Partition, error: Refusal) -> None:
        response = PartitionProduceResponse(index=partition.index, base_offset=-1)
        refuse(response, partition, error)
        topic = TopicProduceResponse(name=partition.topic, topic_id=partition.topic_id, partition_responses=[response])
        self.answer(ProduceResponse(responses=[topic]))
