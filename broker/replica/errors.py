"""Why a partition on this broker refuses a request."""

from __future__ import annotations

from barnabas.storage.errors import LogFailure


class NotLeader(LogFailure):
    """This broker does not lead the partition, or no longer does. What was written may survive, or be truncated."""
