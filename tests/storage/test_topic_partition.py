"""storage.topic_partition"""

import pytest

from storage.topic_partition import TopicPartition


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("topic-0", TopicPartition("topic", 0)),
        ("a-topic-7-12", TopicPartition("a-topic-7", 12)),
        ("__consumer_offsets-49", TopicPartition("__consumer_offsets", 49)),
        ("topic", None),
        ("topic-", None),
        ("-0", None),
        ("topic-x", None),
        ("topic-0.0123456789abcdef0123456789abcdef-delete", None),
    ],
)
def test_folders(folder: str, expected: TopicPartition | None) -> None:
    assert TopicPartition.of_folder(folder) == expected


def test_a_deleted_folder_is_no_partitions_and_fits_any_file_system() -> None:
    for topic in ("t", "t" * 249):
        name = TopicPartition(topic, 1234567).deleted_folder()
        assert TopicPartition.of_folder(name) is None
        assert len(name) <= 255
        assert name != TopicPartition(topic, 1234567).deleted_folder()
