"""A coordinator's key goes to the partition that Java's String.hashCode gives it."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.coordinator.key_hash import _hash_code, _hash_of_strides, partition_of


@pytest.mark.parametrize(
    ("key", "code"),
    [("", 0), ("hello", 99162322), ("polygenelubricants", -(2**31)), ("\U0001f600", 1772899)],
)
def test_what_java_computes(key, code):
    assert _hash_code(key) == code


def test_the_smallest_number_has_no_absolute_value():
    assert partition_of("polygenelubricants", 50) == 0


def one_character_at_a_time(key):
    code = 0
    for (unit,) in struct.iter_unpack(">H", key.encode("utf-16-be")):
        code = 31 * code + unit
    return (code + 2**31) % 2**32 - 2**31


@given(st.text(), st.integers(1, 800))
def test_long_keys_have_the_same_hash_as_one_character_at_a_time(text, length):
    key = (text + "x" * 800)[-length:]
    assert _hash_code(key) == one_character_at_a_time(key)


def test_the_start_of_a_long_key_is_hashed_once_for_all_keys_that_share_it():
    group = "g" * 32_767
    _hash_of_strides.cache_clear()
    for partition in range(1000):
        partition_of(f"{group}:topic:{partition}", 50)
    assert _hash_of_strides.cache_info().misses == 1
