"""What the answers to heartbeats say of a group beside errors: members go on, and somebody may have to do something."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from barnabas.protocol.messages.streams_group_heartbeat import Status


class StatusCode(IntEnum):
    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class Problem(NamedTuple):
    """Why tasks cannot be assigned."""

    code: StatusCode
    detail: str


def status(code: StatusCode, detail: str) -> Status:
    return Status(status_code=code, status_detail=detail)
