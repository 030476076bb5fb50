"""What can go wrong between the client and the brokers. The text is what the user reads, one sentence each.

ClientError
  +-- Unreachable          nothing listens at the address
  +-- TimedOut             the broker did not answer in time
  +-- ConnectionLost       the connection ended before the answer came, or the answer makes no sense
  +-- NotAuthenticated     the broker does not accept our credentials
  +-- NotSupported         the broker does not serve an API, or a version of it, that the client needs
  +-- BrokerError          the broker answered with one of Kafka's error codes
"""

from __future__ import annotations

from typing import Final

from barnabas.errors import BarnabasError
from barnabas.protocol.errors import ErrorCode


class ClientError(BarnabasError):
    pass


class Unreachable(ClientError):
    pass


class TimedOut(ClientError):
    pass


class ConnectionLost(ClientError):
    pass


class NotAuthenticated(ClientError):
    pass


class NotSupported(ClientError):
    pass


class BrokerError(ClientError):
    """`subject` is what the error is about: topic 'orders', group 'billing'."""

    def __init__(self, code: int, subject: str, message: str | None = None) -> None:
        self.code = code
        self.retriable = code in _RETRIABLE
        name = name_of(code)
        message = (message or _EXPLANATIONS.get(name, "")).rstrip(".")
        super().__init__(f"{subject}: {message} ({name})" if message else f"{subject}: {name}")


def name_of(code: int) -> str:
    """Kafka's name for an error code. A later Kafka may have codes that are not known here."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"


def check(code: int, subject: str, message: str | None = None) -> None:
    if code:
        raise BrokerError(code, subject, message)


_RETRIABLE: Final = frozenset(code for code in ErrorCode if code.retriable)

# For errors that people meet often and whose name alone does not help.
_EXPLANATIONS: Final = {
    "UNKNOWN_TOPIC_OR_PARTITION": "there is no such topic or partition",
    "BROKER_NOT_AVAILABLE": "there is no such broker, or it is down",
    "TOPIC_ALREADY_EXISTS": "it already exists",
    "NON_EMPTY_GROUP": "the group still has members",
    "GROUP_ID_NOT_FOUND": "there is no such group",
    "OFFSET_OUT_OF_RANGE": "the log does not have that offset",
    "MESSAGE_TOO_LARGE": "the batch is larger than the topic's max.message.bytes",
    "UNSUPPORTED_COMPRESSION_TYPE": "the broker does not accept this compression type",
    "GROUP_SUBSCRIBED_TO_TOPIC": "the group is still subscribed to the topic",
    "INCONSISTENT_GROUP_PROTOCOL": "the other members do not support the range assignor",
    "GROUP_MAX_SIZE_REACHED": "the group is full",
    "INVALID_REPLICATION_FACTOR": "the cluster has fewer brokers than the replication factor asks for",
    "NOT_ENOUGH_REPLICAS": "too few replicas are in sync",
}
