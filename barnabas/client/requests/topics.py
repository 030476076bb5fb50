"""How requests name topics and partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from barnabas.protocol.schema import ZERO_UUID

# A topic by its name (a str) or its id (bytes).
Topic = str | bytes
# A topic, and some of its partitions.
Partitions = tuple[str, Sequence[int]]

# How long a broker may take for requests that are not done at once.
TIMEOUT_MS: Final = 20_000


def by_topic(parts: Iterable[Any]) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Parts that begin with their topic, grouped as in requests: neighbours of the same topic together."""
    return groupby(parts, key=lambda part: part[0])


def topic_field(name: str, topic: Topic) -> dict[str, Any]:
    """The field of a request that names a topic: `name` with its name, or `topic_id`."""
    return {name: topic} if isinstance(topic, str) else {"topic_id": topic or ZERO_UUID}
