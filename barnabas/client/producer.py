"""Batches on their way to the partitions of one topic.

With acks=all every batch carries a producer id and a sequence number, so that the broker appends each batch once and in
order, although it may be sent again after a lost connection or an election. With other acks, nothing is sent twice.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from barnabas.client.client import Client
from barnabas.client.connection import Connection, readable
from barnabas.client.creation import find_or_create
from barnabas.client.errors import BrokerError, ClientError, ConnectionLost, TimedOut, Unreachable, check
from barnabas.client.partitioner import partition_of
from barnabas.client.record_encoder import Records, encode
from barnabas.client.requests.data import ACKS_ALL, produce
from barnabas.client.requests.transactions import init_producer_id
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.init_producer_id import InitProducerIdResponse
from barnabas.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from barnabas.protocol.records.batch import (
    MAGIC,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    advance_sequence,
)
from barnabas.protocol.records.builder import assemble_batch
from barnabas.protocol.records.compression import CompressionType
from barnabas.protocol.records.record import Headers
from barnabas.protocol.topic_partition import TopicPartition

# A broker remembers this many batches per producer and partition. It could not recognize more when they are sent again.
_IN_FLIGHT: Final = 5
_PAUSE: Final = 0.1


class _Batch(NamedTuple):
    data: bytearray
    record_count: int


@dataclass(slots=True)
class _Partition:
    index: int
    leader: int
    # Not yet acknowledged, oldest first. The first `sent` of them are on their way.
    batches: deque[_Batch] = field(default_factory=deque)
    sent: int = 0
    sequence: int = 0


class Producer:
    def __init__(
        self,
        client: Client,
        topic: str,
        *,
        acks: int = ACKS_ALL,
        compression: CompressionType = CompressionType.NONE,
        headers: Headers = (),
        partition: int | None = None,
        batch_bytes: int = 900_000,
    ) -> None:
        self.acknowledged = 0
        self._client = client
        self._topic = topic
        self._acks = acks
        self._compression = compression
        self._headers = headers
        self._batch_bytes = batch_bytes
        count = len(find_or_create(client, topic).partitions)
        leaders = client.leaders([TopicPartition(topic, index) for index in range(count)])
        self._partitions = [_Partition(each.partition, leader) for each, leader in leaders.items()]
        if partition is not None and partition >= count:
            subject = f"topic '{topic}' has {count} partition{'' if count == 1 else 's'}; partition {partition}"
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, subject)
        self._fixed = partition
        self._next = 0
        self._in_flight: dict[int, deque[list[_Partition]]] = {}
        self._give_up_at: float | None = None
        self._producer_id, self._producer_epoch = NO_PRODUCER_ID, NO_PRODUCER_EPOCH
        if acks == ACKS_ALL:
            client.settled(self._get_producer_id)

    def _get_producer_id(self) -> None:
        answer = self._client.any_broker().ask(init_producer_id(None, timeout_ms=2**31 - 1), InitProducerIdResponse)
        check(answer.error_code, "a producer id")
        self._producer_id, self._producer_epoch = answer.producer_id, answer.producer_epoch

    @property
    def partition_count(self) -> int:
        return len(self._partitions)

    def send(self, records: Records) -> None:
        """Send records, each to the partition that it names or to its key's. The others stay together: all of them go
        to one partition, and those of the next call to the next one."""
        if self._fixed is not None:
            self._enqueue(self._partitions[self._fixed], records)
        elif records.keys is None and records.partitions is None:
            self._enqueue(self._next_partition(), records)
        else:
            for index, rows in self._shares(records).items():
                self._enqueue(self._partitions[index], records.take(rows))
        while any(each.sent < len(each.batches) for each in self._partitions):
            self._advance()

    def _shares(self, records: Records) -> dict[int, list[int]]:
        """Which records go to which partition."""
        count = len(self._partitions)
        shares: dict[int, list[int]] = {}
        without_key: int | None = None
        none = [None] * len(records)
        for row, (key, index) in enumerate(zip(records.keys or none, records.partitions or none, strict=True)):
            if index is None:
                if key is not None:
                    index = partition_of(key, count)
                else:
                    if without_key is None:
                        without_key = self._next_partition().index
                    index = without_key
            shares.setdefault(index, []).append(row)
        return shares

    def flush(self) -> None:
        """Return when everything is acknowledged."""
        while any(each.batches for each in self._partitions):
            self._advance()

    def _next_partition(self) -> _Partition:
        self._next = (self._next + 1) % len(self._partitions)
        return self._partitions[self._next]

    def _enqueue(self, partition: _Partition, records: Records) -> None:
        count = len(records)
        encoded = encode(records, self._headers, int(time.time() * 1000))
        if len(encoded.data) > self._batch_bytes and count > 1:
            self._enqueue(partition, records.take(range(count // 2)))
            self._enqueue(partition, records.take(range(count // 2, count)))
            return
        idempotent = self._producer_id != NO_PRODUCER_ID
        header = BatchHeader(
            base_offset=0,
            batch_length=0,
            partition_leader_epoch=NO_PARTITION_LEADER_EPOCH,
            magic=MAGIC,
            crc=0,
            attributes=0,
            last_offset_delta=count - 1,
            base_timestamp=encoded.base_timestamp,
            max_timestamp=encoded.max_timestamp,
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=partition.sequence if idempotent else NO_SEQUENCE,
            record_count=count,
        )
        partition.sequence = advance_sequence(partition.sequence, count)
        partition.batches.append(_Batch(assemble_batch(header, encoded.data, self._compression), count))

    def _advance(self) -> None:
        """Send what can be sent now. If that is nothing, wait for an answer."""
        try:
            if not self._send_ready():
                self._receive()
        except (ConnectionLost, Unreachable, TimedOut) as error:
            self._start_over(error)
        except BrokerError as error:
            if not error.retriable:
                raise
            self._start_over(error)

    def _send_ready(self) -> bool:
        ready: dict[int, list[_Partition]] = {}
        for each in self._partitions:
            if each.sent < len(each.batches) and len(self._in_flight.get(each.leader, ())) < _IN_FLIGHT:
                ready.setdefault(each.leader, []).append(each)
        for leader, partitions in ready.items():
            request = produce(
                *((self._topic, each.index, each.batches[each.sent].data) for each in partitions),
                acks=self._acks,
                timeout_ms=int(self._client.timeout * 1000),
            )
            self._connection(leader).send(request, answered=self._acks != 0)
            for each in partitions:
                each.sent += 1
                if self._acks == 0:
                    self._acknowledge(each)
            if self._acks != 0:
                self._in_flight.setdefault(leader, deque()).append(partitions)
        return bool(ready)

    def _receive(self) -> None:
        """Wait for the next answer from any leader."""
        waiting = {self._connection(leader): leader for leader, requests in self._in_flight.items() if requests}
        arrived = readable(waiting, self._client.timeout)
        if not arrived:
            raise TimedOut(f"no broker answered within {self._client.timeout:g} s")
        for connection in arrived:
            answer = connection.receive(ProduceResponse)
            self._in_flight[waiting[connection]].popleft()
            for topic in answer.responses:
                for each in topic.partition_responses:
                    self._answered(each)

    def _answered(self, answer: PartitionProduceResponse) -> None:
        if answer.error_code != ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            subject = f"partition {self._topic}-{answer.index}"
            check(answer.error_code, subject, answer.error_message)
        self._acknowledge(self._partitions[answer.index])
        self._give_up_at = None

    def _acknowledge(self, partition: _Partition) -> None:
        partition.sent -= 1
        self.acknowledged += partition.batches.popleft().record_count

    def _start_over(self, error: ClientError) -> None:
        """Find the leaders again, and send everything that is not acknowledged once more, oldest first."""
        now = time.monotonic()
        self._give_up_at = self._give_up_at or now + self._client.timeout
        if self._producer_id == NO_PRODUCER_ID or now > self._give_up_at:
            raise error
        self._client.forget_connections()
        self._in_flight.clear()
        for each in self._partitions:
            each.sent = 0
        time.sleep(_PAUSE)
        leaders = self._client.leaders([TopicPartition(self._topic, each.index) for each in self._partitions])
        for each in self._partitions:
            each.leader = leaders[TopicPartition(self._topic, each.index)]

    def _connection(self, leader: int) -> Connection:
        return self._client.broker(leader, "produce")
