"""The client beside the fuzzer. It writes records and reads them back, and measures how long it waits.

No other client uses its topic, and the topic has its own settings, so any problem it has is the broker's fault.
"""

from __future__ import annotations

import threading
import time

from barnabas.client.requests.admin import create_topics, new_topic
from barnabas.client.requests.data import fetch, produce
from barnabas.client.requests.records import batch, read_batches
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.records.record import read_records
from tests.fuzz.world import WITNESS

SETTINGS = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "segment.bytes": "1048576",
    "segment.ms": "604800000",
    "max.message.bytes": "1048576",
    "compression.type": "producer",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": "9223372036854775807",
    "message.timestamp.after.max.ms": "9223372036854775807",
    "min.insync.replicas": "1",
    "flush.messages": "9223372036854775807",
    "flush.ms": "9223372036854775807",
}
_PRODUCE, _FETCH, _CREATE = 9, 12, 7  # versions that name topics
_PAUSE = 0.005
_VERIFIED_EVERY = 200  # batches


class Witness:
    def __init__(self, port: int) -> None:
        self._port = port
        self._wire = Wire("127.0.0.1", port)
        self._values: list[bytes] = []  # what was acknowledged, by offset
        self._verified = 0
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.problems: list[str] = []
        self.longest_wait = 0.0

    def create_topic(self) -> None:
        topic = new_topic(WITNESS, configs=list(SETTINGS.items()))
        (created,) = self._wire.ask(ApiKey.CREATE_TOPICS, create_topics(topic), _CREATE).topics
        if created.error_code:
            raise RuntimeError(f"{WITNESS}: {created.error_message}")

    def start(self) -> None:
        self._stopping.clear()
        self._thread = threading.Thread(target=self._run, name="witness", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(60)
            self._thread = None

    def reconnect(self) -> None:
        self._wire.close()
        self._wire = Wire("127.0.0.1", self._port)

    @property
    def acknowledged(self) -> int:
        return len(self._values)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                for _ in range(_VERIFIED_EVERY):
                    if self._stopping.is_set():
                        break
                    self._produce()
                    time.sleep(_PAUSE)
                self.verify(self._verified)
        except Exception as error:
            self.problems.append(f"the witness was let down: {type(error).__name__}: {error}")

    def _produce(self) -> None:
        values = [b"%d" % (len(self._values) + number) for number in range(1 + len(self._values) % 3)]
        started = time.perf_counter()
        answer = self._wire.ask(ApiKey.PRODUCE, produce((WITNESS, 0, batch(*values))), _PRODUCE)
        self.longest_wait = max(self.longest_wait, time.perf_counter() - started)
        (partition,) = answer.responses[0].partition_responses
        if partition.error_code or partition.base_offset != len(self._values):
            raise RuntimeError(f"after {len(self._values)} records: {partition}")
        self._values += values

    def verify(self, start: int = 0) -> None:
        """Read from an offset to the end of what was acknowledged, and compare."""
        offset = start
        while offset < len(self._values):
            answer = self._wire.ask(ApiKey.FETCH, fetch((WITNESS, 0, offset)), _FETCH)
            (partition,) = answer.responses[0].partitions
            found = [
                record for header, data in read_batches(partition.records) for record in read_records(data, header)
            ]
            if partition.error_code or not found:
                self.problems.append(
                    f"offset {offset} of {len(self._values)}: error {partition.error_code}, no records"
                )
                return
            for record in found:
                if record.offset >= offset:
                    if record.offset != offset or record.value != self._values[offset]:
                        self.problems.append(f"offset {offset}: {record} is not {self._values[offset]!r}")
                        return
                    offset += 1
        self._verified = offset
