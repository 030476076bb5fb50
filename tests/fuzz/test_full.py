"""The requests that are as full as a message may be, themselves. What brokers do with them is seen by hand."""

import pytest

from barnabas.protocol.api import ApiKey, request_type
from barnabas.protocol.decoder import decode
from barnabas.protocol.encoder import encode
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.fuzz.full import FILLINGS, arrays, full


def test_arrays_are_found_at_every_depth():
    found = set(arrays(OffsetFetchRequest, 9))
    assert {("groups",), ("groups", "topics")} <= found
    assert ("groups", "topics", "partition_indexes") not in found  # numbers are no texts


@pytest.mark.slow
@pytest.mark.parametrize("filling", FILLINGS, ids=lambda filling: filling.name)
def test_a_full_request_is_within_the_limits_of_a_message(filling):
    version = request_type(ApiKey.DELETE_TOPICS).versions.highest
    message = full(ApiKey.DELETE_TOPICS, version, ("topics",), filling)
    read = decode(type(message), version, encode(message, version))
    assert len(read.topics) == len(message.topics) > 400
