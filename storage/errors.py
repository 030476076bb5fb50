"""Why storage refuses or fails an operation.

StorageError
  +-- LogFailure                    a disk failure: KAFKA_STORAGE_ERROR
  +-- OffsetOutOfRange
  +-- AppendRefused                 this record set cannot be appended; the log is unchanged
  |     +-- RecordTooLarge
  |     +-- RecordBatchTooLarge
  |     +-- InvalidRecord           with the invalid records
  |     +-- InvalidTimestamp        with the invalid records
  |     +-- InvalidProducerEpoch
  |     +-- OutOfOrderSequence
  |     +-- InvalidTransactionState
  |     +-- TransactionCoordinatorFenced
  |     +-- OffsetsOutOfOrder       a follower's batches do not continue its log
  +-- CleaningAborted               a compaction was abandoned; the log is unchanged
  +-- CorruptFile                   a file beside the log violates its format
  +-- DirectoryUnusable
        +-- DirectoryLocked         another process uses it
        +-- WrongDirectory          it belongs to another cluster or node
"""

from collections.abc import Sequence
from typing import NamedTuple


class StorageError(Exception):
    pass


class LogFailure(StorageError):
    pass


class OffsetOutOfRange(StorageError):
    pass


class AppendRefused(StorageError):
    pass


class RecordTooLarge(AppendRefused):
    pass


class RecordBatchTooLarge(AppendRefused):
    pass


class RecordError(NamedTuple):
    """An invalid record: its index in the batch, and the reason."""

    batch_index: int
    message: str


class _RecordsRefused(AppendRefused):
    def __init__(self, message: str, record_errors: Sequence[RecordError] = ()) -> None:
        super().__init__(message)
        self.record_errors = record_errors


class InvalidRecord(_RecordsRefused):
    pass


class InvalidTimestamp(_RecordsRefused):
    pass


class InvalidProducerEpoch(AppendRefused):
    pass


class OutOfOrderSequence(AppendRefused):
    pass


class InvalidTransactionState(AppendRefused):
    pass


class TransactionCoordinatorFenced(AppendRefused):
    pass


class OffsetsOutOfOrder(AppendRefused):
    pass


class CleaningAborted(StorageError):
    pass


class CorruptFile(StorageError):
    pass


class DirectoryUnusable(StorageError):
    pass


class DirectoryLocked(DirectoryUnusable):
    pass


class WrongDirectory(DirectoryUnusable):
    pass
