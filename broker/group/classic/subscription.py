"""The topics that a consumer's subscription names, as the protocol type "consumer" writes it."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from barnabas.protocol.consumer_protocol import ConsumerProtocolSubscription, read_with_version
from barnabas.protocol.errors import ProtocolError

if TYPE_CHECKING:
    from barnabas.broker.group.classic.group import Group


def subscribed_topics(group: Group) -> Collection[str] | None:
    """The topics that the members read; None if their subscriptions cannot be decoded."""
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
    """None if it is not a consumer's subscription."""
    try:
        return read_with_version(ConsumerProtocolSubscription, subscription).topics
    except ProtocolError:
        return None
