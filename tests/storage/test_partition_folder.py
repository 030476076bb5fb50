"""barnabas.storage.partition_folder"""

import pytest

from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.partition_folder import deleted_folder, partition_of_folder


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
    assert partition_of_folder(folder) == expected


def test_a_deleted_folder_is_not_a_partition_and_its_name_fits_any_file_system() -> None:
    for topic in ("t", "t" * 249):
        name = deleted_folder(TopicPartition(topic, 1234567))
        assert partition_of_folder(name) is None
        assert len(name) <= 255
        assert name != deleted_folder(TopicPartition(topic, 1234567))
