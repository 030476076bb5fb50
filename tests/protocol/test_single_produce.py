"""The short forms of Produce, held equal to the generated codecs."""

from __future__ import annotations

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from barnabas.protocol.decoder import decoder
from barnabas.protocol.encoder import encode
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.frames import framed
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from barnabas.protocol.single_produce import VERSIONS, read, write_answer

versions = st.sampled_from(list(VERSIONS))
names = st.text(max_size=40)
topic_ids = st.binary(min_size=16, max_size=16)
int16s = st.integers(-(2**15), 2**15 - 1)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
# Around the lengths at which a compact length gets another byte.
sizes = st.sampled_from([0, 1, 61, 126, 127, 128, 16382, 16383, 16384])

partitions = st.builds(
    PartitionProduceData, index=int32s, records=st.none() | st.builds(bytes, sizes) | st.binary(max_size=80)
)
topics = st.builds(
    TopicProduceData, name=names, topic_id=topic_ids, partition_data=st.lists(partitions, min_size=0, max_size=2)
)
requests = st.builds(
    ProduceRequest,
    transactional_id=st.none() | st.text(max_size=3),
    acks=int16s,
    timeout_ms=int32s,
    topic_data=st.lists(topics, max_size=2),
)


def single(name: str = "t", records: bytes | None = b"records", acks: int = -1) -> ProduceRequest:
    partitions = [PartitionProduceData(index=3, records=records)]
    topic = TopicProduceData(name=name, topic_id=bytes(range(16)), partition_data=partitions)
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[topic])


def is_single(message: ProduceRequest, version: int) -> bool:
    return (
        message.transactional_id is None
        and len(message.topic_data) == 1
        and len(message.topic_data[0].partition_data) == 1
        and message.topic_data[0].partition_data[0].records is not None
        and (version >= 13 or len(message.topic_data[0].name.encode()) < 127)
    )


def assert_same(frame: bytes, pos: int, version: int) -> None:
    """What `read` understands, the decoder understands in the same way, to the last byte."""
    found = read(memoryview(frame), pos, version)
    if found is None:
        return
    message, end = decoder(ProduceRequest, version)(memoryview(frame), pos)
    assert end == len(frame)
    assert is_single(message, version)
    topic, _, acks, timeout_ms, index, records = found
    (data,) = message.topic_data
    assert topic == (data.topic_id if version >= 13 else data.name)
    assert (acks, timeout_ms) == (message.acks, message.timeout_ms)
    assert (index, bytes(records)) == (data.partition_data[0].index, bytes(data.partition_data[0].records))


@given(requests, versions)
def test_it_reads_what_the_decoder_reads(message, version):
    frame = b"head" + encode(message, version)
    assert_same(frame, 4, version)
    assert (read(memoryview(frame), 4, version) is not None) == is_single(message, version)


@given(st.data(), versions)
def test_whatever_is_damaged_is_left_to_the_decoder_or_read_alike(data, version):
    frame = bytearray(encode(single(), version))
    for _ in range(data.draw(st.integers(1, 3))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.sampled_from([0, 1, 2, 3, 127, 128, 255]))
    frame = frame[: data.draw(st.integers(0, len(frame)))] + data.draw(st.binary(max_size=2))
    try:
        assert_same(bytes(frame), 0, version)
    except ProtocolError as error:
        raise AssertionError(f"read understood {bytes(frame)!r}, in which {error}") from None


@pytest.mark.parametrize("version", list(VERSIONS))
def test_other_forms_are_left_to_the_decoder(version):
    several = single()
    several.topic_data *= 2
    of_a_transaction = single()
    of_a_transaction.transactional_id = "id"
    tagged = encode(single(), version)[:-1] + b"\1\0\1x"
    for other in (
        encode(several, version),
        encode(of_a_transaction, version),
        encode(single(records=None), version),
        encode(single(), version) + b"more",
        tagged,
        b"",
    ):
        assert read(memoryview(other), 0, version) is None
    assert read(memoryview(encode(single(), version)), 0, version) is not None


@pytest.mark.parametrize("version", list(VERSIONS))
def test_every_other_end_of_the_frame(version):
    frame = encode(single(), version)
    for tags in (b"\1\0\0", b"\0\1\0", b"\0\0\1", b"\0\0", b""):
        assert read(memoryview(frame[:-3] + tags), 0, version) is None
    # Null for records and one end too few: as long as if the null were an end.
    assert read(memoryview(encode(single(records=None), version)[:-1]), 0, version) is None


def test_counts_that_lie():
    frame = encode(single("t"), 12)
    for position, what in ((7, "topics"), (10, "partitions")):
        assert frame[position] == 2, what
        for count in (0, 1, 3):
            assert read(memoryview(frame[:position] + bytes([count]) + frame[position + 1 :]), 0, 12) is None


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 16382, 16383, 16384, 2**21 - 2])
def test_every_size_of_records_that_three_bytes_can_say(size):
    frame = encode(single(records=bytes(size)), 12)
    assert read(memoryview(frame), 0, 12) is not None
    assert_same(frame, 0, 12)


def test_records_that_are_larger_are_left_to_the_decoder():
    assert read(memoryview(encode(single(records=bytes(2**21 - 1)), 12)), 0, 12) is None


def test_a_name_that_is_not_text_or_too_long_for_a_one_byte_length():
    frame = encode(single("xy"), 12)
    assert read(memoryview(frame.replace(b"xy", b"\xff\xff")), 0, 12) is None
    assert read(memoryview(encode(single("x" * 126), 12)), 0, 12) is not None
    assert read(memoryview(encode(single("x" * 127), 12)), 0, 12) is None


@given(versions, int32s, names, int32s, int64s, int64s, int64s)
@example(9, 7, "t", 0, 0, -1, 0)
def test_it_writes_what_the_encoder_writes(version, correlation_id, name, index, base_offset, time, start):
    request = single(name)
    found = read(memoryview(encode(request, version)), 0, version)
    response = PartitionProduceResponse(
        index=index, base_offset=base_offset, log_append_time_ms=time, log_start_offset=start
    )
    topic = TopicProduceResponse(name=name, topic_id=bytes(range(16)), partition_responses=[response])
    body = struct.pack(">ix", correlation_id) + encode(ProduceResponse(responses=[topic]), version)
    if found is not None:
        written = write_answer(correlation_id, found[1], index, base_offset, time, start)
        assert bytes(written) == framed(body)
    else:
        assert len(name.encode()) > 126
