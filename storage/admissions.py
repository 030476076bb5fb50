"""Which producers may begin a transaction in a log, as long as they have not begun it.

A client's first batch of a transaction is appended only if the transaction's coordinator knows that this partition
takes part: then it will end the transaction here, too, and no reader waits for an end that never comes. Whoever asks
the coordinator notes it here, before and after. The note holds until the batch is appended or the transaction ends.

A batch may be refused and the ones behind it not, if they were sent before its producer knew. So the lowest sequence
that was tried is kept: what comes after it has to wait for it.

Each epoch of a producer has a note of its own: whoever tries with another one, a zombie say, does not touch it.
"""

from dataclasses import dataclass

from protocol.records.batch import NO_PRODUCER_EPOCH
from storage.errors import InvalidTransactionState, OutOfOrderSequence


@dataclass(slots=True)
class _Admission:
    lowest_sequence: int
    # The epoch is that of one transaction only, so sequences begin at 0.
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
        """A batch came that begins a transaction, and the coordinator is going to be asked."""
        known = self._find(producer_id, producer_epoch)
        if known is None:
            admission = _Admission(sequence, from_zero, now_ms)
            self._admissions.setdefault(producer_id, {})[producer_epoch] = admission
        else:
            known.lowest_sequence = min(known.lowest_sequence, sequence)
            known.from_zero = from_zero
            known.tried_ms = now_ms

    def admit(self, producer_id: int, producer_epoch: int) -> None:
        """The coordinator knows of the transaction."""
        known = self._find(producer_id, producer_epoch)
        if known is not None:
            known.is_admitted = True

    def check(self, producer_id: int, producer_epoch: int, sequence: int, known_epoch: int) -> None:
        """A batch begins a transaction now; raises if it may not. `known_epoch` is the producer's latest in the log."""
        known = self._find(producer_id, producer_epoch)
        if known is None or not known.is_admitted:
            raise InvalidTransactionState(f"a batch of producer {producer_id} is not part of an ongoing transaction")
        lowest = 0 if known.from_zero and known_epoch == NO_PRODUCER_EPOCH else known.lowest_sequence
        if sequence > lowest:
            raise OutOfOrderSequence(
                f"producer {producer_id} sends sequence {sequence} where {lowest} is to come first"
            )

    def settle(self, producer_id: int) -> None:
        """The transaction has begun, or is over."""
        self._admissions.pop(producer_id, None)

    def forget_expired(self, now_ms: int, expiration_ms: int) -> None:
        kept: dict[int, dict[int, _Admission]] = {}
        for producer_id, epochs in self._admissions.items():
            left = {epoch: known for epoch, known in epochs.items() if now_ms - known.tried_ms < expiration_ms}
            if left:
                kept[producer_id] = left
        self._admissions = kept
