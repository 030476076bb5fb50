"""A fast path for the most common small request: a Produce of one batch to one partition, and its success response.

The generated codecs create an object for every part of a message. For a small request that costs more than everything
else. Here the few fields are read and written directly, for the flexible versions (9 to 13). Any other form, including
malformed requests, is left to the generated codecs. tests/protocol/test_single_produce.py checks that both agree.
"""

from __future__ import annotations

import struct
from typing import Final

from barnabas.protocol.schema import Versions

VERSIONS: Final = Versions(9, 13)
_BY_ID_FROM_VERSION: Final = 13

# Flexible versions encode a length or count plus one; 0 is null.
_NULL: Final = 0
_EMPTY_ARRAY: Final = 1
_ARRAY_OF_ONE: Final = 2
# A length below this takes one byte.
_LONG: Final = 128

# Transactional id, acks, timeout, topic count; then the length of the topic's name, or its id.
_HEAD_WITH_NAME: Final = struct.Struct(">BhiBB")
_HEAD_WITH_ID: Final = struct.Struct(">BhiB16s")
# Partition count, index, and the first byte of the records' length.
_PARTITION: Final = struct.Struct(">BiB")
# No tagged fields in the partition, the topic and the request.
_TAIL: Final = struct.Struct(">BBB")

# Size, correlation id, no tagged fields in the header, topic count.
_ANSWER_HEAD: Final = struct.Struct(">iixB")
# Partition count, index, error code, base offset, log append time, log start offset, record error count, error message,
# no tagged fields in the partition and the topic, throttle time, no tagged fields in the response.
_ANSWER_REST: Final = struct.Struct(">BihqqqBBxxix")
_ANSWER_SIZE: Final = _ANSWER_HEAD.size + _ANSWER_REST.size - 4

# Looked up once: an attribute lookup costs as much as a call.
_HEAD_WITH_NAME_SIZE: Final = _HEAD_WITH_NAME.size
_HEAD_WITH_ID_SIZE: Final = _HEAD_WITH_ID.size
_PARTITION_SIZE: Final = _PARTITION.size
_TAIL_SIZE: Final = _TAIL.size
_unpack_head_with_name: Final = _HEAD_WITH_NAME.unpack_from
_unpack_head_with_id: Final = _HEAD_WITH_ID.unpack_from
_unpack_partition: Final = _PARTITION.unpack_from
_unpack_tail: Final = _TAIL.unpack_from
_pack_answer_head: Final = _ANSWER_HEAD.pack
_pack_answer_rest: Final = _ANSWER_REST.pack


# The topic's name or id, the same as encoded in a response, acks, the timeout, the partition's index, and the records.
SingleProduce = tuple[str | bytes, bytes, int, int, int, memoryview]


def read(frame: memoryview, pos: int, version: int) -> SingleProduce | None:
    """The request at `pos`, which ends with the frame. None if it has any other form."""
    topic: str | bytes
    try:
        if version >= _BY_ID_FROM_VERSION:
            transactional_id, acks, timeout_ms, topics, field = _unpack_head_with_id(frame, pos)
            pos += _HEAD_WITH_ID_SIZE
            topic = field
        else:
            transactional_id, acks, timeout_ms, topics, length = _unpack_head_with_name(frame, pos)
            if not _EMPTY_ARRAY <= length < _LONG:
                return None
            pos += _HEAD_WITH_NAME_SIZE
            field = bytes(frame[pos - 1 : pos - 1 + length])
            topic = field[1:].decode()
            pos += length - 1
        partitions, index, size = _unpack_partition(frame, pos)
        pos += _PARTITION_SIZE
        if size >= _LONG:
            second = frame[pos]
            size += (second - 1) << 7
            pos += 1
            if second >= _LONG:
                third = frame[pos]
                size += (third - 1) << 14
                pos += 1
                if third >= _LONG:
                    return None
        end = pos + size - 1
        tags, topic_tags, request_tags = _unpack_tail(frame, end)
    except (struct.error, IndexError, UnicodeDecodeError):
        return None
    if (
        transactional_id != _NULL
        or topics != _ARRAY_OF_ONE
        or partitions != _ARRAY_OF_ONE
        or size == _NULL
        or tags
        or topic_tags
        or request_tags
        or len(frame) != end + _TAIL_SIZE
    ):
        return None
    return topic, field, acks, timeout_ms, index, frame[pos:end]


def write_answer(
    correlation_id: int, topic: bytes, index: int, base_offset: int, log_append_time_ms: int, log_start_offset: int
) -> bytearray:
    """The response as a complete frame. `topic` is what `read` returned."""
    out = bytearray(_pack_answer_head(_ANSWER_SIZE + len(topic), correlation_id, _ARRAY_OF_ONE))
    out += topic
    out += _pack_answer_rest(
        _ARRAY_OF_ONE, index, 0, base_offset, log_append_time_ms, log_start_offset, _EMPTY_ARRAY, _NULL, 0
    )
    return out
