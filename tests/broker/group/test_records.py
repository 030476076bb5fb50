"""The records of __consumer_offsets, as bytes."""

import pytest

from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.group.records import CommittedOffset, offset_record, read_offset, read_record
from barnabas.protocol.errors import ProtocolError

TOPIC_ID = bytes(range(16))


def test_an_offset_is_a_key_of_version_1_and_a_value_of_version_4():
    committed = CommittedOffset(42, 3, "meta", 1000, topic_id=TOPIC_ID)
    record = offset_record("g", "t", 7, committed)
    assert record.key == b"\0\1" + b"\0\1g" + b"\0\1t" + b"\0\0\0\7"
    fields = (42).to_bytes(8, "big") + b"\0\0\0\3" + b"\5meta" + (1000).to_bytes(8, "big")
    assert record.value == b"\0\4" + fields + b"\1\0\x10" + TOPIC_ID
    assert read_offset(record.value) == committed


def test_an_offset_as_older_brokers_wrote_it_is_read_too():
    value = b"\0\3" + (42).to_bytes(8, "big") + b"\0\0\0\3" + b"\0\4meta" + (1000).to_bytes(8, "big")
    assert read_offset(value) == CommittedOffset(42, 3, "meta", 1000)


def test_an_offset_with_an_expiry_of_its_own_is_a_value_of_version_1():
    record = offset_record("g", "t", 7, CommittedOffset(42, -1, "", 1000, 2000))
    assert record.value[:2] == b"\0\1"
    assert read_offset(record.value).expire_timestamp == 2000


def test_without_an_offset_it_is_a_tombstone():
    assert offset_record("g", "t", 7, None).value is None


def test_a_record_of_a_kind_that_is_not_known_is_passed_over():
    assert read_record(CoordinatorRecord(b"\0\x63whatever", b"x")) is None


@pytest.mark.parametrize("value", [b"", b"\0", b"\0\x63", b"\0\3short"])
def test_a_value_that_is_not_one_is_a_protocol_error(value):
    with pytest.raises(ProtocolError):
        read_offset(value)
