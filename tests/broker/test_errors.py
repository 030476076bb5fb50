import pytest

from barnabas.broker.errors import error_code_of
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records import errors as records
from barnabas.storage import errors as storage


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (records.CorruptRecords(), ErrorCode.CORRUPT_MESSAGE),
        (records.InvalidRecords(), ErrorCode.INVALID_RECORD),
        (records.NotOneBatch(), ErrorCode.INVALID_RECORD),
        (records.UnsupportedMagic(), ErrorCode.INVALID_RECORD),
        (records.UnsupportedCompression(), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (OSError(), ErrorCode.KAFKA_STORAGE_ERROR),
        (storage.LogFailure(), ErrorCode.KAFKA_STORAGE_ERROR),
        (storage.OffsetOutOfRange(), ErrorCode.OFFSET_OUT_OF_RANGE),
        (storage.RecordTooLarge(), ErrorCode.MESSAGE_TOO_LARGE),
        (storage.RecordBatchTooLarge(), ErrorCode.RECORD_LIST_TOO_LARGE),
        (storage.InvalidRecord("no key"), ErrorCode.INVALID_RECORD),
        (storage.InvalidTimestamp("too late"), ErrorCode.INVALID_TIMESTAMP),
        (storage.InvalidProducerEpoch(), ErrorCode.INVALID_PRODUCER_EPOCH),
        (storage.OutOfOrderSequence(), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (storage.InvalidTransactionState(), ErrorCode.INVALID_TXN_STATE),
        (storage.TransactionCoordinatorFenced(), ErrorCode.TRANSACTION_COORDINATOR_FENCED),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value.name,
)
def test_what_is_raised_has_a_code(error, code):
    assert error_code_of(error) == code


def test_a_kind_without_a_code_has_that_of_what_it_is_a_kind_of():
    class Torn(records.CorruptRecords):
        pass

    assert error_code_of(Torn()) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("error", [ValueError(), storage.StorageError(), records.RecordsError()])
def test_an_unexpected_exception_is_an_unknown_error(error):
    assert error_code_of(error) == ErrorCode.UNKNOWN_SERVER_ERROR
