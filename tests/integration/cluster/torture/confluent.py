"""librdkafka under torture."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

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

COMMON = {"reconnect.backoff.max.ms": 500, "log_level": 0, "topic.metadata.refresh.interval.ms": 5000}


def produce(seat: Seat) -> None:
    settings = {"acks": seat.task.acks} if seat.role == "plain" else {"enable.idempotence": True}
    producer = Producer(
        {
            **COMMON,
            **settings,
            "bootstrap.servers": seat.task.bootstrap,
            "message.timeout.ms": DELIVERY_MS,
            "linger.ms": 2,
        }
    )
    fatal: list[Any] = []

    def delivered(error: Any, message: Message) -> None:
        if error is None:
            seat.sent(message.value(), message.offset())
        elif error.fatal():
            fatal.append(error)

    while seat.goes_on and not fatal:
        partition = seat.partition()
        with contextlib.suppress(BufferError):  # its queue is full: as good as lost on the way
            producer.produce(seat.task.topic, seat.send(partition), partition=partition, on_delivery=delivered)
        producer.poll(0)
        time.sleep(SECONDS_BETWEEN_SENDS)
    producer.flush(PATIENCE)
    if fatal:
        raise KafkaException(fatal[0])


def transact(seat: Seat) -> None:
    producer = Producer(
        {
            **COMMON,
            "bootstrap.servers": seat.task.bootstrap,
            "transactional.id": f"{seat.task.library}-transactional",
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
            "linger.ms": 2,
        }
    )

    def delivered(error: Any, message: Message) -> None:
        if error is None:
            seat.sent(message.value(), message.offset())

    producer.init_transactions(PATIENCE)
    while seat.goes_on:
        seat.begin()
        producer.begin_transaction()
        for _ in range(seat.chance.randint(1, 5)):
            partition = seat.partition()
            producer.produce(seat.task.topic, seat.send(partition), partition=partition, on_delivery=delivered)
            producer.poll(0)
            time.sleep(SECONDS_BETWEEN_SENDS)
        if seat.aborts_this_time():
            # If it has asked to add partitions and has not been answered, librdkafka ends a transaction that has not
            # begun, and takes INVALID_TXN_STATE for a fatal error (its issue 4849; so with Apache Kafka 3.9.1).
            producer.abort_transaction(PATIENCE)
            seat.aborted()
            continue
        seat.commit()
        try:
            producer.commit_transaction(PATIENCE)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            producer.abort_transaction(PATIENCE)
        else:
            seat.committed()


def consume(seat: Seat) -> None:
    consumer = Consumer(
        {
            **COMMON,
            "bootstrap.servers": seat.task.bootstrap,
            "group.id": seat.task.group,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": SESSION_TIMEOUT_MS,
            "heartbeat.interval.ms": HEARTBEAT_INTERVAL_MS,
            "fetch.wait.max.ms": 100,
        }
    )
    ends: dict[int, int] = {}

    def begin(*_: object) -> None:
        ends.clear()
        seat.assigned()

    consumer.subscribe([seat.task.topic], on_assign=begin, on_revoke=lambda *_: ends.clear())
    try:
        while seat.goes_on:
            message = consumer.poll(0.2)  # one at a time: a rebalance comes between two of them
            count = 0
            while message is not None:
                if message.error() is None:
                    seat.read(message.partition(), message.offset(), message.value())
                    ends[message.partition()] = message.offset() + 1
                elif message.error().fatal():
                    raise KafkaException(message.error())
                count += 1
                message = consumer.poll(0) if count < AT_ONCE else None
            if ends:
                _commit(seat, consumer, dict(ends))
                ends.clear()
    finally:
        consumer.close()


def _commit(seat: Seat, consumer: Consumer, ends: dict[int, int]) -> None:
    offsets = [TopicPartition(seat.task.topic, partition, end) for partition, end in ends.items()]
    try:
        answers = consumer.commit(offsets=offsets, asynchronous=False)
    except KafkaException:
        return  # the group has moved on, or its coordinator; what was read will be read again
    for each in answers:
        if each.error is None:
            seat.offset_committed(each.partition, each.offset)


PLAYS = {"plain": produce, "idempotent": produce, "transactional": transact, "member": consume}
