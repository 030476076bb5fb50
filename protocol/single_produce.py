"""A Produce of one batch to one partition, and the answer that all is well: what most small requests are.

The generated codecs make an object for every part of a message, which for a small request costs more than all else that
is done with it. Here its few fields are read and written as they lie on the wire, for the flexible versions (9 to 13).
Whatever is not exactly of this form, malformed requests among them, is left to the generated codecs, and
tests/protocol/test_single_produce.py holds the two equal.
"""

from __future__ import annotations

import struct
from typing import Final

from protocol.schema import Versions

VERSIONS: Final = Versions(9, 13)
_BY_ID_FROM_VERSION: Final = 13

# In flexible versions a length or count is one more than what it says, and 0 is null.
_NULL: Final = 0
_NONE_OF_THEM: Final = 1
_ONE_OF_THEM: Final = 2
# One byte says a length below this.
_LONG: Final = 128

# Transactional id, acks, timeout, count of topics; then the length of the topic's name, or its id.
_HEAD_WITH_NAME: Final = struct.Struct(">BhiBB")
_HEAD_WITH_ID: Final = struct.Struct(">BhiB16s")
# Count of partitions, index, and the first byte of the records' length.
_PARTITION: Final = struct.Struct(">BiB")
# No tagged fields of the partition, of the topic, and of the request.
_TAIL: Final = struct.Struct(">BBB")

# Size, correlation id, no tagged fields of the header, count of topics.
_ANSWER_HEAD: Final = struct.Struct(">iixB")
# Count of partitions, index, error code, base offset, log append time, log start offset, count of record errors, error
# message, no tagged fields of the partition and of the topic, throttle time, no tagged fields of the answer.
_ANSWER_REST: Final = struct.Struct(">BihqqqBBxxix")
_ANSWER_SIZE: Final = _ANSWER_HEAD.size + _ANSWER_REST.size - 4

# Looked up once: a lookup costs as much as a call.
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


# The topic's name or id, the same as its bytes in an answer, acks, the partition's index, and the records.
SingleProduce = tuple[str | bytes, bytes, int, int, memoryview]


def read(frame: memoryview, pos: int, version: int) -> SingleProduce | None:
    """The request at `pos`, which ends with the frame; None if it is of any other form."""
    topic: str | bytes
    try:
        if version >= _BY_ID_FROM_VERSION:
            transactional_id, acks, _, topics, field = _unpack_head_with_id(frame, pos)
            pos += _HEAD_WITH_ID_SIZE
            topic = field
        else:
            transactional_id, acks, _, topics, length = _unpack_head_with_name(frame, pos)
            if not _NONE_OF_THEM <= length < _LONG:
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
        or topics != _ONE_OF_THEM
        or partitions != _ONE_OF_THEM
        or size == _NULL
        or tags
        or topic_tags
        or request_tags
        or len(frame) != end + _TAIL_SIZE
    ):
        return None
    return topic, field, acks, index, frame[pos:end]


def write_answer(
    correlation_id: int, topic: bytes, index: int, base_offset: int, log_append_time_ms: int, log_start_offset: int
) -> bytearray:
    """The answer as a whole frame; `topic` is as `read` gave it."""
    out = bytearray(_pack_answer_head(_ANSWER_SIZE + len(topic), correlation_id, _ONE_OF_THEM))
    out += topic
    out += _pack_answer_rest(
        _ONE_OF_THEM, index, 0, base_offset, log_append_time_ms, log_start_offset, _NONE_OF_THEM, _NULL, 0
    )
    return out
