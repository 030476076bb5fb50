"""The catalogue: one module per room."""

from __future__ import annotations

from typing import Final

from barnabas.conformance.catalogue import Room
from barnabas.conformance.rooms import (
    answers,
    api_versions,
    consumer_groups,
    fetch,
    fetch_sessions,
    framing,
    groups,
    idempotence,
    list_offsets,
    metadata,
    offsets,
    produce,
    settings,
    share_groups,
    streams_groups,
    topics,
    transactions,
)

ROOMS: Final[list[Room]] = [
    answers.room,
    api_versions.room,
    framing.room,
    metadata.room,
    topics.room,
    settings.room,
    produce.room,
    fetch.room,
    fetch_sessions.room,
    list_offsets.room,
    groups.room,
    consumer_groups.room,
    share_groups.room,
    offsets.room,
    streams_groups.room,
    idempotence.room,
    transactions.room,
]
