from broker.coordinator.runtime import partition_of


def test_a_group_belongs_to_the_partition_that_javas_hash_code_says():
    # "test-group".hashCode() is 627841412.
    assert partition_of("test-group", 50) == 12
    assert partition_of("", 50) == 0
    # A hash code of -2**31 has no positive counterpart in Java, and counts as 0.
    assert partition_of("polygenelubricants", 50) == 0


def test_characters_beyond_the_first_plane_count_as_javas_two():
    # "😀".hashCode() is 0xD83D * 31 + 0xDE00 = 1772899.
    assert partition_of("\N{GRINNING FACE}", 2**31 - 1) == 1772899
