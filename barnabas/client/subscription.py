"""The topics that somebody reads, by name or by pattern."""

from __future__ import annotations

import re
from collections.abc import Sequence

from barnabas.client.client import Client


class Subscription:
    """Names, or regular expressions of which one has to match the whole name of a topic.

    Patterns do not match internal topics: their records are for the broker, not for people.
    """

    def __init__(self, topics: Sequence[str], *, regex: bool = False) -> None:
        self.topics = topics
        self.regex = regex
        self._pattern = re.compile("|".join(f"(?:{each})" for each in topics)) if regex else None

    def current(self, client: Client) -> list[str]:
        """The topics at the moment, sorted. One that is named has to exist; a pattern may match nothing yet."""
        found = client.topics(None if self.regex else self.topics)
        names = [topic.name or "" for topic in found if not (self.regex and topic.is_internal)]
        return names if self._pattern is None else [name for name in names if self._pattern.fullmatch(name)]
