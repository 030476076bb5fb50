import pytest

from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.varint import read_uvarint, uvarint

EXAMPLES = [
    (0, "00"),
    (1, "01"),
    (127, "7f"),
    (128, "8001"),
    (300, "ac02"),
    (16383, "ff7f"),
    (16384, "808001"),
    (2**31 - 1, "ffffffff07"),
    (2**32 - 1, "ffffffff0f"),
]


@pytest.mark.parametrize(("value", "encoded"), EXAMPLES)
def test_writes_seven_bits_a_byte_lowest_first(value: int, encoded: str) -> None:
    assert uvarint(value).hex() == encoded


@pytest.mark.parametrize(("value", "encoded"), EXAMPLES)
@pytest.mark.parametrize("buffer", [bytes, bytearray, memoryview])
def test_reads_what_was_written_and_where_it_ends(value: int, encoded: str, buffer: type) -> None:
    data = b"??" + bytes.fromhex(encoded) + b"!"
    assert read_uvarint(buffer(data), 2) == (value, len(data) - 1)


def test_reads_a_value_that_is_padded() -> None:
    """No client writes this, but Kafka reads it, and it is harmless."""
    assert read_uvarint(b"\x85\x80\x00", 0) == (5, 3)


@pytest.mark.parametrize("encoded", ["808080808001", "ffffffffffff", "ffffffff1f", "ffffffff7f"])
def test_refuses_more_than_five_bytes_or_32_bits(encoded: str) -> None:
    with pytest.raises(ProtocolError, match="variable-length integer"):
        read_uvarint(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("encoded", ["", "80", "ffff", "80808080"])
def test_runs_off_the_end(encoded: str) -> None:
    """A decoder turns this into its own error, which knows what was being read."""
    with pytest.raises(IndexError):
        read_uvarint(bytes.fromhex(encoded), 0)
