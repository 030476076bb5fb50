from barnabas.client.errors import BrokerError, name_of
from barnabas.protocol.errors import ErrorCode


def test_an_error_has_kafkas_name_and_a_sentence_if_there_is_one():
    assert str(BrokerError(ErrorCode.INVALID_CONFIG, "topic 't'", "No such thing.")) == (
        "topic 't': No such thing (INVALID_CONFIG)"
    )
    assert str(BrokerError(ErrorCode.NON_EMPTY_GROUP, "group 'g'")) == (
        "group 'g': the group still has members (NON_EMPTY_GROUP)"
    )
    assert str(BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "x")) == "x: CLUSTER_AUTHORIZATION_FAILED"


def test_an_unknown_code_is_shown_as_a_number():
    assert name_of(999) == "error 999"
    assert not BrokerError(999, "x").retriable
