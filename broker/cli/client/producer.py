"""Batches on their way to the partitions of one topic.

With acks=all every batch carries a producer id and a sequence: whatever is sent again after a lost connection or a new
leader, the broker appends each batch once and in order. Without, what fails is not sent again.
"""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Final, NamedTuple

from broker.cli.client.client import Client, TopicPartition
from broker.cli.client.connection import Connection
from broker.cli.client.errors import BrokerError, ClientError, ConnectionLost, TimedOut, Unreachable, check
from broker.cli.client.partitioner import partition_of
from broker.cli.client.record_encoder import encode_headers, encode_records
from protocol.errors import ErrorCode
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.records.batch import (
    MAGIC,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    advance_sequence,
)
from protocol.records.builder import assemble_batch
from protocol.records.compression import CompressionType
from protocol.records.record import Headers

ACKS_ALL: Final = -1

# As many as a broker remembers of a producer in a partition: more could not be told from new ones when sent again.
_IN_FLIGHT: Final = 5
_PAUSE: Final = 0.1


class _Batch(NamedTuple):
    data: bytearray
    record_count: int


@dataclass(slots=True)
class _Partition:
    index: int
    leader: int
    # Not acknowledged yet, oldest first. Of these, the first `sent` are on their way.
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
        self._headers = encode_headers(headers)
        self._batch_bytes = batch_bytes
        (found,) = client.topics([topic], create=True)
        count = len(found.partitions)
        if partition is not None and partition >= count:
            subject = f"topic '{topic}' has {count} partitions, from 0; partition {partition}"
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, subject)
        leaders = client.leaders([TopicPartition(topic, index) for index in range(count)])
        self._partitions = [_Partition(each.partition, leader) for each, leader in leaders.items()]
        self._fixed = None if partition is None else self._partitions[partition]
        self._next = 0
        self._in_flight: dict[int, deque[list[_Partition]]] = {}
        self._give_up_at: float | None = None
        self._producer_id, self._producer_epoch = NO_PRODUCER_ID, NO_PRODUCER_EPOCH
        if acks == ACKS_ALL:
            client.settled(self._get_producer_id)

    def _get_producer_id(self) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1)
        answer = self._client.any_broker().ask(request, InitProducerIdResponse)
        check(answer.error_code, "a producer id")
        self._producer_id, self._producer_epoch = answer.producer_id, answer.producer_epoch

    def send(self, keys: Sequence[bytes | None] | None, values: Sequence[bytes | None]) -> None:
        """Send records, each to its key's partition. Those without a key stay together, and take turns as a whole."""
        if self._fixed is not None:
            self._enqueue(self._fixed, keys, values)
        elif keys is None:
            self._enqueue(self._in_turn(), None, values)
        else:
            shares: dict[int, tuple[list[bytes | None], list[bytes | None]]] = {}
            turn = None
            for key, value in zip(keys, values, strict=True):
                if key is None:
                    turn = turn or self._in_turn()
                    index = turn.index
                else:
                    index = partition_of(key, len(self._partitions))
                share = shares.setdefault(index, ([], []))
                share[0].append(key)
                share[1].append(value)
            for index, (its_keys, its_values) in shares.items():
                self._enqueue(self._partitions[index], its_keys, its_values)
        while any(each.sent < len(each.batches) for each in self._partitions):
            self._advance()

    def flush(self) -> None:
        """Return when everything is acknowledged."""
        while any(each.batches for each in self._partitions):
            self._advance()

    def _in_turn(self) -> _Partition:
        self._next = (self._next + 1) % len(self._partitions)
        return self._partitions[self._next]

    def _enqueue(
        self, partition: _Partition, keys: Sequence[bytes | None] | None, values: Sequence[bytes | None]
    ) -> None:
        data = encode_records(repeat(None) if keys is None else keys, values, self._headers)
        if len(data) > self._batch_bytes and len(values) > 1:
            half = len(values) // 2
            self._enqueue(partition, keys and keys[:half], values[:half])
            self._enqueue(partition, keys and keys[half:], values[half:])
            return
        now = int(time.time() * 1000)
        idempotent = self._producer_id != NO_PRODUCER_ID
        header = BatchHeader(
            base_offset=0,
            batch_length=0,
            partition_leader_epoch=NO_PARTITION_LEADER_EPOCH,
            magic=MAGIC,
            crc=0,
            attributes=0,
            last_offset_delta=len(values) - 1,
            base_timestamp=now,
            max_timestamp=now,
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=partition.sequence if idempotent else NO_SEQUENCE,
            record_count=len(values),
        )
        partition.sequence = advance_sequence(partition.sequence, len(values))
        partition.batches.append(_Batch(assemble_batch(header, data, self._compression), len(values)))

    def _advance(self) -> None:
        """Send what may be sent now; if that is nothing, wait for an answer."""
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
            request = ProduceRequest(
                acks=self._acks,
                timeout_ms=int(self._client.timeout * 1000),
                topic_data=[
                    TopicProduceData(
                        name=self._topic,
                        partition_data=[
                            PartitionProduceData(index=each.index, records=each.batches[each.sent].data)
                            for each in partitions
                        ],
                    )
                ],
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
        """Wait for the next answer of any leader."""
        waiting = {self._connection(leader): leader for leader, requests in self._in_flight.items() if requests}
        readable, _, _ = select.select(list(waiting), [], [], self._client.timeout)
        if not readable:
            raise TimedOut(f"no broker answered within {self._client.timeout:g} s")
        for connection in readable:
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
        """Forget what is on its way, find the leaders again, and send it all once more from the oldest on."""
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
