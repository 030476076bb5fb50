"""Transactional producers that use either of the two client flows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from barnabas.client.requests import transactions
from barnabas.client.requests.lookup import TRANSACTION
from barnabas.client.requests.records import batch
from barnabas.conformance.probe import ANY_VERSION, SETTLING, Probe
from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import Versions


@dataclass(frozen=True)
class Flow:
    """Which versions a client uses, and therefore which steps it performs itself."""

    name: str
    title: str
    kip: str
    produce: str
    end: str
    offsets: str
    adds: bool
    """Whether the client adds partitions and groups to a transaction before it uses them."""

    @property
    def needs(self) -> tuple[str, ...]:
        needs = ("InitProducerId", "FindCoordinator 1+", f"Produce {self.produce}", f"EndTxn {self.end}")
        return (*needs, "AddPartitionsToTxn 0-3", "Fetch") if self.adds else (*needs, "Fetch")

    @property
    def needs_offsets(self) -> tuple[str, ...]:
        needs = (*self.needs, f"TxnOffsetCommit {self.offsets}", "OffsetFetch")
        return (*needs, "AddOffsetsToTxn") if self.adds else needs

    @property
    def features(self) -> dict[str, int]:
        return {} if self.adds else {"transaction.version": 2}


CLASSIC: Final = Flow("classic", "with AddPartitionsToTxn", "KIP-98", "3-11", "0-4", "0-4", True)
IMPLICIT: Final = Flow("implicit", "without AddPartitionsToTxn, as in KIP-890", "KIP-890", "12+", "5+", "5+", False)


class Producer:
    def __init__(self, probe: Probe, transactional_id: str, flow: Flow) -> None:
        self.probe = probe
        self.transactional_id = transactional_id
        self.flow = flow
        self.id = -1
        self.epoch = -1
        self._sequences: dict[tuple[str, int], int] = {}

    def init(self, **fields: Any) -> Any:
        """Send InitProducerId, and retry while the coordinator is busy with earlier work."""
        request = transactions.init_producer_id(self.transactional_id, **fields)
        answer = self.probe.until(
            "InitProducerId to be answered",
            lambda: self._ask(ApiKey.INIT_PRODUCER_ID, request),
            lambda answer: answer.error_code not in SETTLING,
        )
        if not answer.error_code:
            self._use(answer.producer_id, answer.producer_epoch)
        return answer

    def begin(self, **fields: Any) -> Producer:
        self.probe.expect_error("InitProducerId", self.init(**fields).error_code)
        return self

    def add(self, topic: str, *partitions: int) -> dict[int, int]:
        """Send AddPartitionsToTxn. Return each partition's error code."""
        version = self.probe.version(ApiKey.ADD_PARTITIONS_TO_TXN, Versions(0, 3))
        parts = [(topic, partition) for partition in partitions]
        request = transactions.add_partitions_to_txn(version, self.transactional_id, self.id, self.epoch, *parts)

        def attempt() -> dict[int, int]:
            answer = self._ask(ApiKey.ADD_PARTITIONS_TO_TXN, request, version)
            return {
                each.partition_index: each.partition_error_code
                for part in answer.results_by_topic_v3_and_below
                for each in part.results_by_partition
            }

        # The markers of the last transaction may still be on their way.
        return self.probe.until("AddPartitionsToTxn to be answered", attempt, lambda codes: _settled(*codes.values()))

    def send(self, topic: str, *values: bytes, partition: int = 0, **fields: Any) -> Any:
        """Produce without adding the partition first."""
        sequence = self._sequences.get((topic, partition), 0)
        options = {"producer_id": self.id, "producer_epoch": self.epoch, "base_sequence": sequence, **fields}
        records = batch(*values, transactional=True, **options)
        answer = self.probe.until(
            "Produce to be answered",
            lambda: self.probe.produce(topic, records, partition, transactional_id=self.transactional_id),
            lambda answer: _settled(answer.error_code),
        )
        if not answer.error_code:
            self._sequences[topic, partition] = sequence + max(1, len(values))
        return answer

    def write(self, topic: str, *values: bytes, partition: int = 0) -> int:
        """Write records as part of a transaction. Return the offset of the first."""
        if self.flow.adds:
            self.probe.expect_error("AddPartitionsToTxn", self.add(topic, partition)[partition])
        answer = self.send(topic, *values, partition=partition)
        self.probe.expect_error("Produce", answer.error_code)
        return int(answer.base_offset)

    def end(self, commit: bool) -> Any:
        """Send EndTxn. In the newer flow its response has the epoch for the next transaction."""
        request = transactions.end_txn(self.transactional_id, self.id, self.epoch, commit=commit)
        answer = self.probe.until(
            "EndTxn to be answered",
            lambda: self._ask(ApiKey.END_TXN, request),
            lambda answer: _settled(answer.error_code),
        )
        if not answer.error_code and not self.flow.adds and answer.producer_id >= 0:
            self._use(answer.producer_id, answer.producer_epoch)
        return answer

    def commit(self) -> None:
        self.probe.expect_error("EndTxn, commit", self.end(True).error_code)

    def abort(self) -> None:
        self.probe.expect_error("EndTxn, abort", self.end(False).error_code)

    def add_offsets(self, group: str) -> int:
        request = transactions.add_offsets_to_txn(self.transactional_id, self.id, self.epoch, group)
        return int(
            self.probe.until(
                "AddOffsetsToTxn to be answered",
                lambda: self._ask(
                    ApiKey.ADD_OFFSETS_TO_TXN, request, self.probe.version(ApiKey.ADD_OFFSETS_TO_TXN, ANY_VERSION)
                ),
                lambda answer: _settled(answer.error_code),
            ).error_code
        )

    def send_offset(self, group: str, topic: str, offset: int, **fields: Any) -> int:
        """Send TxnOffsetCommit without AddOffsetsToTxn before it."""
        request = transactions.txn_offset_commit(
            self.transactional_id, group, self.id, self.epoch, (topic, 0, offset), metadata=None, **fields
        )

        def attempt() -> int:
            answer = self.probe.ask_coordinator(group, ApiKey.TXN_OFFSET_COMMIT, request)
            return int(self.probe.only(answer.topics, "partitions").error_code)

        return self.probe.until("TxnOffsetCommit to be answered", attempt, _settled)

    def commit_offset(self, group: str, topic: str, offset: int) -> None:
        """Commit an offset as part of the transaction."""
        if self.flow.adds:
            self.probe.expect_error("AddOffsetsToTxn", self.add_offsets(group))
        self.probe.expect_error("TxnOffsetCommit", self.send_offset(group, topic, offset))

    def _ask(self, key: ApiKey, request: Any, version: int | None = None) -> Any:
        return self.probe.ask_coordinator(self.transactional_id, key, request, version, key_type=TRANSACTION)

    def _use(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.id, self.epoch):
            self._sequences.clear()
        self.id, self.epoch = producer_id, epoch


def _settled(*codes: int) -> bool:
    return not SETTLING.intersection(codes)
