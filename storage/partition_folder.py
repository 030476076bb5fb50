"""The name of a partition's folder: the partition's name, unless the folder is being deleted or is a stray."""

import re
import uuid
from typing import Final

from barnabas.protocol.topic_partition import TopicPartition

DELETED_SUFFIX: Final = "-delete"
STRAY_SUFFIX: Final = "-stray"

_FOLDER: Final = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d+)")


def partition_of_folder(name: str) -> TopicPartition | None:
    """The partition whose folder has this name; None if there is none."""
    match = _FOLDER.fullmatch(name)
    if match is None or name.endswith(DELETED_SUFFIX):
        return None
    return TopicPartition(match["topic"], int(match["partition"]))


def deleted_folder(partition: TopicPartition) -> str:
    """A name for a folder that waits to be deleted, so that the topic can be created again at once."""
    return _unique_folder(partition, DELETED_SUFFIX)


def stray_folder(partition: TopicPartition) -> str:
    """A name for the folder of a partition that is unknown to the cluster."""
    return _unique_folder(partition, STRAY_SUFFIX)


def _unique_folder(partition: TopicPartition, suffix: str) -> str:
    unique = uuid.uuid4().hex
    # A topic name may have 249 characters, a file name 255.
    room = 255 - len(f"-{partition.partition}.{unique}{suffix}")
    return f"{partition.topic[:room]}-{partition.partition}.{unique}{suffix}"
