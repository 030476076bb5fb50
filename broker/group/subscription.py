"""The topics that a consumer's subscription names, as the protocol type "consumer" writes it."""

from __future__ import annotations

import struct
from collections.abc import Collection

from broker.group.group import Group


def subscribed_topics(group: Group) -> Collection[str] | None:
    """The topics that the members read; None if they do not say so in a way that is known here."""
    if group.protocol_type != "consumer":
        return None
    topics: set[str] = set()
    for member in group.members.values():
        found = topics_of(member.metadata(group.protocol))
        if found is None:
            return None
        topics.update(found)
    return topics


def topics_of(subscription: bytes) -> list[str] | None:
    """Every version begins with the version and the names; a subscription that does not is none of Kafka's."""
    topics: list[str] = []
    try:
        _, count = struct.unpack_from(">hi", subscription)
        position = 6
        for _ in range(count):
            (length,) = struct.unpack_from(">h", subscription, position)
            position += 2
            if not 0 <= length <= len(subscription) - position:
                return None
            topics.append(subscription[position : position + length].decode())
            position += length
    except (struct.error, UnicodeDecodeError):
        return None
    return topics
