"""The fast encoder against the slow, obvious one."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from barnabas.client.record_encoder import Records, encode, encode_alike, encode_headers
from barnabas.protocol.records.record import write_record

DATA = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(max_size=20), DATA), max_size=3)


@given(st.lists(st.tuples(DATA, DATA), max_size=100), HEADERS)
@example([(b"k" * 70_000, b"v" * 70_000)], [("h", b"x" * 70_000)])
@example([(None, b"x")] * 10_000, [])
@settings(deadline=None)  # the last example is large
def test_the_same_bytes_as_the_codec(records, headers):
    slow = bytearray()
    for number, (key, value) in enumerate(records):
        write_record(slow, number, 0, key, value, headers)
    keys, values = [key for key, _ in records], [value for _, value in records]
    assert encode_alike(keys, values, encode_headers(headers)) == slow


def test_records_without_headers_of_their_own_are_encoded_alike():
    fast = encode(Records([b"a", b"b"]), [("h", b"1")], 1000)
    slow = encode(Records([b"a", b"b"], [None, None], [[], []], [None, None]), [("h", b"1")], 1000)
    assert fast == slow
    assert (fast.base_timestamp, fast.max_timestamp) == (1000, 1000)


def test_some_of_the_records():
    records = Records([b"0", b"1", b"2"], keys=[b"a", b"b", b"c"], timestamps=[7, 8, 9])
    assert records.take([2, 0]) == Records([b"2", b"0"], keys=[b"c", b"a"], timestamps=[9, 7])
