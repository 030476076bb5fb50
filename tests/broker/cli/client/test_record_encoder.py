"""The fast encoder against the slow, obvious one."""

from itertools import repeat

from hypothesis import example, given
from hypothesis import strategies as st

from broker.cli.client.record_encoder import encode_headers, encode_records
from protocol.records.record import write_record

DATA = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(max_size=20), DATA), max_size=3)


@given(st.lists(st.tuples(DATA, DATA), max_size=100), HEADERS)
@example([(b"k" * 70_000, b"v" * 70_000)], [("h", b"x" * 70_000)])
@example([(None, b"x")] * 10_000, [])
def test_the_same_bytes_as_the_codec(records, headers):
    slow = bytearray()
    for number, (key, value) in enumerate(records):
        write_record(slow, number, 0, key, value, headers)
    keys, values = [key for key, _ in records], [value for _, value in records]
    assert encode_records(keys, values, encode_headers(headers)) == slow


def test_without_keys():
    assert encode_records(repeat(None), [b"a", b"b"], b"\x00") == encode_records([None, None], [b"a", b"b"], b"\x00")
