"""A member of a share group, as its records have it: a value, which is replaced and never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

# The partitions of each topic.
Assigned = Mapping[bytes, frozenset[int]]

JOINING_EPOCH: Final = 0
LEAVING_EPOCH: Final = -1


@dataclass(frozen=True, slots=True)
class ShareMember:
    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    assigned: Assigned = field(default_factory=dict)
