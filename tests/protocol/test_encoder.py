from __future__ import annotations

import struct
from dataclasses import dataclass

import pytest

from barnabas.protocol.codegen import ELEMENTS_PER_PIECE
from barnabas.protocol.decoder import decode
from barnabas.protocol.encoder import Splices, encode, encoder, encoder_in_pieces
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.schema import (
    Bool,
    Bytes,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Records,
    String,
    Struct,
    Uuid,
    field,
)
from tests.protocol.values import messages
from tests.support.sample_messages import sample


class Parcel(Message, versions="0-2", flexible="2+"):
    fragile: Bool = field("0+")
    weight: Int16 = field("1+", default=-1)
    address: String = field("0+")
    sender: String | None = field("0+", nullable="1+", default=None)
    stamps: list[Int32] = field("0+", default=())
    items: list[Item] | None = field("0+", nullable="1+", default=())
    label: Bytes | None = field("1+", nullable="1+", default=None)


class Item(Struct):
    name: String = field("0+")
    id: Uuid = field("1+", default=bytes(16))


class Route(Message, versions="0", flexible="0+"):
    stops: list[Stop] = field("0+", tag=1, default=())
    hint: String | None = field("0+", nullable="0+", tag=0, default=None)
    distance: Int64 = field("0+", tag=2, default=-1)
    end: Stop | None = field("0+", nullable="0+", default=None)
    start: Stop | None = field("0+", tag=3, default=None)


class Stop(Struct):
    minute: Int8 = field("0+")


class Shelf(Message, versions="0-1", flexible="1+"):
    rows: list[Row] = field("0+")
    end: Int8 = field("0+", default=9)


class Row(Struct):
    records: Records | None = field("0+", nullable="0+")


@dataclass
class FileSlice:
    """Stands for records in a file: a splice needs a size and nothing more."""

    size: int


PARCEL = Parcel(
    fragile=True,
    weight=500,
    address="tea",
    sender="me",
    stamps=[1, -1],
    items=[Item(name="pot", id=bytes(range(16)))],
    label=b"\x0a",
)


class TestVersions:
    def test_a_plain_version(self) -> None:
        assert encode(PARCEL, 1) == (
            b"\x01\x01\xf4"
            b"\x00\x03tea"
            b"\x00\x02me"
            b"\x00\x00\x00\x02\x00\x00\x00\x01\xff\xff\xff\xff"
            b"\x00\x00\x00\x01\x00\x03pot" + bytes(range(16)) + b"\x00\x00\x00\x01\x0a"
        )

    def test_a_flexible_version(self) -> None:
        assert (
            encode(PARCEL, 2)
            == (
                b"\x01\x01\xf4"
                b"\x04tea"
                b"\x03me"
                b"\x03\x00\x00\x00\x01\xff\xff\xff\xff"
                b"\x02\x04pot" + bytes(range(16)) + b"\x00"  # an item ends with its tags
                b"\x02\x0a"
                b"\x00"
            )
        )

    def test_leaves_out_what_a_version_lacks(self) -> None:
        assert encode(PARCEL, 0) == (
            b"\x01\x00\x03tea\x00\x02me\x00\x00\x00\x02\x00\x00\x00\x01\xff\xff\xff\xff\x00\x00\x00\x01\x00\x03pot"
        )

    def test_plain_nulls(self) -> None:
        parcel = Parcel(fragile=False, address="", items=None)
        assert encode(parcel, 1) == b"\x00\xff\xff\x00\x00\xff\xff\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff"

    def test_compact_nulls(self) -> None:
        parcel = Parcel(fragile=False, address="", items=None)
        assert encode(parcel, 2) == b"\x00\xff\xff\x01\x00\x01\x00\x00\x00"

    def test_a_version_that_is_not_there(self) -> None:
        with pytest.raises(ProtocolError, match="Parcel has no version 3"):
            encode(PARCEL, 3)


class TestLengths:
    @pytest.mark.parametrize(("length", "prefix"), [(126, "7f"), (127, "8001"), (16382, "ff7f"), (16383, "808001")])
    def test_compact_lengths_grow_with_what_they_count(self, length: int, prefix: str) -> None:
        parcel = Parcel(fragile=False, address="", label=b"x" * length)
        assert encode(parcel, 2) == b"\x00\xff\xff\x01\x00\x01\x01" + bytes.fromhex(prefix) + b"x" * length + b"\0"
        parcel = Parcel(fragile=False, address="", stamps=[7] * length)
        stamps = bytes.fromhex(prefix) + b"\0\0\0\7" * length
        assert encode(parcel, 2) == b"\x00\xff\xff\x01\x00" + stamps + b"\x01\x00\x00"

    def test_count_bytes_of_utf_8(self) -> None:
        assert encode(Parcel(fragile=False, address="日本"), 2)[3:10] == b"\x07" + "日本".encode()

    def test_a_string_too_long_for_a_plain_version_is_refused(self) -> None:
        with pytest.raises(struct.error):
            encode(Parcel(fragile=False, address="n" * 32768), 0)


class TestTaggedFields:
    def test_are_left_out_when_they_have_their_default(self) -> None:
        assert encode(Route(), 0) == b"\xff\x00"

    def test_are_written_in_the_order_of_their_tags(self) -> None:
        route = Route(stops=[Stop(minute=5)], hint="tea", distance=7, start=Stop(minute=3))
        assert encode(route, 0) == (
            b"\xff\x04"  # no end; four tags
            b"\x00\x04\x04tea"
            b"\x01\x03\x02\x05\x00"
            b"\x02\x08\x00\x00\x00\x00\x00\x00\x00\x07"
            b"\x03\x02\x03\x00"
        )

    def test_say_their_size_in_as_many_bytes_as_it_takes(self) -> None:
        assert encode(Route(hint="n" * 200), 0) == b"\xff\x01\x00\xca\x01\xc9\x01" + b"n" * 200


class TestNullableStructs:
    def test_begin_with_a_byte(self) -> None:
        assert encode(Route(end=Stop(minute=5)), 0) == b"\x01\x05\x00\x00"
        assert encode(Route(end=None), 0) == b"\xff\x00"


class TestRecords:
    @pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
    def test_in_memory_are_copied(self, kind: type) -> None:
        shelf = Shelf(rows=[Row(records=kind(b"abc")), Row(records=None)])
        assert encode(shelf, 0) == b"\x00\x00\x00\x02\x00\x00\x00\x03abc\xff\xff\xff\xff\x09"
        assert encode(shelf, 1) == b"\x03\x04abc\x00\x00\x00\x09\x00"

    @pytest.mark.parametrize(("version", "length"), [(0, b"\0\0\x01\x2c"), (1, b"\xad\x02")])
    def test_in_a_file_are_left_out_and_their_place_is_noted(self, version: int, length: bytes) -> None:
        """The server sends what was encoded up to that place, then the file's slice, then the rest."""
        in_file = FileSlice(300)
        shelf = Shelf(rows=[Row(records=in_file), Row(records=b"abc")])
        out, splices = bytearray(b"frame"), Splices()
        encoder(Shelf, version)(shelf, out, splices)
        [(place, splice)] = splices
        assert splice is in_file
        assert out[:place].endswith(length)
        whole = out[5:place] + bytes(300) + out[place:]
        assert decode(Shelf, version, whole) == Shelf(rows=[Row(records=bytes(300)), Row(records=b"abc")])

    def test_an_empty_slice_of_a_file_has_no_place(self) -> None:
        splices = Splices()
        encoder(Shelf, 1)(Shelf(rows=[Row(records=FileSlice(0))]), bytearray(), splices)
        assert splices == []

    def test_in_a_file_cannot_become_bytes(self) -> None:
        with pytest.raises(TypeError, match="Shelf holds records that are in a file"):
            encode(Shelf(rows=[Row(records=FileSlice(3))]), 0)


class TestEncoder:
    def test_appends_to_what_is_there(self) -> None:
        out = bytearray(b"header")
        encoder(Route, 0)(Route(), out, [])
        assert out == b"header\xff\x00"

    def test_is_generated_once(self) -> None:
        assert encoder(Route, 0) is encoder(Route, 0)


class Complaint(Message, versions="0-1", flexible="1+"):
    name: String = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)


@pytest.mark.parametrize("version", [0, 1])
def test_a_long_error_message_is_cut_and_no_other_text(version):
    for message, expected in ((None, None), ("short", "short"), ("\u20ac" * 40_000, "\u20ac" * 997 + "...")):
        complaint = Complaint(name="x" * 5000, error_message=message)
        decoded = decode(Complaint, version, encode(complaint, version))
        assert (decoded.name, decoded.error_message) == ("x" * 5000, expected)


# --- in pieces ---


@pytest.mark.parametrize("message", list(messages()))
def test_in_pieces_every_message_is_the_same(message):
    for version in message.versions:
        value, out = sample(message, version), bytearray()
        assert list(encoder_in_pieces(message, version)(value, out, [], [])) == [], f"version {version}"
        assert out == encode(value, version), f"version {version}"


def test_many_elements_take_several_pieces():
    rows = [Row(records=b"abc") for _ in range(2 * ELEMENTS_PER_PIECE + 1)]
    out = bytearray()
    assert list(encoder_in_pieces(Shelf, 0)(Shelf(rows=rows), out, [], [])) == [None, None]
    assert out == encode(Shelf(rows=rows), 0)


def test_long_strings_take_several_pieces():
    message = ListGroupsRequest(states_filter=["s" * 32767] * 100)  # each counts as 32 elements
    out = bytearray()
    assert list(encoder_in_pieces(ListGroupsRequest, 4)(message, out, [], [])) == [None] * 3
    assert out == encode(message, 4)


def test_long_arrays_are_told():
    rows = [Row(records=b"abc") for _ in range(101)]
    long = []
    list(encoder_in_pieces(Shelf, 0)(Shelf(rows=rows), bytearray(), [], long))
    assert [array is rows for array in long] == [True]
    list(encoder_in_pieces(Shelf, 0)(Shelf(rows=rows[:100]), bytearray(), [], long))
    assert len(long) == 1
