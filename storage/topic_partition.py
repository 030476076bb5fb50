"""The name of a partition, and of its folder."""

import re
import uuid
from typing import Final, NamedTuple

DELETED_SUFFIX: Final = "-delete"

_FOLDER: Final = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d+)")


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @classmethod
    def of_folder(cls, name: str) -> "TopicPartition | None":
        """The partition whose folder has this name; None if it is no partition's."""
        match = _FOLDER.fullmatch(name)
        if match is None or name.endswith(DELETED_SUFFIX):
            return None
        return cls(match["topic"], int(match["partition"]))

    def deleted_folder(self) -> str:
        """A name for the folder while it waits to be deleted, so that the topic can be created again at once."""
        unique = uuid.uuid4().hex
        # A topic's name may have 249 characters and a file's 255.
        room = 255 - len(f"-{self.partition}.{unique}{DELETED_SUFFIX}")
        return f"{self.topic[:room]}-{self.partition}.{unique}{DELETED_SUFFIX}"
