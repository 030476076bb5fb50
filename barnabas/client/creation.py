"""Topics that the broker creates when somebody first asks for them.

A broker answers UNKNOWN_TOPIC_OR_PARTITION both while it creates a topic and when it never will. So the first such
answer is followed by two questions that tell these apart, and nobody waits for a topic that will not appear.
"""

from __future__ import annotations

from typing import Final

from barnabas.client.client import Client
from barnabas.client.config_admin import settings_of
from barnabas.client.errors import BrokerError, ClientError, NotSupported, check
from barnabas.client.requests.admin import create_topics, new_topic
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_topics import CreateTopicsResponse
from barnabas.protocol.messages.metadata import MetadataResponseTopic

_AUTO_CREATE: Final = "auto.create.topics.enable"
_DEFAULT: Final = -1


def find_or_create(client: Client, topic: str) -> MetadataResponseTopic:
    """The topic, created by the broker if it did not exist. BrokerError if it cannot be created."""
    asked = False

    def attempt() -> MetadataResponseTopic:
        nonlocal asked
        (found,) = client.metadata([topic], create=True).topics
        if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            if not asked:
                _check_creatable(client, topic)
                asked = True
            raise BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, f"topic '{topic}'", "the broker did not create it")
        check(found.error_code, f"topic '{topic}'")
        return found

    return client.settled(attempt)


def _check_creatable(client: Client, topic: str) -> None:
    if _auto_creation(client) == "false":
        raise BrokerError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"topic '{topic}'",
            f"it does not exist, and the broker does not create topics on first use ({_AUTO_CREATE}=false)",
        )
    request = create_topics(
        new_topic(topic, _DEFAULT, _DEFAULT), validate_only=True, timeout_ms=int(client.timeout * 1000)
    )
    try:
        (answer,) = client.controller().ask(request, CreateTopicsResponse).topics
    except NotSupported:
        return
    if answer.error_code != ErrorCode.TOPIC_ALREADY_EXISTS:
        check(answer.error_code, f"topic '{topic}' cannot be created", answer.error_message)


def _auto_creation(client: Client) -> str | None:
    """The broker's setting; None if the broker does not say."""
    try:
        found = settings_of(client, "broker", str(min(client.brokers())), [_AUTO_CREATE])
    except ClientError:
        return None
    return next((each.value for each in found), None)
