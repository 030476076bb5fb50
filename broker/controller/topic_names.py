"""Which names a topic may have."""

import re
from collections.abc import Iterable
from typing import Final

MAX_NAME_LENGTH: Final = 249  # so that "<topic>-<partition>" and a suffix for deletion still make a file name

INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

CLUSTER_METADATA_TOPIC: Final = "__cluster_metadata"
"""The name of Kafka's own log of metadata. Nobody may create a topic of that name."""

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def is_internal(name: str) -> bool:
    return name in INTERNAL_TOPICS


def problem_with_name(name: str) -> str | None:
    """Why a topic cannot have this name; None if it can."""
    if not name:
        return "A topic's name cannot be empty"
    if name in (".", ".."):
        return f"A topic's name cannot be '{name}'"
    if len(name) > MAX_NAME_LENGTH:
        return f"A topic's name has at most {MAX_NAME_LENGTH} characters, '{name}' has {len(name)}"
    if not _LEGAL.fullmatch(name):
        return f"A topic's name has only ASCII letters, digits, '.', '_' and '-', unlike '{name}'"
    return None


class MetricNames:
    """Topics under the names that their metrics would have, where '.' and '_' are the same.

    Two topics that differ only there would share their metrics, so the second one is refused.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._topics: dict[str, str] = {}
        for name in names:
            if "." in name or "_" in name:
                self._topics.setdefault(name.replace(".", "_"), name)

    def collision(self, name: str) -> str | None:
        """The other topic that `name` would collide with."""
        other = self._topics.get(name.replace(".", "_"))
        return None if other == name else other
