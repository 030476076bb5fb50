"""Keys go where the other clients would put them."""

from hypothesis import example, given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_python_murmur2

from barnabas.client.partitioner import murmur2, partition_of


@given(st.binary(max_size=50))
@example(b"")
@example(b"\xff" * 7)
def test_the_same_hash_as_kafka_pythons(key):
    assert murmur2(key) == kafka_python_murmur2(key) & 0xFFFFFFFF


def test_known_hashes():
    """The examples of Java's own tests."""
    assert murmur2(b"21") == -973932308 & 0xFFFFFFFF
    assert murmur2(b"foobar") == -790332482 & 0xFFFFFFFF


@given(st.binary(max_size=20), st.integers(1, 100))
def test_a_key_belongs_to_one_partition(key, partitions):
    assert 0 <= partition_of(key, partitions) < partitions
