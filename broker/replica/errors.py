"""Why a partition on this broker does not do what it is asked for."""

from __future__ import annotations

from barnabas.storage.errors import LogFailure


class NotLeader(LogFailure):
    """This broker does not lead the partition, or not any more. What was written may still be kept, or be cut."""
