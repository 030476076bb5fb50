from __future__ import annotations

import tracemalloc
from contextlib import suppress

import pytest

from barnabas.protocol.codegen import ELEMENTS_PER_PIECE
from barnabas.protocol.decoder import MOST_BYTES, MOST_ELEMENTS, decode, decoder, decoder_in_pieces
from barnabas.protocol.encoder import encode
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.messages.api_versions import ApiVersionsResponse
from barnabas.protocol.messages.fetch import FetchResponse
from barnabas.protocol.messages.metadata import MetadataResponse
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.schema import (
    Bool,
    Bytes,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Records,
    String,
    Struct,
    UInt16,
    UInt32,
    Uuid,
    field,
)
from tests.protocol.values import messages
from tests.support.sample_messages import sample


class Numbers(Message, versions="0-1", flexible="1+"):
    yes: Bool = field("0+")
    tiny: Int8 = field("0+")
    small: Int16 = field("0+")
    port: UInt16 = field("0+")
    middle: Int32 = field("0+")
    epoch: UInt32 = field("0+")
    large: Int64 = field("0+")
    ratio: Float64 = field("0+")
    id: Uuid = field("0+")


class Texts(Message, versions="0-1", flexible="1+"):
    name: String = field("0+")
    nick: String | None = field("0+", nullable="0+")
    blob: Bytes = field("0+")
    note: Bytes | None = field("0+", nullable="0+")
    records: Records | None = field("0+", nullable="0+")


class Lists(Message, versions="0-1", flexible="1+"):
    numbers: list[Int32] = field("0+")
    names: list[String] | None = field("0+", nullable="0+")
    points: list[Point] = field("0+")


class Point(Struct):
    x: Int16 = field("0+")
    y: Int16 = field("0+")


class Journey(Message, versions="0", flexible="0+"):
    start: Point = field("0+")
    rest: Point | None = field("0+", nullable="0+", default=None)


class Trips(Message, versions="0-1", flexible="1+"):
    """The same structs in several places."""

    best: Trip = field("0+")
    others: list[Trip] = field("0+")


class Trip(Struct):
    name: String = field("0+")
    points: list[Point] = field("0+")


class Tagged(Message, versions="0-1", flexible="0+"):
    id: Int8 = field("0+")
    hint: String = field("0+", tag=0, default="none")
    limit: Int64 = field("1+", tag=2, default=-1)
    place: Point | None = field("1+", tag=3, default=None)
    others: list[Int16] = field("0+", tag=5, default=())


class Grown(Message, versions="0-2"):
    old: Int8 = field("0-1", default=7)
    name: String = field("0+")
    extra: Int16 = field("1+", default=-1)
    labels: list[String] = field("2+", default=())
    needed: Int32 = field("2+")


def unhex(text: str) -> bytes:
    """Bytes from hexadecimal digits, with words in quotes for text: `0003 'tea'`."""
    return b"".join(part.encode() if number % 2 else bytes.fromhex(part) for number, part in enumerate(text.split("'")))


class TestValues:
    def test_numbers_are_big_endian(self) -> None:
        data = unhex(
            "01 fe 8000 ffff 80000000 ffffffff 8000000000000000 3ff8000000000000 000102030405060708090a0b0c0d0e0f"
        )
        expected = Numbers(
            yes=True,
            tiny=-2,
            small=-(2**15),
            port=65535,
            middle=-(2**31),
            epoch=2**32 - 1,
            large=-(2**63),
            ratio=1.5,
            id=bytes(range(16)),
        )
        assert decode(Numbers, 0, data) == expected
        assert decode(Numbers, 1, data + b"\0") == expected

    def test_any_byte_but_zero_is_true(self) -> None:
        assert decode(Numbers, 0, b"\x02" + bytes(45)).yes is True

    def test_plain_lengths(self) -> None:
        texts = decode(Texts, 0, unhex("0003 'tea'  0000  00000002 0a0b  00000001 0c  00000003 'abc'"))
        assert texts == Texts(name="tea", nick="", blob=b"\x0a\x0b", note=b"\x0c", records=b"abc")

    def test_compact_lengths_are_one_more(self) -> None:
        texts = decode(Texts, 1, unhex("04 'tea'  01  03 0a0b  02 0c  04 'abc'  00"))
        assert texts == Texts(name="tea", nick="", blob=b"\x0a\x0b", note=b"\x0c", records=b"abc")

    def test_plain_null_is_minus_one(self) -> None:
        texts = decode(Texts, 0, unhex("0000  ffff  00000000  ffffffff  ffffffff"))
        assert texts == Texts(name="", nick=None, blob=b"", note=None, records=None)

    def test_compact_null_is_zero(self) -> None:
        texts = decode(Texts, 1, unhex("01  00  01  00  00  00"))
        assert texts == Texts(name="", nick=None, blob=b"", note=None, records=None)

    @pytest.mark.parametrize("length", [126, 127, 128, 16382, 16383, 16384, 32767])
    def test_compact_lengths_of_several_bytes(self, length: int) -> None:
        texts = Texts(name="n" * length, nick=None, blob=bytes(3 * length), note=None, records=b"r" * length)
        assert decode(Texts, 1, encode(texts, 1)) == texts

    def test_text_is_utf_8(self) -> None:
        assert decode(Texts, 1, "\x07日本\x01\x01\x00\x00\x00".encode()).name == "日本"

    def test_plain_arrays(self) -> None:
        data = unhex("00000002 00000001 ffffffff  00000001 0003 'tea'  00000001 0005 fffa")
        assert decode(Lists, 0, data) == Lists(numbers=[1, -1], names=["tea"], points=[Point(x=5, y=-6)])

    def test_compact_arrays_whose_structs_end_with_tags(self) -> None:
        data = unhex("03 00000001 ffffffff  02 04 'tea'  02 0005 fffa 00  00")
        assert decode(Lists, 1, data) == Lists(numbers=[1, -1], names=["tea"], points=[Point(x=5, y=-6)])

    @pytest.mark.parametrize("version", [0, 1])
    @pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 126, 127, 128, 300])
    def test_arrays_of_any_length(self, count: int, version: int) -> None:
        lists = Lists(numbers=list(range(count)), names=["n"] * count, points=[Point(x=i, y=-i) for i in range(count)])
        assert decode(Lists, version, encode(lists, version)) == lists

    def test_null_arrays(self) -> None:
        assert decode(Lists, 0, unhex("00000000 ffffffff 00000000")).names is None
        assert decode(Lists, 1, unhex("01 00 01 00")).names is None

    def test_structs_in_line(self) -> None:
        journey = decode(Journey, 0, unhex("0001 0002 00  01 0003 0004 00  00"))
        assert journey == Journey(start=Point(x=1, y=2), rest=Point(x=3, y=4))

    def test_a_struct_may_be_null(self) -> None:
        assert decode(Journey, 0, unhex("0001 0002 00  ff  00")).rest is None


class TestTaggedFields:
    def test_have_their_defaults_when_left_out(self) -> None:
        assert decode(Tagged, 1, unhex("09 00")) == Tagged(id=9, hint="none", limit=-1, place=None, others=[])

    def test_are_read_when_there(self) -> None:
        data = unhex("09 04  00 04 04 'tea'  02 08 0000000000000007  03 05 0001 0002 00  05 03 02 0008")
        assert decode(Tagged, 1, data) == Tagged(id=9, hint="tea", limit=7, place=Point(x=1, y=2), others=[8])

    def test_that_are_unknown_are_skipped(self) -> None:
        data = unhex("09 03  01 02 aabb  02 08 0000000000000007  63 01 cc")
        assert decode(Tagged, 1, data) == Tagged(id=9, limit=7)

    def test_of_a_later_version_are_skipped(self) -> None:
        data = unhex("09 01  02 08 0000000000000007")
        assert decode(Tagged, 0, data) == Tagged(id=9)

    def test_may_be_many(self) -> None:
        unknown = b"".join(bytes([0x80 | tag & 0x7F, tag >> 7, 0]) for tag in range(1000, 1200))
        assert decode(Tagged, 0, b"\x09\xc8\x01" + unknown) == Tagged(id=9)
        assert decode(Journey, 0, unhex("0001 0002 c801") + unknown + unhex("ff 00")).rest is None

    def test_a_default_list_belongs_to_one_value(self) -> None:
        first, second = decode(Tagged, 1, b"\x09\0"), decode(Tagged, 1, b"\x09\0")
        first.others.append(1)
        assert second.others == []


class TestVersions:
    def test_a_field_is_read_in_its_versions_only(self) -> None:
        assert decode(Grown, 0, unhex("03 0003 'tea'")).old == 3
        assert decode(Grown, 1, unhex("03 0003 'tea' 0004")).extra == 4
        assert decode(Grown, 2, unhex("0003 'tea' 0004 00000000 00000005")).needed == 5

    def test_what_a_version_lacks_has_its_default(self) -> None:
        assert decode(Grown, 2, unhex("0003 'tea' 0004 00000000 00000005")).old == 7
        assert decode(Grown, 0, unhex("03 0003 'tea'")).extra == -1

    def test_or_the_zero_of_its_type(self) -> None:
        assert decode(Grown, 0, unhex("03 0003 'tea'")).needed == 0

    def test_a_missing_list_is_new_each_time(self) -> None:
        first, second = decode(Grown, 0, unhex("03 0000")), decode(Grown, 0, unhex("03 0000"))
        first.labels.append("mine")
        assert second.labels == []

    def test_a_version_that_is_not_there(self) -> None:
        with pytest.raises(ProtocolError, match="Grown has no version 3"):
            decode(Grown, 3, b"")


class TestDecoder:
    def test_reads_at_a_position_and_says_where_it_ended(self) -> None:
        buffer = memoryview(unhex("ffff 0001 0002 00 ff 00 eeee"))
        journey, position = decoder(Journey, 0)(buffer, 2)
        assert journey.start == Point(x=1, y=2)
        assert buffer[position:] == b"\xee\xee"

    def test_is_generated_once(self) -> None:
        assert decoder(Journey, 0) is decoder(Journey, 0)

    def test_records_are_a_view_of_the_buffer(self) -> None:
        frame = bytearray(unhex("0000 ffff 00000000 ffffffff 00000003 'abc'"))
        records = decode(Texts, 0, memoryview(frame)).records
        frame[-3:] = b"xyz"
        assert records == b"xyz"

    def test_strings_and_bytes_are_copies(self) -> None:
        frame = bytearray(unhex("0003 'tea' ffff 00000003 'abc' ffffffff ffffffff"))
        texts = decode(Texts, 0, memoryview(frame))
        frame[:] = bytes(len(frame))
        assert (texts.name, texts.blob) == ("tea", b"abc")


PRODUCE = ProduceRequest(
    transactional_id="t",
    acks=-1,
    timeout_ms=1000,
    topic_data=[
        TopicProduceData(name=name, partition_data=[PartitionProduceData(index=i, records=b"abc") for i in range(2)])
        for name in ("tea", "n" * 200)
    ],
)

# What is wrong with each, the message, its version, the bytes, and a word of the error.
MALFORMED: list[tuple[str, type[Message], int, str, str]] = [
    ("one byte too many", Journey, 0, "0001 0002 00 ff 00 00", "1 bytes too many"),
    ("a plain string is longer than what is left", Texts, 0, "0004 'tea'", "cut short"),
    ("a compact string is longer than what is left", Texts, 1, "05 'tea'", "cut short"),
    ("a plain string's length is -2", Texts, 0, "0000 fffe 00000000 ffffffff ffffffff", "length -2"),
    ("a plain string is null and must not be", Texts, 0, "ffff 0000 00000000 ffffffff ffffffff", "length -1"),
    ("a compact string is null and must not be", Texts, 1, "00 01 01 00 00 00", "length -1"),
    ("bytes are longer than what is left", Texts, 0, "0000 ffff 7fffffff 00", "cut short"),
    ("bytes have a negative length", Texts, 0, "0000 ffff 80000000 ffffffff ffffffff", "length -2147483648"),
    ("bytes are null and must not be", Texts, 1, "01 00 00 00 00 00", "length -1"),
    ("records have a negative length", Texts, 0, "0000 ffff 00000000 ffffffff fffffffe", "length -2"),
    ("records are longer than what is left", Texts, 1, "01 00 01 00 ffffffff0f", "cut short"),
    ("text is not UTF-8", Texts, 1, "03 ffff 00 01 00 00 00", "not UTF-8"),
    ("text has half of a character", Texts, 0, "0002 e697 ffff 00000000 ffffffff ffffffff", "not UTF-8"),
    ("text has half of a surrogate pair", Texts, 1, "04 eda080 00 01 00 00 00", "not UTF-8"),
    ("a length of six bytes", Texts, 1, "8080808080 01", "longer than five bytes"),
    ("a length of 35 bits", Texts, 1, "ffffffff7f", "over 32 bits"),
    ("a plain count is negative", Lists, 0, "fffffffe 00000000 00000000", "length -2"),
    ("a nullable plain count is -2", Lists, 0, "00000000 fffffffe 00000000", "length -2"),
    ("a plain array is null and must not be", Lists, 0, "ffffffff 00000000 00000000", "length -1"),
    ("a compact array is null and must not be", Lists, 1, "00 00 01 00", "length -1"),
    ("a struct's byte of presence is missing", Journey, 0, "0001 0002 00", "cut short"),
    ("a tag twice", Tagged, 1, "09 02 05 01 01 05 01 01", "tag 5 is out of order"),
    ("tags in falling order", Tagged, 1, "09 02 05 01 01 02 08 0000000000000007", "tag 2 is out of order"),
    ("an unknown tag twice", Journey, 0, "0001 0002 02 09 00 09 00 ff 00", "tag 9 after tag 9"),
    ("a tag larger than what is left", Tagged, 1, "09 01 00 7f 04 'tea'", "tag 0 is out of order or over-long"),
    ("an unknown tag larger than what is left", Journey, 0, "0001 0002 01 09 7f 00 00", "tag 9 claims 127 bytes"),
    ("a known tag with room to spare", Tagged, 1, "09 01 02 09 0000000000000007 00", "tag 2 does not fill"),
    ("a known tag too small for its value", Tagged, 1, "09 01 02 07 0000000000000007", "tag 2 does not fill"),
    ("fewer tags than it says", Tagged, 1, "09 02 05 01 01", "cut short"),
    ("billions of tags", Tagged, 1, "09 ffffffff0f", "4294967295 tagged fields"),
    ("billions of unknown tags", Journey, 0, "0001 0002 ffffffff0f", "4294967295 tagged fields"),
    ("a tag number of six bytes", Tagged, 1, "09 01 808080808001 00", "longer than five bytes"),
    ("a tagged string is null and must not be", Tagged, 1, "09 01 00 01 00", "length -1"),
]


class TestMalformed:
    @pytest.mark.parametrize(
        ("message", "version", "data", "error"), [m[1:] for m in MALFORMED], ids=[m[0] for m in MALFORMED]
    )
    def test_raises_the_one_error(self, message: type[Message], version: int, data: str, error: str) -> None:
        with pytest.raises(ProtocolError, match=error):
            decode(message, version, unhex(data))

    @pytest.mark.parametrize("version", list(ProduceRequest.versions))
    def test_cut_short_anywhere(self, version: int) -> None:
        data = encode(PRODUCE, version)
        for length in range(len(data)):
            with pytest.raises(ProtocolError, match="ProduceRequest"):
                decode(ProduceRequest, version, memoryview(data)[:length])

    @pytest.mark.parametrize("buffer", [bytes, bytearray, memoryview])
    def test_whatever_the_buffer_is(self, buffer: type) -> None:
        data = encode(PRODUCE, 9)
        assert decode(ProduceRequest, 9, buffer(data)) == PRODUCE
        with pytest.raises(ProtocolError):
            decode(ProduceRequest, 9, buffer(data[:-1]))
        with pytest.raises(ProtocolError):
            decode(ProduceRequest, 9, buffer(data + b"\0"))

    def test_a_string_is_at_most_32767_bytes_in_flexible_versions_too(self) -> None:
        """Kafka refuses longer ones, and they would not fit into the plain versions in which they may be written
        again."""
        rest = unhex("00 01 00 00 00")
        assert len(decode(Texts, 1, unhex("808002") + b"n" * 32767 + rest).name) == 32767
        with pytest.raises(ProtocolError, match="a string field has length"):
            decode(Texts, 1, unhex("818002") + b"n" * 32768 + rest)

    def test_the_error_says_what_and_where(self) -> None:
        with pytest.raises(ProtocolError, match=r"^Texts v0: cut short at byte 2$"):
            decode(Texts, 0, unhex("0004 'tea'"))


class TestCounts:
    """A count is checked against what is left before anything is allocated, so a small frame costs little memory."""

    @pytest.mark.parametrize(
        ("version", "count"),
        [(0, "7fffffff"), (0, "77359400"), (0, "00000005"), (1, "ffffffff0f"), (1, "8094ebdc07"), (1, "06")],
    )
    @pytest.mark.parametrize("before", ["", "zero ", "zero zero "], ids=["numbers", "strings", "structs"])
    def test_larger_than_what_is_left(self, before: str, version: int, count: str) -> None:
        zero = ["00000000", "01"][version]
        data = unhex(before.replace("zero", zero) + count)
        assert fails_with_little_memory(Lists, version, data + b"\1" * 4)
        assert fails_with_little_memory(Lists, version, data.ljust(20, b"\1"))

    def test_larger_than_what_is_left_in_any_message(self) -> None:
        """Twenty bytes that claim as much as they can, wherever a count or a length may be."""
        claims = [unhex(claim) for claim in ("ffffffff0f", "7fffffff", "7fff")]
        data = [(bytes(prefix) + claim).ljust(20, b"\1")[:20] for prefix in range(16) for claim in claims]
        for message in messages():
            for version in message.versions:
                for each in data:
                    with suppress(ProtocolError):
                        decode(message, version, each)

    def test_structs_count_with_the_least_that_they_can_take(self) -> None:
        three = unhex("01 01 04") + unhex("0001 0002 00") * 3 + b"\0"
        assert len(decode(Lists, 1, three).points) == 3
        with pytest.raises(ProtocolError, match="cut short at byte 3"):
            decode(Lists, 1, three[:-2])


def fails_with_little_memory(message: type[Message], version: int, data: bytes) -> bool:
    with pytest.raises(ProtocolError):
        decode(message, version, data)  # makes the decoder, which takes memory of its own
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            decode(message, version, data)
        return tracemalloc.get_traced_memory()[1] < 20_000
    finally:
        tracemalloc.stop()


class TestRealMessages:
    """One of each that has something special; the others are compared with kafka-python and Java."""

    def test_a_fetch_response_with_everything(self) -> None:
        data = unhex(
            "00000000 0000 00000001"  # throttle time, error, session
            "02 000102030405060708090a0b0c0d0e0f"  # one topic
            "02 00000003 0000 0000000000000064 0000000000000064 0000000000000000"  # partition, its offsets
            "02 0000000000000007 0000000000000009 00"  # one aborted transaction
            "ffffffff 04 'abc'"  # preferred replica, records
            "01 01 09 00000001 00000005 00"  # tag 1: the current leader
            "00"
            "01 00 15 02 00000001 0a 'localhost' 00002384 00 00"  # tag 0: where it listens
        )
        response = decode(FetchResponse, 16, data)
        [topic] = response.responses
        [partition] = topic.partitions
        assert topic.topic_id == bytes(range(16))
        assert partition.records == b"abc"
        assert partition.aborted_transactions[0].first_offset == 9
        assert partition.current_leader.leader_epoch == 5
        assert partition.diverging_epoch is None
        assert (response.node_endpoints[0].host, response.node_endpoints[0].port) == ("localhost", 9092)

    def test_an_empty_answer(self) -> None:
        assert decode(MetadataResponse, 0, bytes(8)) == MetadataResponse(brokers=[], topics=[])

    def test_an_answer_to_api_versions_with_tags(self) -> None:
        response = decode(ApiVersionsResponse, 3, unhex("0023 01 00000000 01 01 08 0000000000000004"))
        assert response.error_code == 35
        assert response.finalized_features_epoch == 4
        assert response.supported_features == []


# --- in pieces ---


def in_pieces(message, version, data, new_list=list):
    """What the decoder in pieces returns, and in how many pieces."""
    decoding = decoder_in_pieces(message, version)(data, 0, new_list, MOST_ELEMENTS)
    pieces = 1
    while True:
        try:
            next(decoding)
        except StopIteration as end:
            return end.value[0], pieces
        pieces += 1


@pytest.mark.parametrize("message", list(messages()))
def test_in_pieces_every_message_is_the_same(message):
    for version in message.versions:
        data = encode(sample(message, version), version)
        assert in_pieces(message, version, data) == (decode(message, version, data), 1), f"version {version}"


@pytest.mark.parametrize("version", [0, 1])
def test_many_elements_take_several_pieces(version):
    points = [Point(x=number, y=0) for number in range(2 * ELEMENTS_PER_PIECE + 1)]
    message = Lists(numbers=[1, 2], names=["a", "b"], points=points)
    assert in_pieces(Lists, version, encode(message, version)) == (message, 3)


@pytest.mark.parametrize("version", [0, 1])
def test_long_strings_take_several_pieces(version):
    message = Lists(numbers=[], names=["n" * 32767] * 100, points=[])  # each counts as 32 elements
    assert in_pieces(Lists, version, encode(message, version)) == (message, 4)


@pytest.mark.parametrize("version", [0, 1])
def test_a_message_has_only_so_many_elements(version):
    most = Lists(numbers=[7] * (MOST_ELEMENTS - 1), names=[""], points=[])
    assert in_pieces(Lists, version, encode(most, version))[0] == most
    for more in (
        Lists(numbers=[7] * (MOST_ELEMENTS + 1), names=[], points=[]),
        Lists(numbers=[7] * MOST_ELEMENTS, names=[""], points=[]),
    ):
        with pytest.raises(ProtocolError, match="elements"):
            in_pieces(Lists, version, encode(more, version))


def test_too_many_elements_are_refused_before_they_are_decoded():
    data = encode(Lists(numbers=[], names=[""] * (MOST_ELEMENTS + 1), points=[]), 1)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            in_pieces(Lists, 1, data)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("version", [0, 1])
def test_a_message_has_only_so_many_bytes_of_text(version):
    """Records do not count: they are not copied."""
    half = MOST_BYTES // 2
    most = Texts(name="", nick=None, blob=bytes(half), note=bytes(half), records=b"records")
    assert in_pieces(Texts, version, encode(most, version))[0] == most
    more = Texts(name="n", nick=None, blob=bytes(half), note=bytes(half), records=None)
    with pytest.raises(ProtocolError, match="more than 16777216 bytes"):
        in_pieces(Texts, version, encode(more, version))


def test_tagged_fields_count_as_elements():
    tags = b"".join(bytes([0x80 | tag & 0x7F, tag >> 7, 0]) for tag in range(200, 1200))
    points = (unhex("0001 0002 e807") + tags) * 3
    message, pieces = in_pieces(Lists, 1, unhex("01 01 04") + points + b"\0")
    assert message.points == [Point(x=1, y=2)] * 3
    assert pieces == 4


def test_long_arrays_are_lists_of_the_callers_choice():
    class Own(list):
        pass

    few, many = [Point(x=1, y=1)] * 100, [Point(x=1, y=1)] * 101
    data = encode(Trips(best=Trip(name="a", points=many), others=[Trip(name="b", points=few)]), 1)
    message, _ = in_pieces(Trips, 1, data, Own)
    assert [type(each) for each in (message.best.points, message.others, message.others[0].points)] == [Own, list, list]


@pytest.mark.parametrize("version", [0, 1])
def test_structs_in_several_places(version):
    """They are read by functions of their own, which share what is left for the message and for the piece."""
    points = [Point(x=number % 100, y=0) for number in range(ELEMENTS_PER_PIECE - 1)]
    message = Trips(best=Trip(name="a", points=points), others=[Trip(name="b", points=points)] * 2)
    assert in_pieces(Trips, version, encode(message, version)) == (message, 3)
    too_long = Trips(best=Trip(name="", points=[]), others=[Trip(name="n" * 32767, points=[])] * 513)
    with pytest.raises(ProtocolError, match="more than 16777216 bytes"):
        in_pieces(Trips, version, encode(too_long, version))
    for length in range(30):
        with pytest.raises(ProtocolError):
            decode(Trips, version, encode(message, version)[:length])
