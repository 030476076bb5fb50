"""The codecs of record batches.

Decompression is bounded: the output grows with the actual data and never beyond `max_bytes`, whatever a length in the
data claims. It releases the GIL, so other threads keep running.
"""

import mmap
import struct
from enum import IntEnum
from typing import Final

import cramjam

from barnabas.protocol.records.errors import CorruptRecords, UnsupportedCompression

MAX_DECOMPRESSED_BYTES: Final = 1 << 28
_SMALLEST_ROOM: Final = 1024
_SMALL_BUFFER: Final = 1 << 20


class CompressionType(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


# Java clients write snappy as this magic, two version numbers, then blocks, each a length and a raw snappy block.
# Clients based on C libraries send one raw snappy block instead.
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_SIZE: Final = 32 * 1024
_BLOCK_LENGTH: Final = struct.Struct(">I")

# An lz4 frame with independent blocks of up to 64 KiB (Java's reader accepts no others) and without checksums. The
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
# cramjam's message when the output does not fit, as opposed to broken input.
_OUTPUT_TOO_SMALL: Final = "failed to write whole buffer"


def compression_type(number: int) -> CompressionType:
    try:
        return CompressionType(number)
    except ValueError:
        raise UnsupportedCompression(f"compression type {number}") from None


def decompress(number: int, data: memoryview, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> bytes:
    """The whole decompressed data. Raises CorruptRecords if it is larger than `max_bytes`."""
    kind = compression_type(number)
    if kind is CompressionType.NONE:
        return bytes(data)
    room = min(max(4 * len(data), _SMALLEST_ROOM), max_bytes)
    while True:
        plain, is_all = decompress_prefix(number, data, room)
        if is_all:
            return bytes(plain)
        if room == max_bytes:
            raise CorruptRecords(f"{kind.name.lower()}: more than {max_bytes} bytes when decompressed")
        room = min(4 * room, max_bytes)


def decompress_prefix(number: int, data: memoryview, room: int) -> tuple[memoryview, bool]:
    """The first decompressed bytes, as many as fit, and whether that is everything.

    A snappy block is indivisible: one that does not fit is left out.
    """
    kind = compression_type(number)
    if kind is CompressionType.SNAPPY:
        return _decompress_snappy(data, room)
    out = _new_buffer(room)
    try:
        return out[: _STREAMS[kind](data, out)], True
    except (cramjam.DecompressionError, OSError) as error:
        if _OUTPUT_TOO_SMALL not in str(error):
            raise CorruptRecords(f"{kind.name.lower()}: {error}") from None
        return out, False


def _new_buffer(size: int) -> memoryview:
    """Memory to write to. Python would zero it while all threads wait; the kernel does so page by page."""
    return memoryview(bytearray(size) if size <= _SMALL_BUFFER else mmap.mmap(-1, size))


def compress(kind: CompressionType, data: bytes | bytearray | memoryview, level: int | None = None) -> bytes:
    """`level` applies to gzip and zstd; None is the codec's default."""
    if kind is CompressionType.NONE:
        return bytes(data)
    if kind is CompressionType.SNAPPY:
        return _compress_snappy(data)
    if kind is CompressionType.LZ4:
        return _compress_lz4(data)
    codec = cramjam.gzip if kind is CompressionType.GZIP else cramjam.zstd
    return bytes(codec.compress(data, level=level))


def _decompress_snappy(data: memoryview, room: int) -> tuple[memoryview, bool]:
    if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        block = _decompress_snappy_block(data, room)
        return (memoryview(b""), False) if block is None else (memoryview(block), True)
    blocks = bytearray()
    position = len(_XERIAL_HEADER)
    while position < len(data):
        if len(data) - position < _BLOCK_LENGTH.size:
            raise CorruptRecords("snappy: a block's length is cut short")
        (length,) = _BLOCK_LENGTH.unpack_from(data, position)
        position += _BLOCK_LENGTH.size
        if length > len(data) - position:
            raise CorruptRecords(f"snappy: a block of {length} bytes where {len(data) - position} follow")
        block = _decompress_snappy_block(data[position : position + length], room - len(blocks))
        if block is None:
            return memoryview(blocks), False
        blocks += block
        position += length
    return memoryview(blocks), True


def _decompress_snappy_block(block: memoryview, room: int) -> bytes | None:
    """Returns None if there is not enough room."""
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        # Snappy's best ratio is 64 bytes from three (the longest copy), whatever the length claims.
        if size > 22 * len(block) + 64:
            raise CorruptRecords(f"snappy: {len(block)} bytes claim to decompress to {size}")
        return bytes(cramjam.snappy.decompress_raw(block)) if size <= room else None
    except (cramjam.DecompressionError, OSError) as error:
        raise CorruptRecords(f"snappy: {error}") from None


def _compress_snappy(data: bytes | bytearray | memoryview) -> bytes:
    view = memoryview(data)
    out = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_SIZE]))
        out.append(_BLOCK_LENGTH.pack(len(block)))
        out.append(block)
    return b"".join(out)


def _compress_lz4(data: bytes | bytearray | memoryview) -> bytes:
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
