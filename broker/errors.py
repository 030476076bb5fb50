"""The one place that maps exceptions of other layers to Kafka's error codes."""

from __future__ import annotations

from typing import Final

from barnabas.broker.replica.errors import NotLeader
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records import errors as records
from barnabas.storage import errors as storage

_CODES: Final[dict[type[Exception], ErrorCode]] = {
    records.CorruptRecords: ErrorCode.CORRUPT_MESSAGE,
    records.InvalidRecords: ErrorCode.INVALID_RECORD,
    records.UnsupportedMagic: ErrorCode.INVALID_RECORD,
    records.UnsupportedCompression: ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    NotLeader: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    OSError: ErrorCode.KAFKA_STORAGE_ERROR,
    storage.LogFailure: ErrorCode.KAFKA_STORAGE_ERROR,
    storage.OffsetOutOfRange: ErrorCode.OFFSET_OUT_OF_RANGE,
    storage.RecordTooLarge: ErrorCode.MESSAGE_TOO_LARGE,
    storage.RecordBatchTooLarge: ErrorCode.RECORD_LIST_TOO_LARGE,
    storage.InvalidRecord: ErrorCode.INVALID_RECORD,
    storage.InvalidTimestamp: ErrorCode.INVALID_TIMESTAMP,
    storage.InvalidProducerEpoch: ErrorCode.INVALID_PRODUCER_EPOCH,
    storage.OutOfOrderSequence: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    storage.InvalidTransactionState: ErrorCode.INVALID_TXN_STATE,
    storage.TransactionCoordinatorFenced: ErrorCode.TRANSACTION_COORDINATOR_FENCED,
}


def error_code_of(error: Exception) -> ErrorCode:
    for kind in type(error).__mro__:
        code = _CODES.get(kind)
        if code is not None:
            return code
    return ErrorCode.UNKNOWN_SERVER_ERROR
