"""Producers that may start a transaction in a log but have not started it yet.

The first batch of a client's transaction is appended only if the transaction's coordinator knows about this partition.
Otherwise the coordinator would not end the transaction here, and readers would wait for its end forever. The caller
records an admission before and after it asks the coordinator. The admission lasts until the batch is appended or the
transaction ends.

A batch may be refused while later ones, sent before the producer learned about it, would be accepted. So the admission
keeps the lowest sequence that was tried, and later sequences must wait for it.

Each epoch of a producer has its own admission, so a zombie with an older epoch does not affect it.
"""

from dataclasses import dataclass

from barnabas.protocol.records.batch import NO_PRODUCER_EPOCH
from barnabas.storage.errors import InvalidTransactionState, OutOfOrderSequence


@dataclass(slots=True)
class _Admission:
    lowest_sequence: int
    # The epoch belongs to a single transaction, so sequences start at 0.
    from_zero: bool
    tried_ms: int
    is_admitted: bool = False


class Admissions:
    def __init__(self) -> None:
        self._admissions: dict[int, dict[int, _Admission]] = {}  # by producer id and epoch

    def __len__(self) -> int:
        return sum(map(len, self._admissions.values()))

    def _find(self, producer_id: int, producer_epoch: int) -> _Admission | None:
        epochs = self._admissions.get(producer_id)
        return None if epochs is None else epochs.get(producer_epoch)

    def is_admitted(self, producer_id: int, producer_epoch: int) -> bool:
        known = self._find(producer_id, producer_epoch)
        return known is not None and known.is_admitted

    def try_out(self, producer_id: int, producer_epoch: int, sequence: int, *, from_zero: bool, now_ms: int) -> None:
        """A batch that starts a transaction has arrived. The caller is about to ask the coordinator."""
        known = self._find(producer_id, producer_epoch)
        if known is None:
            admission = _Admission(sequence, from_zero, now_ms)
            self._admissions.setdefault(producer_id, {})[producer_epoch] = admission
        else:
            known.lowest_sequence = min(known.lowest_sequence, sequence)
            known.from_zero = from_zero
            known.tried_ms = now_ms

    def admit(self, producer_id: int, producer_epoch: int) -> bool:
        """The coordinator knows about the transaction. False if one has ended here since it was asked: it may have been
        this one."""
        known = self._find(producer_id, producer_epoch)
        if known is None:
            return False
        known.is_admitted = True
        return True

    def check(self, producer_id: int, producer_epoch: int, sequence: int, known_epoch: int) -> None:
        """Raise if this batch may not start a transaction. `known_epoch` is the producer's latest in the log."""
        known = self._find(producer_id, producer_epoch)
        if known is None or not known.is_admitted:
            raise InvalidTransactionState(f"a batch of producer {producer_id} is not part of an ongoing transaction")
        lowest = 0 if known.from_zero and known_epoch == NO_PRODUCER_EPOCH else known.lowest_sequence
        if sequence > lowest:
            raise OutOfOrderSequence(f"producer {producer_id} sent sequence {sequence}, but {lowest} must come first")

    def started(self, producer_id: int) -> None:
        """The transaction has started in the log: from now on the log itself knows about it."""
        self._admissions.pop(producer_id, None)

    def ended(self, producer_id: int, producer_epoch: int) -> None:
        """The transaction of this epoch is over. One of a later epoch, whose coordinator is being asked, is not."""
        epochs = self._admissions.get(producer_id)
        if epochs is not None:
            left = {epoch: known for epoch, known in epochs.items() if epoch > producer_epoch}
            if left:
                self._admissions[producer_id] = left
            else:
                del self._admissions[producer_id]

    def clear(self) -> None:
        """This broker starts or stops leading the partition."""
        self._admissions.clear()

    def forget_expired(self, now_ms: int, expiration_ms: int) -> None:
        kept: dict[int, dict[int, _Admission]] = {}
        for producer_id, epochs in self._admissions.items():
            left = {epoch: known for epoch, known in epochs.items() if now_ms - known.tried_ms < expiration_ms}
            if left:
                kept[producer_id] = left
        self._admissions = kept
