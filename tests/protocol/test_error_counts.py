"""The errors in an answer, wherever a message has room for them."""

import pytest

from barnabas.protocol.api import ApiKey, response_type
from barnabas.protocol.codegen import ELEMENTS_PER_PIECE
from barnabas.protocol.error_counts import error_counter_in_pieces, error_counts, error_name
from barnabas.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from barnabas.protocol.messages.heartbeat import HeartbeatResponse
from barnabas.protocol.schema import StructType, wire_types


def partition(number, code):
    return PartitionData(partition_index=number, error_code=code, high_watermark=0, records=None)


def test_errors_of_a_whole_answer_and_of_its_parts():
    partitions = [partition(n, code) for n, code in enumerate((0, 3, 6, 3))]
    answer = FetchResponse(error_code=71, responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
    assert list(error_counts(answer).items()) == [(71, 1), (3, 2), (6, 1)]
    assert error_counts(HeartbeatResponse()) == {}


def test_a_long_answer_in_pieces():
    partitions = [partition(n, n % 2) for n in range(3 * ELEMENTS_PER_PIECE)]
    answer = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
    found = {}
    assert len(list(error_counter_in_pieces(FetchResponse)(answer, found))) == 3
    assert found == error_counts(answer) == {1: 3 * ELEMENTS_PER_PIECE // 2}


@pytest.mark.parametrize("key", list(ApiKey), ids=lambda key: key.api_name)
def test_every_error_code_of_every_answer_is_found(key):
    try:
        declared = response_type(key)
    except KeyError:
        pytest.skip("not declared")
    answer, count = full_of_errors(declared)
    assert error_counts(answer) == ({7: count} if count else {})


def full_of_errors(struct):
    """An answer in which each list has two entries and each error code is 7, and how many of these there are."""
    count, values = 0, {}
    for name, wire_type in wire_types(struct).items():
        inner = wire_type[0] if isinstance(wire_type, list) else wire_type
        if isinstance(inner, StructType):
            value, errors = full_of_errors(inner)
            values[name] = [value, value] if inner is not wire_type else value
            count += errors * (2 if inner is not wire_type else 1)
        elif name in ("error_code", "partition_error_code"):
            values[name] = 7
            count += 1
    made = object.__new__(struct)
    for name in struct.fields:
        setattr(made, name, values.get(name))
    return made, count


def test_a_code_that_nobody_knows():
    assert (error_name(3), error_name(-2)) == ("UNKNOWN_TOPIC_OR_PARTITION", "-2")
