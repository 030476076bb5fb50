"""Sends the markers of a transaction to the leaders of its partitions, on this broker and on others.

Markers for partitions of this broker are written directly, at the end of this turn of the loop. Those for other brokers
go in WriteTxnMarkers, one request at a time for each broker: what accumulates meanwhile goes together in the next one.
A marker is tried once. The caller (transaction/ending.py) then checks the metadata again, and sends the rest again.

A request whose answer was lost may be carried out late, in the middle of the producer's next transaction. Version 2
says whether each transaction has its own epoch: then the partition recognizes such a marker (KIP-890, KAFKA-19999).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

import structlog

from barnabas.broker.coordinator.cluster import Cluster, Peers
from barnabas.broker.interbroker.channel import ChannelError
from barnabas.broker.internal_topics import TRANSACTION_STATE
from barnabas.broker.transaction.markers import Done, Marker, TransactionMarkers
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.protocol.topic_partition import TopicPartition

log = structlog.get_logger()

_MOST_IN_A_REQUEST: Final = 1000


class _Sending(NamedTuple):
    marker: Marker
    done: Done
    is_wanted: Callable[[], bool]


class MarkerSender:
    def __init__(
        self,
        node_id: int,
        cluster: Cluster,
        local: TransactionMarkers,
        peers: Peers,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        timeout_ms: Callable[[], int],
        version: int = 2,
    ) -> None:
        """`version` of WriteTxnMarkers is 1 where there are brokers that know no other (Apache Kafka 3.9)."""
        self._node_id = node_id
        self._cluster = cluster
        self._local = local
        self._peers = peers
        self._spawn = spawn
        self._timeout_ms = timeout_ms
        self._version = version
        self._waiting: dict[int, list[_Sending]] = {}  # by broker; a broker is here while a request is under way

    def are_local(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether no other broker has to be told about the end of a transaction with these partitions."""
        for partition in partitions:
            image = self._cluster.partition(*partition)
            if image is not None and image.leader_id != self._node_id:
                return False
        return True

    def send(self, marker: Marker, done: Done, is_wanted: Callable[[], bool]) -> None:
        """Try to bring a marker to its partitions. `done` is called with the errors of some of them at a time.

        A marker that is no longer wanted when its turn comes is dropped: then another coordinator ends the transaction.
        """
        if self._cluster.topic(TRANSACTION_STATE) is None:
            # A coordinator has a partition of that topic. Without it in the metadata, nothing can be said about others.
            done(dict.fromkeys(marker.partitions, ErrorCode.LEADER_NOT_AVAILABLE))
            return
        gone: list[TopicPartition] = []
        leaders: dict[int, list[TopicPartition]] = {}
        for partition in marker.partitions:
            image = self._cluster.partition(*partition)
            if image is None:
                gone.append(partition)
            else:
                leaders.setdefault(image.leader_id, []).append(partition)
        if gone:
            done(dict.fromkeys(gone, ErrorCode.NONE))
        for leader, partitions in leaders.items():
            part = marker._replace(partitions=tuple(partitions))
            if leader == self._node_id:
                self._local.write(part, done)
            else:
                self._send_to(leader, _Sending(part, done, is_wanted))

    def _send_to(self, broker_id: int, sending: _Sending) -> None:
        waiting = self._waiting.get(broker_id)
        if waiting is not None:
            waiting.append(sending)
        elif broker_id < 0 or self._peers.channel(broker_id) is None:
            _fail([sending], ErrorCode.LEADER_NOT_AVAILABLE)
        else:
            self._waiting[broker_id] = [sending]
            self._spawn(self._send_waiting(broker_id))

    async def _send_waiting(self, broker_id: int) -> None:
        try:
            while some := self._take(broker_id):
                await self._request(broker_id, some)
        finally:
            left = self._waiting.pop(broker_id, [])
            _fail(left, ErrorCode.NETWORK_EXCEPTION)

    def _take(self, broker_id: int) -> list[_Sending]:
        """What goes into the next request: one marker of a producer, because the answer names producers."""
        taken: dict[int, _Sending] = {}
        left = []
        for sending in self._waiting[broker_id]:
            if not sending.is_wanted():
                continue
            if sending.marker.producer_id in taken or len(taken) == _MOST_IN_A_REQUEST:
                left.append(sending)
            else:
                taken[sending.marker.producer_id] = sending
        self._waiting[broker_id] = left
        return list(taken.values())

    async def _request(self, broker_id: int, some: Sequence[_Sending]) -> None:
        channel = self._peers.channel(broker_id)
        if channel is None:
            _fail(some, ErrorCode.LEADER_NOT_AVAILABLE)
            return
        request = WriteTxnMarkersRequest(markers=[_writable(sending.marker) for sending in some])
        try:
            response: WriteTxnMarkersResponse = await channel.request(
                ApiKey.WRITE_TXN_MARKERS, request, self._version, WriteTxnMarkersResponse, self._timeout_ms()
            )
            errors = {result.producer_id: _errors(result.topics) for result in response.markers}
        except ChannelError:
            _fail(some, ErrorCode.NETWORK_EXCEPTION)
            return
        except Exception:  # this is unexpected, but a marker must not get lost
            log.exception("markers could not be sent", broker=broker_id)
            _fail(some, ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        for sending in some:
            found = errors.get(sending.marker.producer_id, {})
            _tell(
                sending, {each: found.get(each, ErrorCode.UNKNOWN_SERVER_ERROR) for each in sending.marker.partitions}
            )


def _fail(some: Sequence[_Sending], error: ErrorCode) -> None:
    for sending in some:
        _tell(sending, dict.fromkeys(sending.marker.partitions, error))


def _tell(sending: _Sending, errors: Mapping[TopicPartition, ErrorCode]) -> None:
    """Report one result; a failure of its callback must not affect the others."""
    if sending.is_wanted():
        try:
            sending.done(errors)
        except Exception:
            log.exception("the end of a transaction failed", producer_id=sending.marker.producer_id)


def _writable(marker: Marker) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=marker.commit,
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
        topics=[
            WritableTxnMarkerTopic(name=topic, partition_indexes=[index for _, index in partitions])
            for topic, partitions in groupby(sorted(marker.partitions), key=itemgetter(0))
        ],
    )


def _errors(topics: Sequence[Any]) -> Mapping[TopicPartition, ErrorCode]:
    return {
        TopicPartition(topic.name, each.partition_index): ErrorCode(each.error_code)
        for topic in topics
        for each in topic.partitions
    }
