"""Requests that find out where things are: which broker leads a partition, which coordinates a group.

Every client begins with these, so they do not share a module with the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from barnabas.client.requests.topics import Topic, topic_field
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

# What a coordinator is asked for.
GROUP: Final = 0
TRANSACTION: Final = 1


def metadata(topics: Iterable[Topic] | None, *, create: bool = False, **fields: Any) -> MetadataRequest:
    """Ask for topics, or for all of them with None. With `create`, the broker may create missing ones."""
    return MetadataRequest(
        topics=None
        if topics is None
        else [MetadataRequestTopic(**{"name": None, **topic_field("name", topic)}) for topic in topics],
        allow_auto_topic_creation=create,
        **fields,
    )


def find_coordinator(version: int, *keys: str, key_type: int = GROUP) -> FindCoordinatorRequest:
    """Several keys from version 4 on."""
    if version >= 4:
        return FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys))
    (key,) = keys
    return FindCoordinatorRequest(key_type=key_type, key=key)
