"""kafka-python under torture."""

from __future__ import annotations

import time
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from tests.integration.cluster.torture.seat import (
    AT_ONCE,
    DELIVERY_MS,
    HEARTBEAT_INTERVAL_MS,
    PATIENCE,
    SECONDS_BETWEEN_SENDS,
    SESSION_TIMEOUT_MS,
    TRANSACTION_TIMEOUT_MS,
    Seat,
)
from tests.support.kafka_python import wait_for_topic

COMMON = {"reconnect_backoff_max_ms": 500, "metadata_max_age_ms": 5000}


def _producer(seat: Seat, **settings: Any) -> KafkaProducer:
    return KafkaProducer(
        bootstrap_servers=seat.task.bootstrap.split(","),
        max_block_ms=int(PATIENCE * 1000),
        delivery_timeout_ms=DELIVERY_MS,
        linger_ms=2,
        **COMMON,
        **settings,
    )


def _send(seat: Seat, producer: KafkaProducer) -> Any:
    partition = seat.partition()
    value = seat.send(partition)
    future = producer.send(seat.task.topic, value, partition=partition)
    future.add_callback(lambda metadata: seat.sent(value, metadata.offset))
    time.sleep(SECONDS_BETWEEN_SENDS)
    return future


def produce(seat: Seat) -> None:
    acks: Any = seat.task.acks if seat.task.acks == "all" else int(seat.task.acks)
    idempotent = seat.role == "idempotent"
    producer = _producer(seat, acks="all" if idempotent else acks, enable_idempotence=idempotent)
    try:
        while seat.goes_on:
            _send(seat, producer)
        producer.flush(PATIENCE)
    finally:
        producer.close(timeout=1)


def transact(seat: Seat) -> None:
    producer = _producer(
        seat,
        transactional_id=f"{seat.task.library}-transactional",
        transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
    )
    try:
        producer.init_transactions()
        while seat.goes_on:
            seat.begin()
            producer.begin_transaction()
            sends = [_send(seat, producer) for _ in range(seat.chance.randint(1, 5))]
            if seat.aborts_this_time():
                producer.abort_transaction()
                seat.aborted()
                continue
            seat.commit()
            producer.commit_transaction()
            # kafka-python 3.0.12 gets itself a new epoch when a record is refused because the transaction has timed out
            # (INVALID_PRODUCER_EPOCH), and then says that it has committed. That record's future knows better.
            if not all(send.succeeded() for send in sends):
                raise KafkaError("a record of a transaction was refused")
            seat.committed()
    finally:
        producer.close(timeout=1)


def consume(seat: Seat) -> None:
    consumer = KafkaConsumer(
        bootstrap_servers=seat.task.bootstrap.split(","),
        group_id=seat.task.group,
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        max_poll_records=AT_ONCE,
        fetch_max_wait_ms=100,
        **COMMON,
    )

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: Any) -> None:
            pass

        def on_partitions_assigned(self, assigned: Any) -> None:
            seat.assigned()

    consumer.subscribe([seat.task.topic], listener=Listener())
    try:
        wait_for_topic(consumer, seat.task.topic)
        while seat.goes_on:
            ends = {}
            for partition, records in consumer.poll(timeout_ms=200).items():
                for each in records:
                    seat.read(partition.partition, each.offset, each.value)
                ends[partition.partition] = records[-1].offset + 1
            if ends:
                _commit(seat, consumer, ends)
    finally:
        consumer.close(autocommit=False)


def _commit(seat: Seat, consumer: KafkaConsumer, ends: dict[int, int]) -> None:
    offsets = {TopicPartition(seat.task.topic, index): OffsetAndMetadata(end, "", -1) for index, end in ends.items()}
    try:
        consumer.commit(offsets)
    except KafkaError:
        return  # the group has moved on, or its coordinator; what was read will be read again
    for index, end in ends.items():
        seat.offset_committed(index, end)


PLAYS = {"plain": produce, "idempotent": produce, "transactional": transact, "member": consume}
