from __future__ import annotations

import pytest

from barnabas.broker.group.assignors.hash_order import (
    in_hash_order,
    partition_hash,
    string_hash,
    timeline_order,
    topic_id_hash,
)


# What Java says.
@pytest.mark.parametrize(
    ("text", "code"), [("", 0), ("hello", 99162322), ("polygenelubricants", -(2**31)), ("𝄞", 31 * 0xD834 + 0xDD1E)]
)
def test_the_hash_of_a_string(text: str, code: int) -> None:
    assert string_hash(text) == code % 2**32


def test_a_long_string_is_hashed_each_time_and_not_kept() -> None:
    kept = string_hash.__self__  # type: ignore[attr-defined]
    assert string_hash("m" * 100) == string_hash("m" * 100)
    assert string_hash("m" * 101) == string_hash("m" * 101)
    assert "m" * 100 in kept
    assert "m" * 101 not in kept


def test_the_hash_of_a_topic_id() -> None:
    assert topic_id_hash(bytes.fromhex("00000001000000100000010000001000")) == 0x1111


def test_keys_are_listed_by_their_slots_and_keep_their_order_within_one() -> None:
    assert in_hash_order([17, 33, 0, 1, 16], partition_hash) == [0, 16, 17, 33, 1]


def test_a_larger_table_has_more_slots() -> None:
    assert in_hash_order(range(0, 101, 20), partition_hash) == [0, 80, 20, 100, 40, 60]
    assert in_hash_order(range(19, -1, -1), partition_hash) == list(range(20))


def test_the_upper_half_of_a_hash_counts() -> None:
    assert in_hash_order([0x10000, 0], partition_hash) == [0, 0x10000]


def test_members_of_a_group_in_its_own_table() -> None:
    assert timeline_order([]) == []
    assert sorted(timeline_order("dcba")) == list("abcd")
