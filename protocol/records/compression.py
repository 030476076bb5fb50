"""The codecs of record batches.

Decompression is bounded: the output grows with what really comes out, and never beyond `max_bytes`, whatever a length
in the data says.
"""

import struct
from enum import IntEnum
from typing import Final

import cramjam

from protocol.records.errors import CorruptRecords, UnsupportedCompression

MAX_DECOMPRESSED_BYTES: Final = 1 << 28


class CompressionType(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


# Snappy as Java clients write it: this magic, two version numbers, then blocks, each a length and a raw snappy block.
# Clients on top of C libraries send one raw snappy block instead.
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_SIZE: Final = 32 * 1024
_BLOCK_LENGTH: Final = struct.Struct(">I")

# An lz4 frame whose blocks hold up to 64 KiB and stand alone (Java's reader takes no others), without checksums; the
# third byte of the descriptor is its own checksum.
_LZ4_FRAME_HEADER: Final = b"\x04\x22\x4d\x18\x60\x40\x82"
_LZ4_FRAME_END: Final = bytes(4)
_LZ4_BLOCK_SIZE: Final = 64 * 1024
_LZ4_STORED: Final = 0x80000000
_LZ4_BLOCK_LENGTH: Final = struct.Struct("<I")

_STREAMS: Final = {
    CompressionType.GZIP: cramjam.gzip.decompress_into,
    CompressionType.LZ4: cramjam.lz4.decompress_into,
    CompressionType.ZSTD: cramjam.zstd.decompress_into,
}
# What cramjam says when the output does not fit, as opposed to when the input is broken.
_OUTPUT_TOO_SMALL: Final = "failed to write whole buffer"


def compression_type(number: int) -> CompressionType:
    try:
        return CompressionType(number)
    except ValueError:
        raise UnsupportedCompression(f"compression type {number}") from None


def decompress(number: int, data: memoryview, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> bytes:
    kind = compression_type(number)
    if kind is CompressionType.NONE:
        return bytes(data)
    if kind is CompressionType.SNAPPY:
        return _decompress_snappy(data, max_bytes)
    return _decompress_stream(kind, data, max_bytes)


def compress(kind: CompressionType, data: bytes | bytearray) -> bytes:
    if kind is CompressionType.NONE:
        return bytes(data)
    if kind is CompressionType.SNAPPY:
        return _compress_snappy(data)
    if kind is CompressionType.LZ4:
        return _compress_lz4(data)
    return bytes(cramjam.gzip.compress(data) if kind is CompressionType.GZIP else cramjam.zstd.compress(data))


def _decompress_stream(kind: CompressionType, data: memoryview, max_bytes: int) -> bytes:
    decompress_into = _STREAMS[kind]
    room = min(max(4 * len(data), 1024), max_bytes)
    while True:
        out = bytearray(room)
        try:
            size = decompress_into(data, out)
        except (cramjam.DecompressionError, OSError) as error:
            if _OUTPUT_TOO_SMALL not in str(error):
                raise CorruptRecords(f"{kind.name.lower()}: {error}") from None
            if room == max_bytes:
                raise CorruptRecords(f"{kind.name.lower()}: more than {max_bytes} bytes come out") from None
            room = min(4 * room, max_bytes)
        else:
            return bytes(memoryview(out)[:size])


def _decompress_snappy(data: memoryview, max_bytes: int) -> bytes:
    if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _decompress_snappy_block(data, max_bytes)
    blocks = []
    room = max_bytes
    position = len(_XERIAL_HEADER)
    while position < len(data):
        if len(data) - position < _BLOCK_LENGTH.size:
            raise CorruptRecords("snappy: a block's length is cut short")
        (length,) = _BLOCK_LENGTH.unpack_from(data, position)
        position += _BLOCK_LENGTH.size
        if length > len(data) - position:
            raise CorruptRecords(f"snappy: a block of {length} bytes where {len(data) - position} follow")
        blocks.append(_decompress_snappy_block(data[position : position + length], room))
        room -= len(blocks[-1])
        position += length
    return b"".join(blocks)


def _decompress_snappy_block(block: memoryview, max_bytes: int) -> bytes:
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        # Nothing compresses below three bytes for 64 (a copy's longest form), whatever the length says.
        if size > max_bytes or size > 22 * len(block) + 64:
            raise CorruptRecords(f"snappy: {size} bytes said to come out of {len(block)}")
        return bytes(cramjam.snappy.decompress_raw(block))
    except (cramjam.DecompressionError, OSError) as error:
        raise CorruptRecords(f"snappy: {error}") from None


def _compress_snappy(data: bytes | bytearray) -> bytes:
    view = memoryview(data)
    out = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_SIZE]))
        out.append(_BLOCK_LENGTH.pack(len(block)))
        out.append(block)
    return b"".join(out)


def _compress_lz4(data: bytes | bytearray) -> bytes:
    view = memoryview(data)
    out = [_LZ4_FRAME_HEADER]
    for start in range(0, len(view), _LZ4_BLOCK_SIZE):
        plain = view[start : start + _LZ4_BLOCK_SIZE]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) < len(plain):
            out.append(_LZ4_BLOCK_LENGTH.pack(len(block)))
            out.append(block)
        else:
            out.append(_LZ4_BLOCK_LENGTH.pack(len(plain) | _LZ4_STORED))
            out.append(bytes(plain))
    out.append(_LZ4_FRAME_END)
    return b"".join(out)
