"""aiokafka under torture; each client in a loop of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

from tests.integration.cluster.torture.seat import (
    AT_ONCE,
    HEARTBEAT_INTERVAL_MS,
    PATIENCE,
    SECONDS_BETWEEN_SENDS,
    SESSION_TIMEOUT_MS,
    TRANSACTION_TIMEOUT_MS,
    Play,
    Seat,
)

COMMON = {"metadata_max_age_ms": 5000}


async def _send(seat: Seat, producer: AIOKafkaProducer) -> None:
    partition = seat.partition()
    value = seat.send(partition)

    def done(future: asyncio.Future[Any]) -> None:
        if not future.cancelled() and future.exception() is None:
            seat.sent(value, future.result().offset)

    sending = await asyncio.wait_for(producer.send(seat.task.topic, value, partition=partition), PATIENCE)
    sending.add_done_callback(done)
    await asyncio.sleep(SECONDS_BETWEEN_SENDS)


async def _closed(client: Any) -> None:
    with contextlib.suppress(Exception):
        await asyncio.wait_for(client.stop(), PATIENCE)


async def produce(seat: Seat) -> None:
    acks: Any = seat.task.acks if seat.task.acks == "all" else int(seat.task.acks)
    idempotent = seat.role == "idempotent"
    producer = AIOKafkaProducer(
        bootstrap_servers=seat.task.bootstrap,
        acks="all" if idempotent else acks,
        enable_idempotence=idempotent,
        **COMMON,
    )
    await asyncio.wait_for(producer.start(), PATIENCE)
    try:
        while seat.goes_on:
            await _send(seat, producer)
        await asyncio.wait_for(producer.flush(), PATIENCE)
    finally:
        await _closed(producer)


async def transact(seat: Seat) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=seat.task.bootstrap,
        transactional_id=f"{seat.task.library}-transactional",
        transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
        **COMMON,
    )
    await asyncio.wait_for(producer.start(), PATIENCE)
    try:
        while seat.goes_on:
            seat.begin()
            await asyncio.wait_for(producer.begin_transaction(), PATIENCE)
            for _ in range(seat.chance.randint(1, 5)):
                await _send(seat, producer)
            if seat.aborts_this_time():
                await asyncio.wait_for(producer.abort_transaction(), PATIENCE)
                seat.aborted()
                continue
            seat.commit()
            await asyncio.wait_for(producer.commit_transaction(), PATIENCE)
            seat.committed()
    finally:
        await _closed(producer)


async def consume(seat: Seat) -> None:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=seat.task.bootstrap,
        group_id=seat.task.group,
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        fetch_max_wait_ms=100,
        **COMMON,
    )
    positions: dict[TopicPartition, int] = {}  # since the last assignment

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_revoked(self, revoked: Any) -> None:
            pass

        async def on_partitions_assigned(self, assigned: Any) -> None:
            positions.clear()
            seat.assigned()

    await asyncio.wait_for(consumer.start(), PATIENCE)
    consumer.subscribe([seat.task.topic], listener=Listener())
    try:
        while seat.goes_on:
            ends = {}
            for partition, records in (await consumer.getmany(timeout_ms=200, max_records=AT_ONCE)).items():
                if records[0].offset == 0 and partition in positions:
                    # aiokafka 0.14 sends no leader epoch. A deposed leader that does not know it yet, here or in Apache
                    # Kafka, tells it that its offset is out of range, and aiokafka starts over.
                    consumer.seek(partition, positions[partition])
                    continue
                for each in records:
                    seat.read(partition.partition, each.offset, each.value)
                    ends[partition] = positions[partition] = each.offset + 1
            if ends:
                await _commit(seat, consumer, ends)
    finally:
        await _closed(consumer)


async def _commit(seat: Seat, consumer: AIOKafkaConsumer, ends: dict[TopicPartition, int]) -> None:
    try:
        await asyncio.wait_for(consumer.commit(ends), PATIENCE)
    except (KafkaError, TimeoutError):
        return  # the group has moved on, or its coordinator; what was read will be read again
    for partition, end in ends.items():
        seat.offset_committed(partition.partition, end)


def _in_a_loop(play: Callable[[Seat], Coroutine[Any, Any, None]]) -> Play:
    return lambda seat: asyncio.run(play(seat))


PLAYS = {
    "plain": _in_a_loop(produce),
    "idempotent": _in_a_loop(produce),
    "transactional": _in_a_loop(transact),
    "member": _in_a_loop(consume),
}
