"""Consume, transform, produce, with the offsets in the transaction: one loop for each client library.

python -m tests.integration.exactly_once.worker LIBRARY BOOTSTRAP GROUP SOURCE TARGET TRANSACTIONAL_ID

On SIGUSR1 it says where it is; on SIGTERM it ends. It also ends on any error, and its parent starts another one, as a
supervisor would: exactly once must hold whatever happens to a worker, so there is nothing that it would have to repair
itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

AT_ONCE = 20
POLL_SECONDS = 0.1
PATIENCE = 30.0
SESSION_TIMEOUT_MS = 3000
HEARTBEAT_INTERVAL_MS = 300
TRANSACTION_TIMEOUT_MS = 5000
HANGS_AFTER = float(os.environ.get("BARNABAS_HANGS_AFTER", "15"))  # a cluster takes longer to answer again


@dataclass
class Job:
    bootstrap: str
    group: str
    source: str
    target: str
    transactional_id: str
    is_over: bool = field(default=False, init=False)
    _last_sign: float = field(default_factory=time.monotonic, init=False)

    def __post_init__(self) -> None:
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def finish(self, *_: object) -> None:
        self.is_over = True

    @property
    def goes_on(self) -> bool:
        """Called once per iteration of a loop, as a sign of life."""
        self._last_sign = time.monotonic()
        return not self.is_over

    def _watch(self) -> None:
        """End a worker that hangs, as a supervisor would.

        librdkafka (2.16) does when the answer to a TxnOffsetCommit is lost with its connection: its call for offsets
        does not come back, whatever its timeout, on Apache Kafka as well.
        """
        while time.monotonic() < self._last_sign + HANGS_AFTER:
            time.sleep(0.5)
        print(f"no sign of life for {HANGS_AFTER:.0f} s", flush=True)
        os._exit(3)


def transformed(value: bytes) -> bytes:
    return b"seen " + value


class RebalancedError(Exception):
    """The group has moved on, so what was read may belong to another member by now."""


def run_confluent(job: Job) -> None:
    """As in KIP-447: the producer tells the broker which generation of the group it commits for."""
    from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": job.bootstrap,
            "group.id": job.group,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": SESSION_TIMEOUT_MS,
            "heartbeat.interval.ms": HEARTBEAT_INTERVAL_MS,
            "reconnect.backoff.max.ms": 500,
            "fetch.wait.max.ms": 50,
        }
    )
    producer = Producer(
        {
            "bootstrap.servers": job.bootstrap,
            "transactional.id": job.transactional_id,
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
            "reconnect.backoff.max.ms": 500,
            "linger.ms": 1,
        }
    )
    producer.init_transactions(PATIENCE)
    read: list[Any] = []
    # With these it joins again only while it is polled, after what was read before has been forgotten.
    consumer.subscribe([job.source], on_assign=lambda *_: read.clear(), on_revoke=lambda *_: read.clear())
    while job.goes_on:
        message = consumer.poll(POLL_SECONDS)
        while message is not None:
            if message.error() is None:
                read.append(message)
            elif message.error().fatal() or not message.error().retriable():
                raise KafkaException(message.error())
            message = consumer.poll(0) if len(read) < AT_ONCE else None
        if not read:
            continue
        producer.begin_transaction()
        for each in read:
            producer.produce(job.target, transformed(each.value()), each.key(), partition=each.partition())
        ends = {each.partition(): each.offset() + 1 for each in read}
        offsets = [TopicPartition(job.source, partition, end) for partition, end in ends.items()]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), PATIENCE)
        producer.commit_transaction(PATIENCE)
        read.clear()
    consumer.close()


def run_kafka_python(job: Job) -> None:
    """The same way."""
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.structs import OffsetAndMetadata

    from tests.support.kafka_python import wait_for_topic

    consumer = KafkaConsumer(
        job.source,
        bootstrap_servers=job.bootstrap,
        group_id=job.group,
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        max_poll_records=AT_ONCE,
        fetch_max_wait_ms=50,
    )
    wait_for_topic(consumer, job.source)
    producer = KafkaProducer(
        bootstrap_servers=job.bootstrap,
        transactional_id=job.transactional_id,
        transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
        max_block_ms=int(PATIENCE * 1000),
    )
    producer.init_transactions()
    while job.goes_on:
        batches = consumer.poll(timeout_ms=int(POLL_SECONDS * 1000))
        if not batches:
            continue
        membership = consumer.group_metadata()
        if membership.generation_id < 0:
            raise RebalancedError(membership)
        producer.begin_transaction()
        for records in batches.values():
            for each in records:
                producer.send(job.target, transformed(each.value), key=each.key, partition=each.partition)
        ends = {
            TopicPartition(job.source, partition.partition): OffsetAndMetadata(records[-1].offset + 1, "", -1)
            for partition, records in batches.items()
        }
        producer.send_offsets_to_transaction(ends, membership)
        producer.commit_transaction()
    consumer.close()


def run_aiokafka(job: Job) -> None:
    asyncio.run(AioKafkaLoop(job).run())


class AioKafkaLoop:
    """As before KIP-447, because aiokafka does not send its generation to the broker.

    Each partition has a producer with a transactional id of its own. The new owner of a partition starts with that id,
    which fences the previous owner and ends its transaction, and only then looks up where to continue.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._producers: dict[Any, Any] = {}
        self._assignments = 0  # counted, to notice one that came in between
        self._is_ready = asyncio.Event()
        self._failed: Exception | None = None
        self._stopping: list[asyncio.Future[None]] = []

    async def run(self) -> None:
        from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener

        loop = self

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
            async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
                loop._is_ready.clear()
                loop._assignments += 1

            async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
                try:
                    await loop._take_over(assigned)
                except Exception as error:  # the library would only log it
                    loop._failed = error
                loop._is_ready.set()

        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=self._job.bootstrap,
            group_id=self._job.group,
            isolation_level="read_committed",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
            fetch_max_wait_ms=50,
        )
        await self._consumer.start()
        self._consumer.subscribe([self._job.source], listener=Listener())
        while self._job.goes_on:
            await self._turn()
        await self._consumer.stop()

    async def _take_over(self, assigned: Iterable[Any]) -> None:
        from aiokafka import AIOKafkaProducer

        self._assignments += 1
        old, self._producers = self._producers, {}
        for partition in assigned:
            self._producers[partition] = AIOKafkaProducer(
                bootstrap_servers=self._job.bootstrap,
                transactional_id=f"{self._job.group}-{partition.partition}",
                transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            )
            await self._producers[partition].start()
            committed = await self._consumer.committed(partition)
            self._consumer.seek(partition, committed or 0)
        self._assignments += 1
        self._stopping = [asyncio.ensure_future(producer.stop()) for producer in old.values()]

    async def _turn(self) -> None:
        # Waiting is not a sign of life: aiokafka may wait forever for an assignment or for a producer to begin.
        while not self._is_ready.is_set() and not self._job.is_over:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._is_ready.wait(), 1)
        if self._failed is not None:
            raise self._failed
        before, producers = self._assignments, dict(self._producers)
        batches = await self._consumer.getmany(timeout_ms=int(POLL_SECONDS * 1000), max_records=AT_ONCE)
        if before != self._assignments or not self._is_ready.is_set():
            if batches:
                raise RebalancedError
            return
        for partition, records in batches.items():
            producer = producers[partition]
            await producer.begin_transaction()
            sent = [
                await producer.send(
                    self._job.target, transformed(each.value), key=each.key, partition=partition.partition
                )
                for each in records
            ]
            await asyncio.gather(*sent)
            await producer.send_offsets_to_transaction({partition: records[-1].offset + 1}, self._job.group)
            await producer.commit_transaction()


LOOPS = {"kafka-python": run_kafka_python, "confluent-kafka": run_confluent, "aiokafka": run_aiokafka}


def main(library: str, *arguments: str) -> None:
    job = Job(*arguments)
    signal.signal(signal.SIGTERM, job.finish)
    faulthandler.register(signal.SIGUSR1, all_threads=False)
    LOOPS[library](job)


if __name__ == "__main__":
    main(*sys.argv[1:])
