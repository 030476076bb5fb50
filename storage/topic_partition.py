"""The name of a partition, and of its folder."""

import re
import uuid
from typing import Final, NamedTuple

DELETED_SUFFIX: Final = "-delete"
STRAY_SUFFIX: Final = "-stray"

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
        return self._unique_folder(DELETED_SUFFIX)

    def stray_folder(self) -> str:
        """A name for the folder of a partition that nobody knows."""
        return self._unique_folder(STRAY_SUFFIX)

    def _unique_folder(self, suffix: str) -> str:
        unique = uuid.uuid4().hex
        # A topic's name may have 249 characters and a file's 255.
        room = 255 - len(f"-{self.partition}.{unique}{suffix}")
        return f"{self.topic[:room]}-{self.partition}.{unique}{suffix}"
