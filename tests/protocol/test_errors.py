import pytest

from barnabas.protocol.errors import ErrorCode, ProtocolError


def test_an_error_code_is_the_number_on_the_wire() -> None:
    assert ErrorCode.NONE == 0
    assert ErrorCode.UNKNOWN_SERVER_ERROR == -1
    assert ErrorCode(3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_every_number_from_first_to_last_has_a_name() -> None:
    assert sorted(ErrorCode) == list(range(-1, 134))


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    ],
)
def test_what_may_pass_is_retriable(code: ErrorCode) -> None:
    assert code.retriable


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.TRANSACTION_ABORTABLE,
    ],
)
def test_what_stays_wrong_is_not(code: ErrorCode) -> None:
    assert not code.retriable


def test_a_protocol_error_is_a_value_error() -> None:
    assert issubclass(ProtocolError, ValueError)
