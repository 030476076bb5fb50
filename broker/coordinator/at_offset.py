"""What a shard gets to see if it asked for offsets (`with_offsets`): a record, and where it is in the partition."""

from __future__ import annotations

from typing import Any, NamedTuple


class AtOffset(NamedTuple):
    offset: int
    read: Any
