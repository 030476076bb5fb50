"""A share partition: what a share group has read of one partition of a topic."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from typing import Final, NamedTuple

_ID_LENGTH: Final = 22  # of a topic id in base 64
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,10}")


class SharePartitionKey(NamedTuple):
    group_id: str
    topic_id: bytes
    partition: int

    @property
    def coordinator_key(self) -> str:
        """What clients look up its share coordinator by, and what its partition of __share_group_state is chosen by."""
        topic_id = urlsafe_b64encode(self.topic_id).decode().rstrip("=")
        return f"{self.group_id}:{topic_id}:{self.partition}"


def is_coordinator_key(key: str) -> bool:
    """Whether a client may have meant a share partition: group, topic id and partition, in that order."""
    parts = key.rsplit(":", 2)
    return len(parts) == 3 and all(parts) and len(parts[1]) == _ID_LENGTH and _NUMBER.fullmatch(parts[2]) is not None
