"""Records as the page gets them: text where they are text, cut where they are long, and an error instead of a crash."""

import pytest

from barnabas.broker.console.records import Query, decoded, field
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.records.compression import CompressionType
from barnabas.protocol.records.control import ControlType, build_end_transaction_marker


def batch(*records, base_offset=0, **more):
    return bytes(build_batch(list(records), base_offset=base_offset, **more))


def test_a_record_with_its_batch():
    data = batch(
        NewRecord(1000, b"key", b'{"a": 1}', (("trace", b"\x01\xff"),)),
        base_offset=7,
        compression=CompressionType.ZSTD,
        producer_id=9,
        producer_epoch=2,
        base_sequence=40,
    )
    (record,), looked_at, next_offset = decoded(data, 3, 7, 8, Query())
    assert (looked_at, next_offset) == (1, 8)
    assert (record["partition"], record["offset"], record["timestamp"]) == (3, 7, 1000)
    assert record["key"] == {"size": 3, "text": "key"}
    assert record["value"] == {"size": 8, "text": '{"a": 1}'}
    assert record["headers"] == [{"name": "trace", "value": {"size": 2, "hex": "01ff"}}]
    told = record["batch"]
    assert (told["codec"], told["producer_id"], told["producer_epoch"], told["base_sequence"]) == ("zstd", 9, 2, 40)


def test_only_offsets_that_were_asked_for():
    data = batch(*(NewRecord(0, None, bytes([48 + n])) for n in range(9)))
    found, _, _ = decoded(data, 0, 3, 6, Query())
    assert [record["offset"] for record in found] == [3, 4, 5]


def test_what_is_searched_for_may_be_in_the_key_the_value_or_a_header():
    data = batch(
        NewRecord(0, b"Josef", b"x"),
        NewRecord(0, b"x", b"a JOSEF b"),
        NewRecord(0, b"x", None, (("by", b"josef"),)),
        NewRecord(0, b"x", b"y", (("josef", None),)),
        NewRecord(0, b"Frieda", b"z"),
    )
    found, looked_at, _ = decoded(data, 0, 0, 99, Query("josef"))
    assert [record["offset"] for record in found] == [0, 1, 2, 3]
    assert looked_at == 5


def test_a_search_finds_letters_that_are_not_ascii():
    data = batch(
        NewRecord(0, "Ünal".encode(), b"x"), NewRecord(0, b"x", b"y", (("Über", None),)), NewRecord(0, b"U", b"z")
    )
    found, _, _ = decoded(data, 0, 0, 99, Query("Ü"))
    assert [record["offset"] for record in found] == [0, 1]


def test_the_end_of_a_transaction_is_shown_as_such():
    data = bytes(
        build_end_transaction_marker(
            ControlType.ABORT, timestamp=5, producer_id=1, producer_epoch=0, coordinator_epoch=0, base_offset=4
        )
    )
    (record,), _, _ = decoded(data, 0, 0, 99, Query())
    assert record["control"] == "abort"


def test_a_batch_that_cannot_be_read_says_so_and_the_next_one_is_shown():
    broken = bytearray(batch(NewRecord(0, b"k", b"v"), compression=CompressionType.GZIP))
    broken[-8:] = b"nonsense"
    data = bytes(broken) + batch(NewRecord(0, b"k", b"fine"), base_offset=1)
    found, _, next_offset = decoded(data, 0, 0, 99, Query())
    assert "cannot be read" in found[0]["error"]
    assert found[1]["value"]["text"] == "fine"
    assert next_offset == 2


def test_half_a_batch_at_the_end_is_left_for_later():
    data = batch(NewRecord(0, b"k", b"v")) + batch(NewRecord(0, b"k", b"v"), base_offset=1)[:-1]
    found, _, next_offset = decoded(data, 0, 0, 99, Query())
    assert len(found) == 1
    assert next_offset == 1


def test_bytes_as_text_or_digits():
    assert field(None, 10) is None
    assert field(b"", 10) == {"size": 0, "text": ""}
    assert field("ä€".encode(), 10) == {"size": 5, "text": "ä€"}
    assert field(b"\xff\xfe", 10) == {"size": 2, "hex": "fffe"}
    assert field(b"a\x00b", 10) == {"size": 3, "hex": "610062"}  # a control character is not text
    assert field(b"<script>alert(1)</script>", 99)["text"] == "<script>alert(1)</script>"


def test_long_bytes_are_cut_also_within_a_character():
    assert field("ääää".encode(), 3) == {"size": 8, "cut": True, "text": "ä"}
    assert field(b"\xff" * 9, 2) == {"size": 9, "cut": True, "hex": "ffff"}


@pytest.mark.parametrize(
    "text",
    [
        "\N{MAN}\N{ZERO WIDTH JOINER}\N{WOMAN}",
        "\u0645\u06cc\N{ZERO WIDTH NON-JOINER}\u062e\u0648\u0627\u0647\u0645",
        '{"name": "\u4eac\N{IDEOGRAPHIC SPACE}\u90fd", "price": "5\N{NO-BREAK SPACE}\N{EURO SIGN}"}',
        "\N{ZERO WIDTH NO-BREAK SPACE}id,name\r\n1,K.\r\n",
        "\U0001fae8",
    ],
    ids=["joined emoji", "Persian", "spaces", "CSV with a byte order mark", "an emoji that is newer than this Python"],
)
def test_text_of_all_languages_is_text(text):
    assert field(text.encode(), 1000)["text"] == text


@pytest.mark.parametrize("text", ["a\x00b", "\x1b[31mred", "\x9b31m", "\u202egnp.exe", "\u2066a"])
def test_characters_that_control_something_are_not_text(text):
    assert field(text.encode(), 1000)["hex"] == text.encode().hex()
