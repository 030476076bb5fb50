"""Unsigned variable-length integers, as flexible versions write lengths, counts and tags."""

from barnabas.protocol.errors import ProtocolError

Buffer = memoryview | bytes | bytearray


def read_uvarint(buf: Buffer, pos: int) -> tuple[int, int]:
    """Return the value at `pos` and the position after it. It has at most 32 bits, so at most five bytes."""
    first = buf[pos]
    if first < 0x80:
        return first, pos + 1
    second = buf[pos + 1]
    if second < 0x80:
        return first & 0x7F | second << 7, pos + 2
    value = shift = 0
    while True:
        byte = buf[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise ProtocolError(f"a variable-length integer is longer than five bytes at byte {pos}")
    if value > 0xFFFFFFFF:
        raise ProtocolError(f"a variable-length integer is over 32 bits at byte {pos}")
    return value, pos


def uvarint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
